/* walls.h - what a box is walled in with: one plan for a birth, a cold start and a restore. */
#ifndef CLOCHE_WALLS_H
#define CLOCHE_WALLS_H

#include "jail/jail.h"
#include "jail/net/jail_net.h"
#include "warden/warden.h"

struct walls {
  const struct build *build;
  const char *runtime, *name, *dir; /* borrowed for as long as the spec is used */
  unsigned slot, flags;
  struct str allow, deny;
};

/* Fills spec, and net where the box gets a link (spec->net then points there); lists are in the arena. */
void walls_plan(struct warden *w, const struct walls *walls, struct arena *a, struct jail_spec *spec, struct jail_net *net);

/* Of walls that no build stands in yet; what is here must be what walls_plan says of it later. */
struct blank_kind;
void walls_blank(struct warden *w, const struct blank_kind *kind, const char *name, unsigned slot, struct arena *a, struct jail_spec *spec,
                 struct jail_net *net);

#endif
