/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - what survives the daemon: teams, keys, templates, boxes and how they ended. On one of two engines: SQLite
 * in WAL mode, where a commit writes to the page cache only and the log is folded back by a thread of its own, so no
 * request waits for a disk; or PostgreSQL (src/store/store_postgres.h), where a call waits for the network. */
#ifndef CLOCHE_WARDEN_DB_STORE_H
#define CLOCHE_WARDEN_DB_STORE_H

#include "base/base.h"
#include "wire/sizes.h"

/* Version of the tables that this program writes; an older program refuses a newer database (and so does an older
 * package, which reads this line: packaging/debian/rules). */
#define STORE_SCHEMA 27

struct store;

int store_open(const char *path, struct store **out, struct err *err);
void store_close(struct store *s);
/* Folds the log back and fsyncs; own connection, any thread. Where the log is over its bound nevertheless, readers wait
 * until it is emptied. */
int store_checkpoint(struct store *s);
/* Of the log, and of one reader's time (0 = none). */
void store_bound(struct store *s, uint64_t log_bytes, int64_t read_us);
uint64_t store_log_size(const struct store *s);
int store_harden(struct store *s); /* what was committed survives a power cut from now on; any thread */
/* All of it, without what deleted and replaced rows left in the file and its log. */
int store_rewrite(struct store *s, struct err *err);

/* Changes between the two are made together or not at all; `r` is what they came to, and decides. Pairs may be nested:
 * the outermost one counts. */
int store_begin(struct store *s, struct err *err);
int store_end(struct store *s, int r, struct err *err); /* returns r, or the failure of the commit */
/* Another connection, for a thread of its own: one that only reads; one that writes now and then, a little at a time,
 * because the loop waits for it. store_close closes them. */
int store_open_reader(const struct store *s, struct store **out, struct err *err);
int store_open_writer(const struct store *s, struct store **out, struct err *err);
/* What a reader found is not all there is, because its time was over: -ENOBUFS, with a reason. */
int store_read_late(const struct store *reader, struct err *err);

/* A small value by name: instance, secret, ... -ENOENT when absent. */
int store_meta_get(struct store *s, const char *name, struct buf *out);
int store_meta_put(struct store *s, const char *name, struct str value, struct err *err);

struct row_team {
  char id[UUID_SIZE], name[DISPLAY_NAME_SIZE], slug[DISPLAY_NAME_SIZE];
  /* 0 = what the server's settings say */
  uint32_t boxes_max, creates_per_s, timeout_max_s, cpus_max, memory_max_mb, disk_max_mb;
  uint32_t memory_total_mb; /* of its running boxes together */
  uint32_t storage_max_mb, paused_max, snapshots_max;
  uint32_t isolation; /* enum isolation, of sandboxes whose create and template name none */
};
struct row_key {
  char id[UUID_SIZE], team[UUID_SIZE], name[DISPLAY_NAME_SIZE], mask[64];
  uint8_t hash[SHA256_LEN];
  int64_t created_us, used_us;
  char token[UUID_SIZE]; /* the access token it was made for; "" = none */
  int64_t expires_us;    /* from then on it is no key; 0 = never */
};
struct row_template {
  char id[TEMPLATE_ID_SIZE], team[UUID_SIZE], name[TEMPLATE_REF_SIZE];
  bool public;
  int64_t created_us, updated_us, spawned_us;
  uint64_t spawns;
};
/* A snapshot is a box's files and memory under a name; a fork's build has no name and lives as long as its
 * boxes. */
enum build_kind { BUILD_PLAIN = 0, BUILD_SNAPSHOT, BUILD_FORK };
struct row_build {
  char id[UUID_SIZE], template_id[TEMPLATE_ID_SIZE];
  enum build_kind kind;
  char source[BOX_ID_SIZE];              /* the box it was taken from; "" = none */
  char checkpoint[CHECKPOINT_NAME_SIZE]; /* directory of its memory under <data>/checkpoints; "" = it starts cold */
  char runtime[LAYER_ID_SIZE];           /* the runtime layer its checkpoint needs */
  char secret[SECRET_SIZE];              /* that the agent in its checkpoint knows */
  uint64_t checkpoint_size, layer_bytes; /* of its memory; of a snapshot's own files */
  char base[TEMPLATE_ID_SIZE];           /* of a snapshot: the template its box was first made from; "" = its own */
  char *layers;                          /* paths, top first, one per line; owned */
  char *config;                          /* JSON for the agent; owned */
  char *mounts;                          /* volumes of a copied box, see volume_mounts.h; owned; NULL or "" = none */
  unsigned cpus, memory_mb, disk_mb;
  unsigned isolation; /* enum isolation, of creates that name none */
  int64_t created_us;
};
struct row_box {
  char id[BOX_ID_SIZE], team[UUID_SIZE], template_id[TEMPLATE_ID_SIZE], alias[TEMPLATE_REF_SIZE], build[UUID_SIZE],
      runtime[LAYER_ID_SIZE], secret[SECRET_SIZE];
  char *config; /* owned */
  char *init;   /* owned; kept so that a cold boot gives the agent the same start */
  unsigned flags, cpus, memory_mb, disk_mb, slot, state;
  unsigned timeout_s; /* as asked at creation; traffic that wakes the box gives it as much */
  uint64_t run;
  int64_t started_us, end_us;
  struct proc_id init_proc;
  char host_name[HOST_NAME_SIZE];        /* its name on the host: cgroup, directory under boxes/ */
  unsigned tier;                         /* enum box_tier, of a paused box */
  char checkpoint[CHECKPOINT_NAME_SIZE]; /* directory of its memory under <data>/checkpoints while it is paused on disk;
                                            "" = none */
  uint64_t checkpoint_size;
  char *allow, *deny;          /* its lists, as lines; owned */
  char *mounts;                /* its volumes, see volume_mounts.h; owned; NULL or "" = none */
  char *tokens;                /* identity tokens it may ask for: lines of name, tab, audience; owned, may be NULL */
  char execution[UUID_SIZE];   /* of this run: a new one at its launch and whenever it is resumed */
  char base[TEMPLATE_ID_SIZE]; /* the template it was first made from, where template_id is a snapshot; else "" */
};

