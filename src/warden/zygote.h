/* zygote.h - a loaded Python per template build, outside all boxes; its forks move into newborn boxes and are their
 * nurseries. A template without Python has none, and its boxes are the same but colder. */
#ifndef CLOCHE_ZYGOTE_H
#define CLOCHE_ZYGOTE_H

#include "jail/jail.h"
#include "warden/warden.h"

struct zygote;

/* The build's zygote, started when it has none yet and could have one. NULL: this template has no use for one. */
struct zygote *zygote_of(struct warden *w, struct build *b);
bool zygote_ready(const struct zygote *z);
bool zygote_hopeful(const struct zygote *z);  /* ready or still loading */
uint32_t zygote_user(const struct zygote *z); /* the host user whose forks enter boxes: spec.owner */

/* Sends a fork into the box; `sock` becomes its protocol socket. Any thread. The fork says `ready` to the agent. */
int zygote_enter(struct zygote *z, const struct jail_spec *spec, const struct jail *j, int sock, struct err *err);
void zygote_rest(struct warden *w, const struct build *b); /* nobody needs it for now; its next use starts another */
void zygote_stop_all(struct warden *w);

#endif
