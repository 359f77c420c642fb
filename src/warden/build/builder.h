/* SPDX-License-Identifier: Apache-2.0 */
/* builder.h - templates' builds as the loop sees them: asked for, queued, at work on threads (build_run.h), done or
 * failed.
 *
 * A job is written to the store at every change of its state, so that a restart finds it: one that was at work begins
 * again after an orderly stop, and is failed with that reason after a crash, which it may have been the cause of. A
 * finished build is a row of the catalogue under the job's id and never changes; its tags point to it from that moment.
 * All functions run on the warden's loop. */
#ifndef CLOCHE_WARDEN_BUILD_BUILDER_H
#define CLOCHE_WARDEN_BUILD_BUILDER_H

#include "warden/db/catalog.h"
#include "warden/db/store.h"
#include "wire/fair_queue.h"
#include "wire/sizes.h"
#include "wire/wire.h"

struct warden;

struct build_run;
struct zygote;
struct builder;

struct job {
  struct fair_queue_item item; /* waiting for a thread, or at work */
  struct row_job row;
  struct build_run *run;      /* at work, or NULL */
  bool put_off;               /* the server stops; the next one starts it again */
  char kept_box[BOX_ID_SIZE]; /* sandbox that the box of its failed step has become; "": none, or the server was
                               * restarted since
                               */
};

struct build_request {
  struct str team, ref, tags, build, template_id; /* ids drawn by the gate */
  unsigned cpus, memory_mb;
  unsigned free_disk_mb; /* wanted after the steps; 0 = no wish */
  unsigned isolation;    /* enum isolation, of its sandboxes */
  struct str recipe;     /* for its start; empty: the start brings it */
  bool rebuild;          /* ref is a template that must be there */
  struct str alias;      /* of a rebuild: the name it must have; empty: any */
};

int builder_open(struct warden *w, struct err *err);
/* Everything under way is cancelled; builder_busy tells when it is over. `go_on_later`: what can begins again with the
 * next start (builder_go_on), from the steps that were finished. */
void builder_stop(struct warden *w, bool go_on_later);
void builder_go_on(struct warden *w); /* once boxes can be made */
bool builder_busy(const struct warden *w);
void builder_close(struct warden *w);

int builder_request(struct warden *w, const struct build_request *q, struct job **out, struct template **t,
                    struct err *err);
/* An empty recipe: the one it was requested with. */
int builder_start(struct warden *w, struct str team, struct str ref, struct str build, struct str recipe,
                  struct err *err);
/* A job by its build id and its template; -EPERM: another team's; -ENOENT. */
int builder_find(struct warden *w, struct str team, struct str ref, struct str build, struct job **out,
                 struct err *err);
struct job *builder_job(struct warden *w, struct str id);               /* NULL: none of that id */
struct job *builder_newest(struct warden *w, const struct template *t); /* of a template; NULL: none */
size_t builder_jobs(struct warden *w, struct job *const **out);         /* all, oldest first */
size_t builder_cancel(struct warden *w, struct str team, struct str build,
                      const char *why);                                  /* build empty: all of the team's */
void builder_template_gone(struct warden *w, const char *template_id);   /* its jobs end and are forgotten */
int builder_log(struct warden *w, const struct job *j, struct err *err); /* a descriptor to read, or negative */
/* What builds under way stand on: `need` hears of the layers each began with; every other one they use was leased
 * (layer_lease.h) at the returned time or later, in wall seconds. INT64_MAX: there is none. */
int64_t builder_needs(struct warden *w, void (*need)(const char *layers, void *arg), void *arg);
/* Now and then: what was never started fails, failures of long ago are forgotten with their logs. */
void builder_expire(struct warden *w);
bool builder_borrows(struct warden *w, const char *what);      /* a checkpoint or layer one at work will name */
bool builder_enters(struct warden *w, const struct zygote *z); /* the box of one at work may be entered by it */

/* Uploads of COPY steps: <data>/files/<team>/<hash>. `id` names an upload under way. */
int64_t builder_file_size(struct warden *w, struct str team, struct str hash); /* -1: there is none */
bool builder_file(struct warden *w, struct str team, struct str hash);
int builder_file_open(struct warden *w, struct str team, struct str hash, struct str id, struct err *err);
int builder_file_close(struct warden *w, struct str team, struct str hash, struct str id, int64_t size,
                       struct err *err); /* size < 0: drop */

#endif
