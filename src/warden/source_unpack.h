/* source_unpack.h - runs the unpacker in a box of its own and keeps what it made as a layer. */
#ifndef CLOCHE_SOURCE_UNPACK_H
#define CLOCHE_SOURCE_UNPACK_H

#include "unpack/unpack.h"
#include "warden/source.h"

struct source_input {
  enum unpack_what what;
  int index;            /* the layout's index.json, or the archive */
  int blobs;            /* directory of blobs by their hex digest; IMAGE only */
  const char *identity; /* what names the content where no digest does; NULL: the image's configuration */
};

/* Fills out. A layer that is there already is left as it is. */
int source_unpack(const struct source_spec *s, const struct source_input *in, struct source_base *out, struct err *err);
/* The name of a layer made from this. */
void source_key(const char *team, const char *identity, char key[65]);

#endif
