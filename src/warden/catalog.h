/* catalog.h - who may ask and what they may ask for: teams, keys, templates, builds and tags, held in memory and
 * written through to the store. Lookups never touch the database. */
#ifndef CLOCHE_CATALOG_H
#define CLOCHE_CATALOG_H

#include "warden/key.h"
#include "warden/store.h"

struct template {
  struct row_template row;
  struct map tags; /* tag -> struct build * */
};

struct build {
  struct row_build row;
  struct template *of;
};

struct catalog;

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
size_t catalog_teams(struct catalog *c, const struct row_team *const **out);

int catalog_key_add(struct catalog *c, struct str team, struct str name, struct str hash, struct str mask, const struct row_key **out,
                    struct err *err);
int catalog_key_rename(struct catalog *c, struct str team, struct str id, struct str name, struct err *err);
int catalog_key_delete(struct catalog *c, struct str team, struct str id, struct err *err);
size_t catalog_keys(struct catalog *c, const struct row_key *const **out);

/* `[namespace/]alias[:tag]` or a template id. -EINVAL bad syntax, -ENOENT unknown template, -ESTALE known template but
 * no such tag; err says which. */
int catalog_find(struct catalog *c, struct str team, struct str ref, struct template **t, struct build **b, struct err *err);
struct build *catalog_build(struct catalog *c, struct str id);
size_t catalog_templates(struct catalog *c, struct template *const **out);
void catalog_spawned(struct catalog *c, struct template *t, int64_t when_us); /* counts; written back lazily */
void catalog_flush(struct catalog *c);

#endif
