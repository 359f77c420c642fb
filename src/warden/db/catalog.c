/* SPDX-License-Identifier: Apache-2.0 */
/* catalog.c - see catalog.h. Small tables; everything a create needs is a map lookup away. */
#include "warden/db/layer_list.h"
#include "warden/db/catalog.h"
#include "warden/db/ref.h"
#include "warden/db/tag_history.h"
#include "wire/sizes.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>

#define SYSTEM_TEAM_ID "00000000-0000-4000-8000-000000000000"
#define SYSTEM_SLUG    "cloche"
#define NAME_MAX_BYTES 128

struct catalog {
  struct store *store;
  VEC(struct row_team *) teams;
  VEC(struct row_key *) keys;
  VEC(struct template *) templates;
  VEC(struct build *) builds, retired;
  VEC(struct template *) deleted;
  struct map team_by_id, team_by_hash, key_by_hash, template_by_id, template_by_name, build_by_id;
  bool dirty, keys_dirty;
};

/* ---- loading ---- */

static struct str name_key(struct buf *b, struct str team, struct str name)
{
  buf_clear(b);
  buf_adds(b, team);
  buf_addc(b, '/');
  buf_adds(b, name);
  return buf_str(b);
}

static int load_team(const struct row_team *r, void *arg)
{
  struct catalog *c = arg;
  struct row_team *t = xmalloc(sizeof(*t));
  *t = *r;
  vec_push(&c->teams, t);
  map_put(&c->team_by_id, str_of(t->id), t);
  return 0;
}

static int load_key(const struct row_key *r, void *arg)
{
  struct catalog *c = arg;
  struct row_team *t = map_get(&c->team_by_id, str_of(r->team));
  if (!t)
    return 0;
  struct row_key *k = xmalloc(sizeof(*k));
  *k = *r;
  vec_push(&c->keys, k);
  map_put(&c->team_by_hash, str_make(k->hash, SHA256_LEN), t);
  map_put(&c->key_by_hash, str_make(k->hash, SHA256_LEN), k);
  return 0;
}

static int load_template(const struct row_template *r, void *arg)
{
  struct catalog *c = arg;
  struct template *t = xcalloc(1, sizeof(*t));
  t->row = *r;
  vec_push(&c->templates, t);
  map_put(&c->template_by_id, str_of(r->id), t);
  cleanup_buf struct buf b = BUF_INIT(1024);
  map_put(&c->template_by_name, name_key(&b, str_of(r->team), str_of(r->name)), t);
  return 0;
}

static int load_build(const struct row_build *r, void *arg)
{
  struct catalog *c = arg;
  struct template *t = map_get(&c->template_by_id, str_of(r->template_id));
  if (!t)
    return 0;
  struct build *b = xcalloc(1, sizeof(*b));
  b->row = *r;
  b->row.layers = xstrdup(r->layers);
  b->row.config = xstrdup(r->config);
  b->row.mounts = r->mounts ? xstrdup(r->mounts) : NULL;
  b->of = t;
  vec_push(&c->builds, b);
  map_put(&c->build_by_id, str_of(b->row.id), b);
  return 0;
}

static int load_tag(const char *template_id, const char *tag, const char *build, int64_t when_us, void *arg)
{
  struct catalog *c = arg;
  struct template *t = map_get(&c->template_by_id, str_of(template_id));
  struct build *b = map_get(&c->build_by_id, str_of(build));
  if (!t || !b)
    return 0;
  struct tag *now = xmalloc(sizeof(*now));
  *now = (struct tag){b, when_us};
  free(map_put(&t->tags, str_of(tag), now));
  return 0;
}

static int add_team(struct catalog *c, const char *id, const char *name, const char *slug, struct err *err)
{
  struct row_team t = {0};
  str_copyz(str_of(id), t.id, sizeof(t.id));
  str_copyz(str_of(name), t.name, sizeof(t.name));
  str_copyz(str_of(slug), t.slug, sizeof(t.slug));
  int r = store_team_put(c->store, &t, err);
  return r ? r : load_team(&t, c);
}

