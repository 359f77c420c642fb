/* SPDX-License-Identifier: Apache-2.0 */
/* box_spec.h - what a box is walled in with: one plan for a launch, a cold start and a restore. */
#ifndef CLOCHE_WARDEN_BOX_SPEC_H
#define CLOCHE_WARDEN_BOX_SPEC_H

#include "jail/jail.h"
#include "jail/net/jail_net.h"

struct box_egress;
struct build;
struct warden;

struct box_spec {
  const struct build *build;
  const char *runtime, *name, *dir; /* borrowed for as long as the spec is used */
  unsigned slot, flags;
  struct str allow, deny;
  const char *mounts;              /* of volume_mounts.h; NULL = none; copied */
  const struct box_egress *egress; /* NULL = the gateway has nothing to do for it */
};

/* Fills spec, and net where the box gets a link (spec->net then points there); lists are in the arena. */
void box_jail_spec(struct warden *w, const struct box_spec *box_spec, struct arena *a, struct jail_spec *spec,
                   struct jail_net *net);

/* What pre-created namespaces and the box started in them must have in common. */
struct ns_kind {
  uint32_t owner; /* host user of the zygote whose forks enter; 0 = none */
  unsigned cpus, memory_mb;
};
/* Of namespaces that are created before their build is known; must agree with what box_jail_spec says later. */
void box_ns_spec(struct warden *w, const struct ns_kind *kind, const char *name, unsigned slot, struct arena *a,
                 struct jail_spec *spec, struct jail_net *net);

#endif
