/* SPDX-License-Identifier: Apache-2.0 */
/* source.h - what a template can begin with besides another template: an image of a registry, an image file the
 * operator put in a directory for that, a Debian release.
 *
 * Nothing from outside is trusted on the way. A program that speaks to registries (skopeo) runs as a user without
 * rights and sees one directory of its own; what it brought is read by the unpacker in a box of its own (src/unpack).
 * The warden sees digests and one bounded JSON text. Caches are per team: knowing a private image's digest gives nobody
 * its contents. */
#ifndef CLOCHE_WARDEN_BUILD_SOURCE_H
#define CLOCHE_WARDEN_BUILD_SOURCE_H

#include "warden/build/source_spec.h"

/* The template that stands for an image by the rules; STR_NONE: none does. */
struct str source_alias(const struct source_rules *rules, struct str image);
/* Blocks, perhaps for minutes; any thread. err is fit for the client. -ECANCELED, -ETIMEDOUT among the reasons. */
int source_fetch(const struct source_spec *spec, struct source_base *out, struct err *err);

#endif