static int first_team(struct catalog *c, char first_key[KEY_TEXT], struct err *err)
{
  char id[UUID_TEXT], mask[64];
  uint8_t hash[SHA256_LEN];
  uuid4(id);
  int r = add_team(c, id, "Default", "default", err);
  key_make(first_key, hash, mask);
  return r ? r
           : catalog_key_add(c, str_of(id), STR("first key"), str_make(hash, sizeof(hash)), str_of(mask), NULL, err);
}

int catalog_open(struct store *store, struct catalog **out, char first_key[KEY_TEXT], struct err *err)
{
  struct catalog *c = xcalloc(1, sizeof(*c));
  c->store = store;
  first_key[0] = 0;
  store_teams(store, load_team, c);
  store_keys(store, load_key, c);
  store_templates(store, load_template, c);
  store_builds(store, load_build, c);
  store_tags(store, load_tag, c);
  int r = 0;
  if (!map_get(&c->team_by_id, STR(SYSTEM_TEAM_ID)))
    r = add_team(c, SYSTEM_TEAM_ID, "Cloche", SYSTEM_SLUG, err);
  if (!r && !catalog_first_team(c))
    r = first_team(c, first_key, err);
  if (r)
    catalog_close(c);
  else
    *out = c;
  return r;
}

static void build_free(struct build *b)
{
  row_build_free(&b->row);
  free(b);
}

static void template_free(struct template *t)
{
  void *tag;
  for (size_t i = 0; map_next(&t->tags, &i, NULL, &tag);)
    free(tag);
  map_free(&t->tags);
  free(t);
}

void catalog_close(struct catalog *c)
{
  if (!c)
    return;
  for (size_t i = 0; i < c->teams.n; i++)
    free(c->teams.p[i]);
  for (size_t i = 0; i < c->keys.n; i++)
    free(c->keys.p[i]);
  for (size_t i = 0; i < c->templates.n; i++)
    template_free(c->templates.p[i]);
  for (size_t i = 0; i < c->deleted.n; i++)
    template_free(c->deleted.p[i]);
  for (size_t i = 0; i < c->builds.n; i++)
    build_free(c->builds.p[i]);
  for (size_t i = 0; i < c->retired.n; i++)
    build_free(c->retired.p[i]);
  vec_free(&c->teams);
  vec_free(&c->keys);
  vec_free(&c->templates);
  vec_free(&c->builds);
  vec_free(&c->retired);
  vec_free(&c->deleted);
  struct map *const maps[] = {&c->team_by_id,     &c->team_by_hash,     &c->key_by_hash,
                              &c->template_by_id, &c->template_by_name, &c->build_by_id};
  for (size_t i = 0; i < ARRAY_LEN(maps); i++)
    map_free(maps[i]);
  free(c);
}

/* ---- teams and keys ---- */

const struct row_team *catalog_team(struct catalog *c, struct str id)
{
  return map_get(&c->team_by_id, id);
}

const struct row_team *catalog_team_by_key(struct catalog *c, struct str hash)
{
  const struct row_key *k = map_get(&c->key_by_hash, hash);
  return k && k->expires_us && k->expires_us <= clock_wall_us() ? NULL : map_get(&c->team_by_hash, hash);
}

bool catalog_system_team(const struct row_team *t)
{
  return !strcmp(t->id, SYSTEM_TEAM_ID);
}

bool catalog_ready_made(const struct template *t)
{
  return !strcmp(t->row.team, SYSTEM_TEAM_ID);
}

const struct row_team *catalog_first_team(struct catalog *c)
{
  for (size_t i = 0; i < c->teams.n; i++)
    if (!catalog_system_team(c->teams.p[i]))
      return c->teams.p[i];
  return NULL;
}

size_t catalog_teams(struct catalog *c, const struct row_team *const **out)
{
  *out = (const struct row_team *const *)c->teams.p;
  return c->teams.n;
}