/* A template's build on its way: asked for, at work, failed or done. A row of `build` appears under the same id when it
 * is done. */
struct row_job {
  char id[UUID_SIZE], template_id[TEMPLATE_ID_SIZE], team[UUID_SIZE];
  char *tags;   /* joined by commas; owned */
  char *reason; /* why it failed; owned, may be NULL */
  char step[16];
  unsigned state, cpus, memory_mb; /* enum job_state */
  unsigned free_disk_mb;           /* wanted after the steps; 0 = no wish */
  unsigned isolation;              /* enum isolation, of its build */
  int64_t created_us, started_us, finished_us;
};

void row_job_free(struct row_job *r);
int store_job_put(struct store *s, const struct row_job *r, struct err *err);
/* A recipe that waits with its job (recipe.h); it goes when the job is saved in another state, or deleted. */
int store_job_recipe_put(struct store *s, const char *id, struct str recipe, struct err *err);
int store_job_recipe(struct store *s, const char *id, struct buf *out); /* -ENOENT: there is none */
int store_job_delete(struct store *s, const char *id, struct err *err);
int store_jobs(struct store *s, int (*fn)(const struct row_job *, void *), void *arg);

void row_build_free(struct row_build *r);
void row_box_free(struct row_box *r);

int store_team_put(struct store *s, const struct row_team *r, struct err *err);
int store_key_put(struct store *s, const struct row_key *r, struct err *err);
int store_key_delete(struct store *s, const char *id, struct err *err); /* with those made for it */
int store_template_put(struct store *s, const struct row_template *r, struct err *err);
int store_template_delete(struct store *s, const char *id, struct err *err); /* with its builds and tags */
int store_tag_delete(struct store *s, const char *template_id, const char *tag, struct err *err);
int store_build_put(struct store *s, const struct row_build *r, struct err *err);
int store_build_delete(struct store *s, const char *id, struct err *err); /* with its tags */
int store_build_drop_checkpoint(struct store *s, const char *id, struct err *err);
int store_tag_put(struct store *s, const char *template_id, const char *tag, const char *build, int64_t when,
                  struct err *err);
int store_box_put(struct store *s, const struct row_box *r, struct err *err);
int store_box_end_time(struct store *s, const char *id, int64_t end_us, struct err *err);
/* The box leaves the table and its end is kept: when, why. */
int store_box_ended(struct store *s, const char *id, const char *team, int64_t when_us, const char *cause,
                    struct err *err);
/* Why and when a box ended; -ENOENT when never heard of (or forgotten). */
int store_cause(struct store *s, struct str id, struct str team, char *cause, size_t size, int64_t *when_us);
int store_forget_ended(struct store *s, int64_t before_us); /* causes and logs */
/* The last lines an ended box printed. */
int store_log_put(struct store *s, const char *id, const char *team, int64_t when_us, struct str lines,
                  struct err *err);
int store_log_get(struct store *s, struct str id, struct str team, struct buf *out); /* -ENOENT */
int store_log_trim(struct store *s, uint64_t bytes); /* the oldest go until so many are left */

/* Walks over all rows; a non-zero return of fn stops. The row is borrowed for the call. */
int store_teams(struct store *s, int (*fn)(const struct row_team *, void *), void *arg);
int store_keys(struct store *s, int (*fn)(const struct row_key *, void *), void *arg);
int store_templates(struct store *s, int (*fn)(const struct row_template *, void *), void *arg);
int store_builds(struct store *s, int (*fn)(const struct row_build *, void *), void *arg);
int store_tags(struct store *s,
               int (*fn)(const char *template_id, const char *tag, const char *build, int64_t when_us, void *),
               void *arg);
int store_boxes(struct store *s, int (*fn)(const struct row_box *, void *), void *arg);

/* Of webhook_store.h. What a team may have: of deliveries that are over, rows and bytes with all that is kept beside
 * them (0 = no bound). The oldest go in the transaction that adds others. room: whether another event of the team may
 * be queued; NULL = it may. */
struct webhook_rules {
  uint64_t kept, kept_bytes;
  bool (*room)(const char *team, void *arg);
  void *arg;
};

#endif
