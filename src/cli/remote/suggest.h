/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.h - what a mistyped word probably meant. */
#ifndef CLOCHE_CLI_SUGGEST_H
#define CLOCHE_CLI_SUGGEST_H

#include "base/base.h"

/* The nearest of `names` to a mistyped word, or NULL when none is near. */
const char *did_you_mean(const char *word, const char *const *names, size_t n);

#endif
