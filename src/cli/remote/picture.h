/* SPDX-License-Identifier: Apache-2.0 */
/* picture.h - pictures of results: shown where the terminal can (kitty's and iTerm2's protocols, sixels), else kept
 * in files. The bytes are a sandbox's: they reach a terminal as checked base64 or as checked sixels only. */
#ifndef CLOCHE_CLI_PICTURE_H
#define CLOCHE_CLI_PICTURE_H

#include <cloche.h>
#include <stdbool.h>

/* Shows or saves the pictures of a result. `directory` NULL: show where that is possible, else the working directory.
 * *had: whether it had one. 0 or an exit status. */
int picture_take(const struct cloche_result *result, const char *directory, bool *had);

#endif
