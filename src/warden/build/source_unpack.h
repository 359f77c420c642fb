/* SPDX-License-Identifier: Apache-2.0 */
/* source_unpack.h - runs the unpacker in a box of its own and keeps what it made as layers.
 *
 * An image's layers are kept apart, each under a key of its digest and of those below it, so that images with a common
 * base share its files: each is unpacked in a box whose root the ones below it are. An image with too many becomes one
 * layer. */
#ifndef CLOCHE_WARDEN_BUILD_SOURCE_UNPACK_H
#define CLOCHE_WARDEN_BUILD_SOURCE_UNPACK_H

#include "unpack/unpack.h"
#include "warden/build/source_spec.h"
#include "wire/sizes.h"

#define SOURCE_PARTS_MAX 512

/* A layer of an image: its digest among the blobs, and unpacked. */
struct source_part {
  char packed[DIGEST_TEXT_SIZE], diff[DIGEST_TEXT_SIZE];
};

struct source_input {
  enum unpack_what what;
  int index;            /* the layout's index.json, or the archive */
  int blobs;            /* directory of blobs by their hex digest; IMAGE only */
  const char *identity; /* what names the content where no digest does; NULL: the image's configuration */
  /* Of a part: */
  struct source_part part;
  struct str lowers; /* the layers below it, top first, one per line */
  uint64_t used;     /* bytes of these */
};

/* Fills out. Layers that are there already are left as they are. */
int source_unpack(const struct source_spec *s, const struct source_input *in, struct source_base *out, struct err *err);
/* The name of a layer made from this. */
void source_key(const char *team, const char *identity, char key[DIGEST_TEXT_SIZE]);

#endif
