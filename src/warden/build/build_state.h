/* SPDX-License-Identifier: Apache-2.0 */
/* build_state.h - what a build knows between two steps: layers, variables, user, working directory, and the key that
 * stands for everything that led there. */
#ifndef CLOCHE_WARDEN_BUILD_BUILD_STATE_H
#define CLOCHE_WARDEN_BUILD_BUILD_STATE_H

#include "base/base.h"
#include "wire/sizes.h"

#define BUILD_KEY DIGEST_TEXT_SIZE

struct build_env {
  char *name, *value; /* owned */
};

struct build_envs {
  struct build_env *p;
  size_t n, cap;
};

/* In what a start command runs that a template inherited: user, directory and variables of the template it was given
 * in, whatever later templates changed. */
struct build_context {
  char *user, *workdir; /* owned; NULL = none */
  struct build_envs env;
};

/* Where a build stands: what the next step begins with. */
struct build_state {
  char key[BUILD_KEY];
  struct buf layers; /* paths, top first, one per line */
  size_t nlayers;
  struct build_envs env;
  char *user, *workdir, *start, *ready; /* owned; NULL = none */
  struct build_context *inherited;      /* of `start` and `ready`; NULL: env, user and workdir above */
};

#define BUILD_LAYERS_MAX 100 /* an overlay takes a few more */

void build_state_free(struct build_state *s);
/* From {"env":{},"user":"","workdir":"","start":"","ready":"","startContext":{"env":{},"user":"","workdir":""}}; what
 * is not there stays as it is. A start command without a context of its own has that of the settings it came with. */
int build_state_read(struct build_state *s, struct str config, struct err *err);
/* The same from its member "cloche", if there is one: the settings of an exported template. */
int build_state_exported(struct build_state *s, struct str config, struct err *err);
void build_state_config(const struct build_state *s, bool commands,
                        struct buf *out); /* and back; commands: start and ready too */
void build_state_env(struct build_state *s, struct str name, struct str value);
void build_state_text(char **slot, struct str value);
void build_state_own_start(struct build_state *s); /* start and ready run in what the build made from now on */
/* $NAME and ${NAME} from the build's variables, "" where there is none, \$ a dollar sign; everything else to the
 * letter. No shell looks at it. -E2BIG when `out` is full. */
int build_state_expand(const struct build_state *s, struct str text, struct buf *out);
int build_state_layer(struct build_state *s, const char *path, struct err *err); /* on top of the others */

/* MiB of the disk of a template's boxes. What the steps write is in layers, below a box's own disk: all of that is free
 * at first, but for what its filesystem needs itself. A wish (0 = none) never shrinks what it `has`, is rounded up,
 * because each size has seeds and pooled disks, and one over `most` is met as far as that goes. */
#define BUILD_DISK_STEP_MB 1024
unsigned build_disk_mb(unsigned has, unsigned wish, unsigned most);

/* A key from parts: every part counts with its length, so that no two rows of parts give one key. */
struct build_hash {
  struct sha256 sha;
};
void build_hash_begin(struct build_hash *h, const char *what);
void build_hash_add(struct build_hash *h, struct str part);
void build_hash_end(struct build_hash *h, char key[BUILD_KEY]);

#endif
