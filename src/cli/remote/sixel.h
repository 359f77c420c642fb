/* SPDX-License-Identifier: Apache-2.0 */
/* sixel.h - a PNG picture as sixels, for terminals that show those.
 *
 * The picture is a sandbox's, so it is decoded by a child that has memory of a fixed size and may do nothing but read,
 * write and exit (seccomp's strict mode); what it gives back is checked to be sixels and nothing else. */
#ifndef CLOCHE_CLI_SIXEL_H
#define CLOCHE_CLI_SIXEL_H

#include "base/base.h"

/* Appends the whole sequence. Wider pictures than `width` pixels are made smaller (0: they stay). -EPROTO: it is no
 * PNG, or too large a one. */
int sixel_from_png(struct str png, unsigned width, struct buf *out);
/* Whether text may stand between the introducer of sixels and their end: no byte of it can end the sequence. */
bool sixel_text_ok(struct str text);

#endif
