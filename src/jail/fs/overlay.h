/* SPDX-License-Identifier: Apache-2.0 */
/* overlay.h - the root filesystem of a box: an overlay of idmapped layers, made by the host's root and handed over as a
 * descriptor. Files on disk carry the ids the box sees (its root is 0), whatever range the box runs under.
 *
 * Where a filesystem can't map ids, a copy of the layer with the range's own ids stands in, made once per layer and
 * range below `shifted`; a writable part there carries the range's ids too. */
#ifndef CLOCHE_JAIL_FS_OVERLAY_H
#define CLOCHE_JAIL_FS_OVERLAY_H

#include "base/base.h"

#define OVERLAY_LAYERS_MAX 120

/* Mounts that an overlay was made of and no longer needs. Each one's end waits for all processors (RCU), which nobody
 * should wait for in turn. */
struct overlay_spent {
  int fds[OVERLAY_LAYERS_MAX + 1];
  size_t n;
};
void overlay_spent_close(struct overlay_spent *spent);
#define cleanup_spent __attribute__((cleanup(overlay_spent_close)))

struct overlay_layers {
  const char *dir;             /* of the box, for messages and, on older kernels, for a moment's mounts */
  const char *const *lowers;   /* top first, NULL-terminated */
  int home;                    /* from disk_open: holds upper/ and work/ */
  int userns;                  /* of the box */
  uint32_t root;               /* the host's id of the box's root */
  const char *shifted;         /* where copies are kept; NULL: nowhere */
  struct overlay_spent *spent; /* gets what the caller closes later; NULL: it is closed at once */
};

/* A detached mount, or negative. */
int overlay_mount(const struct overlay_layers *l, struct err *err);

/* Only to be read: the same layers without the upper directory; l->home is not used. After a overlay_mount. */
int overlay_view(const struct overlay_layers *l, struct err *err);
bool overlay_views_allowed(void); /* whether a view may be made beside a root: not where both are staged in one place */

#endif
