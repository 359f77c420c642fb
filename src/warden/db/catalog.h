/* SPDX-License-Identifier: Apache-2.0 */
/* catalog.h - who may ask and what they may ask for: teams, keys, templates, builds and tags, held in memory and
 * written through to the store. Lookups never touch the database. */
#ifndef CLOCHE_WARDEN_DB_CATALOG_H
#define CLOCHE_WARDEN_DB_CATALOG_H

#include "wire/api_key.h"
#include "warden/db/store.h"

struct template
{
  struct row_template row;
  struct map tags; /* tag -> struct tag * */
};

struct tag {
  struct build *build;
  int64_t assigned_us;
};

struct build {
  struct row_build row;
  struct template *of;
  bool retired;          /* its template was deleted; kept in memory for whoever still points to it */
  bool pinned;           /* of a fork: boxes are still being made from it */
  bool settled;          /* of a fork: its layer is on stable storage */
  uint64_t counted;      /* of a fork: the last count that saw it; see storage_quota.c */
  struct zygote *zygote; /* its loaded Python, shared; set by zygote_of */
};

struct catalog;
struct tag_event;

/* Loads everything; makes the system team, and a first team with a first key when there is none: `first_key` then
 * holds the key's text (shown once, only its hash is kept), else it is "". */
int catalog_open(struct store *store, struct catalog **out, char first_key[KEY_TEXT], struct err *err);
void catalog_close(struct catalog *c);

/* Takes in templates/<name>.json of a template store directory: a new build where the layers changed. */
int catalog_import(struct catalog *c, const char *dir, struct err *err);

const struct row_team *catalog_team(struct catalog *c, struct str id);
const struct row_team *catalog_team_by_key(struct catalog *c, struct str hash);
const struct row_team *catalog_first_team(struct catalog *c);
bool catalog_system_team(const struct row_team *t);
bool catalog_ready_made(const struct template *t); /* the system team's: taken in from the operator's store */
size_t catalog_teams(struct catalog *c, const struct row_team *const **out);
/* A new team when r->id is empty (id and slug are made here), else a change of name and limits. r gets what is kept. */
int catalog_team_put(struct catalog *c, struct row_team *r, struct err *err);
void catalog_key_used(struct catalog *c, struct str hash, int64_t when_us); /* written back lazily */
const struct row_key *catalog_key_by_hash(struct catalog *c, struct str hash);
size_t catalog_team_keys(struct catalog *c, struct str team); /* how many it has, with access tokens */

int catalog_key_add(struct catalog *c, struct str team, struct str name, struct str hash, struct str mask,
                    const struct row_key **out, struct err *err);
/* A key that goes with its access token; beyond `most` of one token the least recently used goes. */
int catalog_token_key_add(struct catalog *c, const struct row_key *token, size_t most, struct str hash, struct str mask,
                          const struct row_key **out, struct err *err);
/* One that ends by itself; who looks after that is src/warden/rpc/login_handlers.c. */
int catalog_session_key_add(struct catalog *c, struct str team, struct str name, struct str hash, struct str mask,
                            int64_t expires_us, const struct row_key **out, struct err *err);
int catalog_key_rename(struct catalog *c, struct str team, struct str id, struct str name, struct err *err);
int catalog_key_delete(struct catalog *c, struct str team, struct str id, struct err *err); /* with those made for it */
size_t catalog_keys(struct catalog *c, const struct row_key *const **out);

/* `[namespace/]alias[:tag]` or a template id. -EINVAL bad syntax, -ENOENT unknown template, -ESTALE known template but
 * no such tag; err says which. */
int catalog_find(struct catalog *c, struct str team, struct str ref, struct template **t, struct build **b,
                 struct err *err);
struct build *catalog_build(struct catalog *c, struct str id);
/* Paths of a build's layers, top first, the runtime layer below them all; NULL-terminated, in the arena. */
const char *const *build_layers(struct arena *a, const struct build *b, const char *data, const char *runtime);
/* The template of a reference, whatever its tag; visible ones only. by_id (may be NULL): it was named by its id. */
int catalog_template(struct catalog *c, struct str team, struct str ref, struct template **t, bool *by_id,
                     struct err *err);
bool catalog_foreign(struct catalog *c, struct str team,
                     struct str ref);                    /* it is the id of a template the team may not see */
struct build *catalog_default(const struct template *t); /* the build of its default tag, or NULL */
size_t catalog_builds(struct catalog *c, struct build *const **out);
size_t catalog_retired(struct catalog *c, struct build *const **out); /* of deleted templates */
/* Changes; -EPERM when the template is another team's. It must not be used any more when it is deleted. */
int catalog_publish(struct catalog *c, struct str team, struct template *t, bool public, struct err *err);
int catalog_delete(struct catalog *c, struct str team, struct template *t, struct err *err);
/* Tags joined by commas. */
int catalog_tag(struct catalog *c, struct str team, struct str ref, struct str tags, struct build **out,
                struct err *err);
int catalog_untag(struct catalog *c, struct str team, struct str ref, struct str tags, struct err *err);
/* Where the tags of a template were put, newest first; read from the store. */
void catalog_tag_history(struct catalog *c, const struct template *t, void (*fn)(const struct tag_event *, void *),
                         void *arg);
/* Adds what is missing of `tags` (joined by commas) to the list in b, lowered; -EINVAL names the one that is none. */
int catalog_tags_read(struct buf *b, struct str tags, struct err *err);
/* The team's template of that name; a new one gets `id`. -EEXIST when the name is another template's id. */
int catalog_template_make(struct catalog *c, struct str team, struct str alias, struct str id, struct template **out,
                          struct err *err);
/* A finished build: kept, and the tags (joined by commas) point to it from now on. row is copied. */
int catalog_build_add(struct catalog *c, struct template *t, const struct row_build *row, struct str tags,
                      struct err *err);
int catalog_build_remove(struct catalog *c, struct build *b,
                         struct err *err);           /* with its tags; it must not be used any more */
const char *template_name(const struct template *t); /* "" for a snapshot without a name: its name is its id */
size_t catalog_templates(struct catalog *c, struct template *const **out);
void catalog_spawned(struct catalog *c, struct template *t, int64_t when_us); /* counts; written back lazily */
void catalog_flush(struct catalog *c);

#endif
