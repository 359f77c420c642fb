/* SPDX-License-Identifier: Apache-2.0 */
/* source_spec.h - what is fetched, by which rules, and what came of it. */
#ifndef CLOCHE_WARDEN_BUILD_SOURCE_SPEC_H
#define CLOCHE_WARDEN_BUILD_SOURCE_SPEC_H

#include "warden/core/warden_config.h"
#include "wire/sizes.h"
#include <stdatomic.h>

/* Boxes of the unpacker that could not be removed: their id range is not free. */
struct source_left {
  struct {
    char name[UUID_SIZE], dir[DATA_DIR_SIZE];
  } all[2]; /* an image's, and that of one of its layers */
  size_t n;
};

struct source_spec {
  const struct source_rules *rules;
  const char *data, *instance, *runtime; /* of the warden: directory, name of host objects, hash of the runtime layer */
  const char *team;
  uint32_t id_base;    /* an id range nobody uses meanwhile: the unpacker is a box */
  struct str image;    /* as the client wrote it */
  struct str registry; /* fromImageRegistry as JSON text, or empty; neither stored nor logged */
  bool any_file;       /* image may be a file anywhere: the host's root user asks */
  bool force;          /* a Debian root that is there is made again; images are always asked for again */
  int64_t deadline_us; /* monotonic; 0 = only the rules' own limits */
  const atomic_bool *cancelled;
  void (*say)(void *arg, enum log_level level, const char *line); /* on the calling thread */
  void *arg;
  struct source_left *left;
};

struct source_base {
  char key[DIGEST_TEXT_SIZE]; /* names the content */
  struct buf layers;          /* <data>/layers/<key>/fs: directories, top first, one per line; ids as a box sees them */
  struct buf
      config; /* {"env":{},"user":"","workdir":"","cmd":[],"entrypoint":[]}, and "cloche":{} of an exported template */
};

/* What is left of `most` seconds before the deadline; at least 1. */
unsigned source_seconds(const struct source_spec *spec, unsigned most);
void source_base_free(struct source_base *b);

#endif
