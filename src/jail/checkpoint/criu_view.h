/* SPDX-License-Identifier: Apache-2.0 */
/* criu_view.h - a checkpoint as one restore sees it: the files as they are, but for the few that name the box.
 *
 * A checkpoint is restored into boxes with other ids and names, several at a time, and the processes of a restore read
 * it as the box's root. So criu sees it through a mount that gives its files the box's ids, and the maps of ids and the
 * host's name are laid over it as files of this restore's own. */
#ifndef CLOCHE_JAIL_CHECKPOINT_CRIU_VIEW_H
#define CLOCHE_JAIL_CHECKPOINT_CRIU_VIEW_H

#include "jail/checkpoint/manifest.h"

#define CRIU_OWN_MAX 4

struct criu_view {
  int files; /* detached mount of the checkpoint */
  int own;   /* detached mount with this restore's own files; criu's log goes there, too */
  struct {
    char name[64]; /* in both */
  } covers[CRIU_OWN_MAX];
  size_t n;
};
#define CRIU_VIEW_NONE ((struct criu_view){.files = -1, .own = -1})

/* userns: a mapping of `ids` ids from id_base on. */
int criu_view_open(int checkpoint, const struct manifest *m, int userns, uint32_t id_base, uint32_t ids,
                   const char *hostname, struct criu_view *out, struct err *err);
void criu_view_close(struct criu_view *v);

#endif