/* A slug from a name: lower case, '-' for the rest, made unique by a number. */
static void make_slug(struct catalog *c, struct row_team *r)
{
  char base[100];
  size_t n = 0;
  for (const char *p = r->name; *p && n < sizeof(base) - 1; p++) {
    char ch = *p >= 'A' && *p <= 'Z' ? (char)(*p + 32) : *p;
    bool word = (ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9');
    if (word || (n && base[n - 1] != '-'))
      base[n++] = word ? ch : '-';
  }
  while (n && base[n - 1] == '-')
    n--;
  base[n] = 0;
  for (unsigned k = 1;; k++) {
    bool taken = false;
    snprintf(r->slug, sizeof(r->slug), k > 1 ? "%s-%u" : "%s", n ? base : "team", k);
    for (size_t i = 0; i < c->teams.n; i++)
      taken |= !strcmp(c->teams.p[i]->slug, r->slug);
    if (!taken)
      return;
  }
}

int catalog_team_put(struct catalog *c, struct row_team *r, struct err *err)
{
  struct row_team *have = r->id[0] ? map_get(&c->team_by_id, str_of(r->id)) : NULL;
  if (r->id[0] && (!have || catalog_system_team(have)))
    return err_set(err, -ENOENT, "team '%s' not found", r->id);
  if (!have && !r->name[0])
    return err_set(err, -EINVAL, "a team needs a name");
  if (have) {
    memcpy(r->slug, have->slug, sizeof(r->slug));
    if (!r->name[0])
      memcpy(r->name, have->name, sizeof(r->name));
  } else {
    uuid4(r->id);
    make_slug(c, r);
  }
  int e = store_team_put(c->store, r, err);
  if (e)
    return e;
  if (have)
    *have = *r;
  else
    load_team(r, c);
  return 0;
}

void catalog_key_used(struct catalog *c, struct str hash, int64_t when_us)
{
  struct row_key *k = map_get(&c->key_by_hash, hash);
  if (!k)
    return;
  k->used_us = when_us;
  c->keys_dirty = true;
}

const struct row_key *catalog_key_by_hash(struct catalog *c, struct str hash)
{
  return map_get(&c->key_by_hash, hash);
}

static int add_key(struct catalog *c, struct row_key *k, struct str name, struct str hash, struct str mask,
                   const struct row_key **out, struct err *err)
{
  k->created_us = clock_wall_us();
  uuid4(k->id);
  if (!catalog_team(c, str_of(k->team)) || hash.n != SHA256_LEN || str_copyz(name, k->name, sizeof(k->name)) ||
      str_copyz(mask, k->mask, sizeof(k->mask)))
    return err_set(err, -EINVAL, "a key needs a known team and a name of at most %zu bytes", sizeof(k->name) - 1);
  memcpy(k->hash, hash.p, SHA256_LEN);
  int r = store_key_put(c->store, k, err);
  if (r)
    return r;
  load_key(k, c);
  if (out)
    *out = c->keys.p[c->keys.n - 1];
  return 0;
}

int catalog_key_add(struct catalog *c, struct str team, struct str name, struct str hash, struct str mask,
                    const struct row_key **out, struct err *err)
{
  struct row_key k = {0};
  str_copyz(str_sub(team, 0, sizeof(k.team) - 1), k.team, sizeof(k.team));
  return add_key(c, &k, name, hash, mask, out, err);
}

int catalog_session_key_add(struct catalog *c, struct str team, struct str name, struct str hash, struct str mask,
                            int64_t expires_us, const struct row_key **out, struct err *err)
{
  struct row_key k = {.expires_us = expires_us};
  str_copyz(str_sub(team, 0, sizeof(k.team) - 1), k.team, sizeof(k.team));
  return add_key(c, &k, name, hash, mask, out, err);
}

static int64_t last_use(const struct row_key *k)
{
  return MAX(k->created_us, k->used_us);
}

/* The least recently used key of the token, where it has as many as it may. */
static const struct row_key *surplus_key(struct catalog *c, const struct row_key *token, size_t most)
{
  const struct row_key *oldest = NULL;
  size_t n = 0;
  for (size_t i = 0; i < c->keys.n; i++) {
    const struct row_key *k = c->keys.p[i];
    if (strcmp(k->token, token->id) != 0)
      continue;
    n++;
    if (!oldest || last_use(k) < last_use(oldest))
      oldest = k;
  }
  return n >= most ? oldest : NULL;
}

int catalog_token_key_add(struct catalog *c, const struct row_key *token, size_t most, struct str hash, struct str mask,
                          const struct row_key **out, struct err *err)
{
  struct row_key k = {0};
  memcpy(k.team, token->team, sizeof(k.team));
  memcpy(k.token, token->id, sizeof(k.token));
  for (const struct row_key *old; (old = surplus_key(c, token, most));) {
    char id[UUID_SIZE];
    memcpy(id, old->id, sizeof(id));
    int r = catalog_key_delete(c, str_of(k.team), str_of(id), err);
    if (r)
      return r;
  }
  return add_key(c, &k, STR("made for an access token"), hash, mask, out, err);
}

size_t catalog_team_keys(struct catalog *c, struct str team)
{
  size_t n = 0;
  for (size_t i = 0; i < c->keys.n; i++)
    n += str_is(team, c->keys.p[i]->team);
  return n;
}

static ptrdiff_t find_key(struct catalog *c, struct str team, struct str id)
{
  for (size_t i = 0; i < c->keys.n; i++)
    if (str_is(id, c->keys.p[i]->id) && str_is(team, c->keys.p[i]->team))
      return (ptrdiff_t)i;
  return -1;
}

int catalog_key_rename(struct catalog *c, struct str team, struct str id, struct str name, struct err *err)
{
  ptrdiff_t i = find_key(c, team, id);
  if (i < 0)
    return err_set(err, -ENOENT, "API key '" STR_FMT "' not found", STR_ARG(id));
  struct row_key k = *c->keys.p[i];
  if (!name.n || str_copyz(name, k.name, sizeof(k.name)))
    return err_set(err, -EINVAL, "a key's name has 1 to %zu bytes", sizeof(k.name) - 1);
  int r = store_key_put(c->store, &k, err);
  if (!r)
    *c->keys.p[i] = k;
  return r;
}

static void forget_key(struct catalog *c, size_t i)
{
  struct row_key *k = c->keys.p[i];
  map_del(&c->team_by_hash, str_make(k->hash, SHA256_LEN));
  map_del(&c->key_by_hash, str_make(k->hash, SHA256_LEN));
  vec_remove(&c->keys, i);
  free(k);
}

int catalog_key_delete(struct catalog *c, struct str team, struct str id, struct err *err)
{
  ptrdiff_t i = find_key(c, team, id);
  if (i < 0)
    return err_set(err, -ENOENT, "API key '" STR_FMT "' not found", STR_ARG(id));
  int r = store_key_delete(c->store, c->keys.p[i]->id, err);
  if (r)
    return r;
  char gone[UUID_SIZE];
  memcpy(gone, c->keys.p[i]->id, sizeof(gone));
  for (size_t k = c->keys.n; k-- > 0;)
    if (!strcmp(c->keys.p[k]->id, gone) || !strcmp(c->keys.p[k]->token, gone))
      forget_key(c, k);
  return 0;
}

size_t catalog_keys(struct catalog *c, const struct row_key *const **out)
{
  *out = (const struct row_key *const *)c->keys.p;
  return c->keys.n;
}

/* ---- templates ---- */

static struct template *by_name(struct catalog *c, struct str team, struct str alias)
{
  cleanup_buf struct buf b = BUF_INIT(1024);
  return map_get(&c->template_by_name, name_key(&b, team, alias));
}

static struct template *in_namespace(struct catalog *c, struct str slug, struct str team, struct str alias)
{
  for (size_t i = 0; i < c->teams.n; i++) {
    if (!str_is(slug, c->teams.p[i]->slug))
      continue;
    struct template *t = by_name(c, str_of(c->teams.p[i]->id), alias);
    return t && (t->row.public || str_is(team, t->row.team)) ? t : NULL;
  }
  return NULL;
}

/* A bare alias means the team's own, then the shared one, then a template id. */
static struct template *look_up(struct catalog *c, struct str team, struct str space, struct str alias, bool *by_id)
{
  *by_id = false;
  if (space.n)
    return in_namespace(c, space, team, alias);
  struct template *found = by_name(c, team, alias);
  if (!found)
    found = by_name(c, STR(SYSTEM_TEAM_ID), alias);
  if (found)
    return found;
  *by_id = true;
  found = map_get(&c->template_by_id, alias);
  return found && (found->row.public || str_is(team, found->row.team)) ? found : NULL;
}

int catalog_template(struct catalog *c, struct str team, struct str ref, struct template **t, bool *by_id,
                     struct err *err)
{
  cleanup_buf struct buf lowered = BUF_INIT(1024);
  struct ref name;
  bool named;
  int r = ref_read(ref, &lowered, &name, err);
  if (r)
    return r;
  *t = look_up(c, team, name.space, name.alias, by_id ? by_id : &named);
  if (!*t && !name.space.n && map_get(&c->template_by_id, name.alias))
    return err_set(err, -EPERM, "template '" STR_FMT "' belongs to another team", STR_ARG(ref));
  return *t ? 0 : err_set(err, -ENOENT, "template '" STR_FMT "' not found", STR_ARG(ref));
}

bool catalog_foreign(struct catalog *c, struct str team, struct str ref)
{
  const struct template *t = map_get(&c->template_by_id, ref);
  return t && !t->row.public && !str_is(team, t->row.team);
}

int catalog_find(struct catalog *c, struct str team, struct str ref, struct template **t, struct build **b,
                 struct err *err)
{
  cleanup_buf struct buf lowered = BUF_INIT(1024);
  struct ref name;
  bool by_id;
  int r = ref_read(ref, &lowered, &name, err);
  if (r)
    return r;
  struct template *found = look_up(c, team, name.space, name.alias, &by_id);
  if (!found)
    return err_set(err, -ENOENT, "template '" STR_FMT "' not found", STR_ARG(ref));
  struct tag *have = map_get(&found->tags, name.tag);
  struct build *build = have ? have->build : NULL;
  if (!build && uuid_valid(name.tag)) { /* a build may stand in the tag's place */
    build = catalog_build(c, name.tag);
    build = build && build->of == found ? build : NULL;
  }
  if (!build)
    return err_set(err, -ESTALE, "tag '" STR_FMT "' does not exist for template '" STR_FMT "'", STR_ARG(name.tag),
                   STR_ARG(name.alias));
  *t = found;
  *b = build;
  return 0;
}

const char *const *build_layers(struct arena *a, const struct build *b, const char *data, const char *runtime)
{
  return layer_stack(a, str_of(b->row.layers), data, runtime);
}

struct build *catalog_build(struct catalog *c, struct str id)
{
  return map_get(&c->build_by_id, id);
}

size_t catalog_templates(struct catalog *c, struct template *const **out)
{
  *out = c->templates.p;
  return c->templates.n;
}

void catalog_spawned(struct catalog *c, struct template *t, int64_t when_us)
{
  t->row.spawns++;
  t->row.spawned_us = when_us;
  c->dirty = true;
}

void catalog_flush(struct catalog *c)
{
  for (size_t i = 0; c->dirty && i < c->templates.n; i++)
    store_template_put(c->store, &c->templates.p[i]->row, NULL);
  for (size_t i = 0; c->keys_dirty && i < c->keys.n; i++)
    store_key_put(c->store, c->keys.p[i], NULL);
  c->dirty = c->keys_dirty = false;
}

/* ---- changes ---- */

void catalog_tag_history(struct catalog *c, const struct template *t, void (*fn)(const struct tag_event *, void *),
                         void *arg)
{
  tag_history_each(c->store, t->row.id, fn, arg);
}

struct build *catalog_default(const struct template *t)
{
  struct tag *tag = map_get(&t->tags, STR("default"));
  return tag ? tag->build : NULL;
}

size_t catalog_retired(struct catalog *c, struct build *const **out)
{
  *out = c->retired.p;
  return c->retired.n;
}

size_t catalog_builds(struct catalog *c, struct build *const **out)
{
  *out = c->builds.p;
  return c->builds.n;
}

static int owned(struct str team, const struct template *t, struct err *err)
{
  return str_is(team, t->row.team) ? 0 : err_set(err, -EPERM, "template '%s' belongs to another team", t->row.name);
}

int catalog_publish(struct catalog *c, struct str team, struct template *t, bool public, struct err *err)
{
  int r = owned(team, t, err);
  if (r)
    return r;
  struct row_template next = t->row;
  next.public = public;
  next.updated_us = clock_wall_us();
  r = store_template_put(c->store, &next, err);
  if (!r)
    t->row = next;
  return r;
}

const char *template_name(const struct template *t)
{
  return strcmp(t->row.name, t->row.id) ? t->row.name : "";
}

static void forget_tags(const struct build *b)
{
  struct str name;
  void *tag;
  for (size_t i = 0; b->of && map_next(&b->of->tags, &i, &name, &tag);)
    if (((struct tag *)tag)->build == b) {
      map_del(&b->of->tags, name);
      free(tag);
    }
}

int catalog_build_remove(struct catalog *c, struct build *b, struct err *err)
{
  int r = store_build_delete(c->store, b->row.id, err);
  if (!r)
    forget_tags(b);
  for (size_t i = c->builds.n; !r && i-- > 0;)
    if (c->builds.p[i] == b) {
      map_del(&c->build_by_id, str_of(b->row.id));
      vec_remove(&c->builds, i);
      build_free(b);
      break;
    }
  return r;
}

int catalog_delete(struct catalog *c, struct str team, struct template *t, struct err *err)
{
  int r = owned(team, t, err);
  r = r ? r : store_template_delete(c->store, t->row.id, err);
  if (r)
    return r;
  cleanup_buf struct buf b = BUF_INIT(1024);
  map_del(&c->template_by_name, name_key(&b, str_of(t->row.team), str_of(t->row.name)));
  map_del(&c->template_by_id, str_of(t->row.id));
  for (size_t i = c->builds.n; i-- > 0;) {
    struct build *build = c->builds.p[i];
    if (build->of != t)
      continue;
    map_del(&c->build_by_id, str_of(build->row.id));
    build->retired = true;
    vec_push(&c->retired, build);
    vec_remove(&c->builds, i);
  }
  for (size_t i = c->templates.n; i-- > 0;)
    if (c->templates.p[i] == t)
      vec_remove(&c->templates, i);
  vec_push(&c->deleted, t);
  return 0;
}

/* Each tag of a list joined by commas, lowered; stops at the first one that is none. */
static int each_tag(struct str tags, struct err *err, int (*fn)(const char *tag, void *arg, struct err *err), void *arg)
{
  struct str one;
  int r = tags.n ? 0 : err_set(err, -EINVAL, "no tags are given");
  while (!r && tags.n) {
    char tag[TAG_SIZE];
    str_cut(tags, ',', &one, &tags);
    for (size_t i = 0; i < one.n && i < sizeof(tag); i++)
      tag[i] = one.p[i] >= 'A' && one.p[i] <= 'Z' ? (char)(one.p[i] + 32) : one.p[i];
    if (one.n >= sizeof(tag) || !ref_word((struct str){tag, one.n}, "_.-") || uuid_valid((struct str){tag, one.n}))
      return err_set(err, -EINVAL, "Invalid tag '" STR_FMT "': up to 128 of a-z 0-9 _ . - and no UUID", STR_ARG(one));
    tag[one.n] = 0;
    r = fn(tag, arg, err);
  }
  return r;
}

struct tagging {
  struct catalog *c;
  struct template *t;
  struct build *b;
  size_t more; /* tags that are new to the template */
};

#define TEMPLATE_TAGS_MAX 1000 /* everyone who reads a template's tags gets all of them */

static int room_for_tag(const char *tag, void *arg, struct err *err)
{
  struct tagging *g = arg;
  if (map_get(&g->t->tags, str_of(tag)) || g->t->tags.n + ++g->more <= TEMPLATE_TAGS_MAX)
    return 0;
  return err_set(err, -EINVAL, "the template has %zu tags and may have %d; delete some before adding '%s'",
                 (size_t)g->t->tags.n, TEMPLATE_TAGS_MAX, tag);
}

static int put_tag(const char *tag, void *arg, struct err *err)
{
  struct tagging *g = arg;
  int64_t now = clock_wall_us();
  int r = store_tag_put(g->c->store, g->t->row.id, tag, g->b->row.id, now, err);
  r = r ? r : tag_history_add(g->c->store, g->t->row.id, tag, g->b->row.id, now, err);
  return r ? r : load_tag(g->t->row.id, tag, g->b->row.id, now, g->c);
}

int catalog_tag(struct catalog *c, struct str team, struct str ref, struct str tags, struct build **out,
                struct err *err)
{
  struct tagging g = {.c = c};
  int r = catalog_find(c, team, ref, &g.t, &g.b, err);
  r = r ? r : owned(team, g.t, err);
  r = r ? r : each_tag(tags, err, room_for_tag, &g);
  r = r ? r : each_tag(tags, err, put_tag, &g);
  *out = g.b;
  return r;
}

static int not_default(const char *tag, void *arg, struct err *err)
{
  return strcmp(tag, "default") ? 0 : err_set(err, -EINVAL, "the tag 'default' can't be deleted");
}

static int drop_tag(const char *tag, void *arg, struct err *err)
{
  struct tagging *g = arg;
  int r = store_tag_delete(g->c->store, g->t->row.id, tag, err);
  if (!r)
    free(map_del(&g->t->tags, str_of(tag)));
  return r;
}

int catalog_untag(struct catalog *c, struct str team, struct str ref, struct str tags, struct err *err)
{
  struct tagging g = {.c = c};
  if (str_find(ref, ':') >= 0)
    return err_set(err, -EINVAL, "the name '" STR_FMT "' may not carry a tag", STR_ARG(ref));
  int r = catalog_template(c, team, ref, &g.t, NULL, err);
  r = r ? r : owned(team, g.t, err);
  r = r ? r : each_tag(tags, err, not_default, NULL);
  return r ? r : each_tag(tags, err, drop_tag, &g);
}

static int list_tag(const char *tag, void *arg, struct err *err)
{
  struct buf *b = arg;
  struct str rest = buf_str(b), one;
  while (rest.n) {
    str_cut(rest, ',', &one, &rest);
    if (str_is(one, tag))
      return 0;
  }
  buf_addf(b, "%s%s", b->n ? "," : "", tag);
  return buf_failed(b) ? err_set(err, -EINVAL, "too many tags") : 0;
}

int catalog_tags_read(struct buf *b, struct str tags, struct err *err)
{
  return each_tag(tags, err, list_tag, b);
}

/* ---- builds ---- */

int catalog_template_make(struct catalog *c, struct str team, struct str alias, struct str id, struct template **out,
                          struct err *err)
{
  struct template *have = by_name(c, team, alias);
  if (have)
    return *out = have, 0;
  if (map_get(&c->template_by_id, alias))
    return err_set(err, -EEXIST, "the name '" STR_FMT "' is the id of a template", STR_ARG(alias));
  struct row_template r = {.created_us = clock_wall_us()};
  r.updated_us = r.created_us;
  if (!ref_word(alias, "_-") || alias.n > NAME_MAX_BYTES || str_copyz(alias, r.name, sizeof(r.name)))
    return err_set(err, -EINVAL, "a template's name has 1 to %d of a-z 0-9 _ -", NAME_MAX_BYTES);
  if (!ref_word(id, "") || str_copyz(id, r.id, sizeof(r.id)) || str_copyz(team, r.team, sizeof(r.team)) ||
      map_get(&c->template_by_id, id))
    return err_set(err, -EINVAL, "invalid template ID");
  int e = store_template_put(c->store, &r, err);
  if (e)
    return e;
  load_template(&r, c);
  *out = c->templates.p[c->templates.n - 1];
  return 0;
}

int catalog_build_add(struct catalog *c, struct template *t, const struct row_build *row, struct str tags,
                      struct err *err)
{
  int r = store_build_put(c->store, row, err);
  if (r)
    return r;
  load_build(row, c);
  struct tagging g = {.c = c, .t = t, .b = catalog_build(c, str_of(row->id))};
  r = tags.n ? each_tag(tags, err, put_tag, &g) : 0;
  t->row.updated_us = clock_wall_us();
  return r ? r : store_template_put(c->store, &t->row, err);
}

/* ---- import ---- */

/* "path\npath\n" of the layer directories, top first. */
static int layer_list(struct json *j, const char *dir, struct buf *out, struct err *err)
{
  for (struct json *l = json_get(j, "layers") ? json_get(j, "layers")->kids : NULL; l; l = l->next) {
    struct str hash = json_text(l, STR_NONE);
    if (!ref_word(hash, ""))
      return err_set(err, -EINVAL, "invalid layer name '" STR_FMT "'", STR_ARG(hash));
    size_t at = out->n;
    buf_addf(out, "%s/layers/" STR_FMT "/fs", dir, STR_ARG(hash));
    if (access(buf_z(out) + at, F_OK))
      return err_set(err, -ENOENT, "layer %s is missing; build the templates again", buf_z(out) + at);
    buf_addc(out, '\n');
  }
  return out->n ? buf_failed(out) : err_set(err, -EINVAL, "no layers");
}

static unsigned number(struct json *j, const char *name, unsigned otherwise)
{
  int64_t v;
  return json_int(json_get(j, name), &v) || v <= 0 || v > 1 << 24 ? otherwise : (unsigned)v;
}

static int new_build(struct catalog *c, struct template *t, struct json *j, const char *layers, const char *config,
                     struct err *err)
{
  struct row_build b = {.layers = (char *)layers,
                        .config = (char *)config,
                        .cpus = number(j, "cpu", 2),
                        .memory_mb = number(j, "memoryMB", 1024),
                        .disk_mb = number(j, "diskMB", 10240),
                        .created_us = clock_wall_us()};
  uuid4(b.id);
  memcpy(b.template_id, t->row.id, sizeof(b.template_id));
  return catalog_build_add(c, t, &b, STR("default"), err);
}

static struct template *system_template(struct catalog *c, struct str name, struct err *err)
{
  struct template *t = by_name(c, STR(SYSTEM_TEAM_ID), name);
  if (t)
    return t;
  struct row_template r = {.team = SYSTEM_TEAM_ID, .public = true, .created_us = clock_wall_us()};
  random_id(r.id, 20);
  if (!ref_word(name, "_-") || str_copyz(name, r.name, sizeof(r.name)) || store_template_put(c->store, &r, err))
    return NULL;
  load_template(&r, c);
  return c->templates.p[c->templates.n - 1];
}

static int import_one(struct catalog *c, const char *dir, const char *path, struct err *err)
{
  cleanup_buf struct buf text = BUF_INIT(1 << 20), layers = BUF_INIT(1 << 16), config = BUF_INIT(1 << 20);
  cleanup_arena struct arena a = ARENA_INIT(4 << 20);
  struct json_error why;
  int r = file_read(path, &text);
  if (r)
    return err_set(err, r, "read");
  struct json *j = json_read(&a, buf_str(&text), 0, &why);
  if (!j)
    return err_set(err, -EINVAL, "not JSON: %s at byte %zu", why.what, why.offset);
  if ((r = layer_list(j, dir, &layers, err)))
    return r;
  struct template *t = system_template(c, json_text(json_get(j, "name"), STR_NONE), err);
  if (!t)
    return err->code ? err->code : err_set(err, -EINVAL, "bad name");
  struct jw w = JW(&config);
  jw_open(&w, '{');
  static const char *const keep[] = {"env", "user", "workdir"};
  for (size_t i = 0; i < ARRAY_LEN(keep); i++)
    if (json_given(json_get(j, keep[i]))) {
      jw_key(&w, keep[i]);
      jw_value(&w, json_get(j, keep[i]));
    }
  jw_close(&w, '}');
  struct build *now = catalog_default(t);
  if (now && !strcmp(now->row.layers, buf_z(&layers)) && !strcmp(now->row.config, buf_z(&config)))
    return 0;
  return new_build(c, t, j, buf_z(&layers), buf_z(&config), err);
}

int catalog_import(struct catalog *c, const char *dir, struct err *err)
{
  char path[PATH_MAX];
  snprintf(path, sizeof(path), "%s/templates", dir);
  DIR *d = opendir(path);
  if (!d)
    return err_errno(err, "template store %s", path);
  int worst = 0;
  for (struct dirent *e; (e = readdir(d));) {
    if (!str_ends(str_of(e->d_name), STR(".json")))
      continue;
    struct err why = ERR_NONE;
    snprintf(path, sizeof(path), "%s/templates/%s", dir, e->d_name);
    int r = import_one(c, dir, path, &why);
    if (r) {
      log_warn("template %s skipped: %s", path, why.msg);
      worst = r;
      if (err)
        *err = why;
    }
  }
  closedir(d);
  return worst;
}
