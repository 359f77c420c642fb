/* SPDX-License-Identifier: Apache-2.0 */
/* identity_tokens.h - the `iam` of a create. */
#ifndef CLOCHE_GATE_API_IDENTITY_TOKENS_H
#define CLOCHE_GATE_API_IDENTITY_TOKENS_H

#include "base/base.h"

/* Appends a line per token: name, tab, audience. -EINVAL with a message for the client. */
int identity_tokens_read(const struct json *iam, struct buf *lines, struct err *err);

#endif
