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

#include "base/base.h"
#include <stdatomic.h>

/* Settings; see the table in src/cli/config.c. */
struct source_rules {
  const char *registries; /* hosts that may be asked, by spaces; "*.x" and "*" are patterns */
  const char *insecure;   /* hosts that are asked without TLS */
  const char *dir;        /* of image files clients may name; "" = none */
  const char *aliases;    /* image=template, by spaces */
  const char *ecr;        /* who gives tokens for registries of AWS; "" = AWS */
  const char *debian;     /* program that makes a Debian root as an archive; "" = no such remedy */
  uint32_t uid;           /* who fetches */
  unsigned size_mb, seconds, cache_mb, debian_days;
  unsigned reserve_mb; /* of the disk, which no fetch takes */
  unsigned layers;     /* of an image that are kept apart; one with more becomes a single one */
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
};

struct source_base {
  char key[65];      /* names the content */
  struct buf layers; /* <data>/layers/<key>/fs: directories, top first, one per line; ids as a box sees them */
  struct buf
      config; /* {"env":{},"user":"","workdir":"","cmd":[],"entrypoint":[]}, and "cloche":{} of an exported template */
};

/* The template that stands for an image by the rules; STR_NONE: none does. */
struct str source_alias(const struct source_rules *rules, struct str image);
/* Blocks, perhaps for minutes; any thread. err is fit for the client. -ECANCELED, -ETIMEDOUT among the reasons. */
int source_fetch(const struct source_spec *spec, struct source_base *out, struct err *err);
/* What is left of `most` seconds before the deadline; at least 1. */
unsigned source_seconds(const struct source_spec *spec, unsigned most);
void source_base_free(struct source_base *b);

#endif
