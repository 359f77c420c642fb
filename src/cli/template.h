/* SPDX-License-Identifier: Apache-2.0 */
/* template.h - what the files of `cloche template` share: a build and its layers, as the server tells them. */
#ifndef CLOCHE_CLI_TEMPLATE_H
#define CLOCHE_CLI_TEMPLATE_H

#include "cli/admin_client.h"

struct tpl {
  char id[TEMPLATE_ID_SIZE], team[UUID_SIZE], slug[DISPLAY_NAME_SIZE], name[TEMPLATE_REF_SIZE], build[UUID_SIZE];
  bool public;
  unsigned cpus, memory_mb, disk_mb;
  uint64_t spawns, builds;
  int64_t created_us, updated_us;
  char *layers; /* paths, top first, one per line; owned */
  char *config; /* JSON; owned */
};

/* [namespace/]name[:tag or build]; a bare name is one of `team` (an id; "" = the first team) or a shared one. */
int tpl_find(struct line *l, const char *team, const char *ref, struct tpl *out, struct err *err);
void tpl_free(struct tpl *t);
#define cleanup_tpl __attribute__((cleanup(tpl_free)))
/* The namespace of a reference as a team's id; without one, `team` or the first. */
int tpl_team(struct line *l, const char *team, struct str ref, char out[UUID_SIZE], struct err *err);

int tpl_diff(const struct tpl *a, const struct tpl *b, struct err *err);
/* argv[0]: NAME[:TAG], then options. Follows the build to its end. */
int tpl_build(struct line *l, const char *team, int argc, char **argv, struct err *err);
/* Shows a build's log, and waits for its end while it is at work. -EREMOTEIO when it failed. */
int tpl_follow(struct line *l, const char *team, const char *ref, const char *build, struct err *err);
int tpl_cancel(struct line *l, const char *team, const char *build, uint64_t *count, struct err *err);
int tpl_export(const struct tpl *t, const char *path, bool gzip, struct err *err); /* gzip: not zstd, for old readers */
/* Names of recipes to make, or --list. */
int tpl_make(struct line *l, int argc, char **argv, struct err *err);

#endif
