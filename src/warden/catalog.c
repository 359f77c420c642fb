/* catalog.c - see catalog.h. Small tables; everything a create needs is a map lookup away. */
#include "warden/catalog.h"

#include <dirent.h>
#include <stdio.h>

#define SYSTEM_TEAM_ID "00000000-0000-4000-8000-000000000000"
#define SYSTEM_SLUG "cloche"

struct catalog {
  struct store *store;
  VEC(struct row_team *) teams;
  VEC(struct row_key *) keys;
  VEC(struct template *) templates;
  VEC(struct build *) builds;
  struct map team_by_id, team_by_hash, template_by_id, template_by_name, build_by_id;
  bool dirty;
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
  b->of = t;
  vec_push(&c->builds, b);
  map_put(&c->build_by_id, str_of(b->row.id), b);
  return 0;
}

static int load_tag(const char *template_id, const char *tag, const char *build, void *arg)
{
  struct catalog *c = arg;
  struct template *t = map_get(&c->template_by_id, str_of(template_id));
  struct build *b = map_get(&c->build_by_id, str_of(build));
  if (t && b)
    map_put(&t->tags, str_of(tag), b);
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
  return r ? r : catalog_key_add(c, str_of(id), STR("first key"), str_make(hash, sizeof(hash)), str_of(mask), NULL, err);
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

void catalog_close(struct catalog *c)
{
  if (!c)
    return;
  for (size_t i = 0; i < c->teams.n; i++)
    free(c->teams.p[i]);
  for (size_t i = 0; i < c->keys.n; i++)
    free(c->keys.p[i]);
  for (size_t i = 0; i < c->templates.n; i++) {
    map_free(&c->templates.p[i]->tags);
    free(c->templates.p[i]);
  }
  for (size_t i = 0; i < c->builds.n; i++) {
    row_build_free(&c->builds.p[i]->row);
    free(c->builds.p[i]);
  }
  vec_free(&c->teams);
  vec_free(&c->keys);
  vec_free(&c->templates);
  vec_free(&c->builds);
  struct map *const maps[] = {&c->team_by_id, &c->team_by_hash, &c->template_by_id, &c->template_by_name, &c->build_by_id};
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
  return map_get(&c->team_by_hash, hash);
}

bool catalog_system_team(const struct row_team *t)
{
  return !strcmp(t->id, SYSTEM_TEAM_ID);
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

int catalog_key_add(struct catalog *c, struct str team, struct str name, struct str hash, struct str mask, const struct row_key **out,
                    struct err *err)
{
  struct row_key k = {.created_us = clock_wall_us()};
  uuid4(k.id);
  if (!catalog_team(c, team) || hash.n != SHA256_LEN || str_copyz(team, k.team, sizeof(k.team)) || str_copyz(name, k.name, sizeof(k.name)) ||
      str_copyz(mask, k.mask, sizeof(k.mask)))
    return err_set(err, -EINVAL, "a key needs a known team and a name of at most %zu bytes", sizeof(k.name) - 1);
  memcpy(k.hash, hash.p, SHA256_LEN);
  int r = store_key_put(c->store, &k, err);
  if (r)
    return r;
  load_key(&k, c);
  if (out)
    *out = c->keys.p[c->keys.n - 1];
  return 0;
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

int catalog_key_delete(struct catalog *c, struct str team, struct str id, struct err *err)
{
  ptrdiff_t i = find_key(c, team, id);
  if (i < 0)
    return err_set(err, -ENOENT, "API key '" STR_FMT "' not found", STR_ARG(id));
  int r = store_key_delete(c->store, c->keys.p[i]->id, err);
  if (r)
    return r;
  map_del(&c->team_by_hash, str_make(c->keys.p[i]->hash, SHA256_LEN));
  free(c->keys.p[i]);
  vec_remove(&c->keys, (size_t)i);
  return 0;
}

size_t catalog_keys(struct catalog *c, const struct row_key *const **out)
{
  *out = (const struct row_key *const *)c->keys.p;
  return c->keys.n;
}

/* ---- templates ---- */

static bool all_of(struct str s, const char *extra)
{
  for (size_t i = 0; i < s.n; i++) {
    char ch = s.p[i];
    bool ok = (ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9') || (ch && strchr(extra, ch));
    if (!ok)
      return false;
  }
  return s.n > 0;
}

/* Takes a reference apart; parts point into `lowered`. */
static int parse_ref(struct str ref, struct buf *lowered, struct str *space, struct str *alias, struct str *tag, struct err *err)
{
  ref = str_trim(ref);
  for (size_t i = 0; i < ref.n; i++)
    buf_addc(lowered, ref.p[i] >= 'A' && ref.p[i] <= 'Z' ? (char)(ref.p[i] + 32) : ref.p[i]);
  struct str whole = buf_str(lowered), rest;
  *tag = STR("default");
  if (str_cut(whole, ':', &rest, tag) && !all_of(*tag, "_.-"))
    return err_set(err, -EINVAL, "Invalid template reference '" STR_FMT "': the tag may hold a-z 0-9 _ . -", STR_ARG(ref));
  if (!tag->n)
    *tag = STR("default");
  bool has_space = str_cut(rest, '/', space, alias);
  if (!has_space) {
    *alias = rest;
    *space = STR_NONE;
  }
  if (ref.n > 257 || !all_of(*alias, "_-") || (has_space && !all_of(*space, "_-")))
    return err_set(err, -EINVAL, "Invalid template reference '" STR_FMT "': expected [namespace/]name[:tag] of a-z 0-9 _ -", STR_ARG(ref));
  return 0;
}

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

int catalog_find(struct catalog *c, struct str team, struct str ref, struct template **t, struct build **b, struct err *err)
{
  cleanup_buf struct buf lowered = BUF_INIT(1024);
  struct str space, alias, tag;
  int r = parse_ref(ref, &lowered, &space, &alias, &tag, err);
  if (r)
    return r;
  struct template *found = space.n ? in_namespace(c, space, team, alias) : by_name(c, team, alias);
  if (!found && !space.n)
    found = by_name(c, STR(SYSTEM_TEAM_ID), alias);
  if (!found && !space.n) {
    found = map_get(&c->template_by_id, alias);
    if (found && !found->row.public && !str_is(team, found->row.team))
      found = NULL;
  }
  if (!found)
    return err_set(err, -ENOENT, "template '" STR_FMT "' not found", STR_ARG(ref));
  struct build *build = map_get(&found->tags, tag);
  if (!build)
    return err_set(err, -ESTALE, "tag '" STR_FMT "' does not exist for template '" STR_FMT "'", STR_ARG(tag), STR_ARG(alias));
  *t = found;
  *b = build;
  return 0;
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
  c->dirty = false;
}

/* ---- import ---- */

/* "path\npath\n" of the layer directories, top first. */
static int layer_list(struct json *j, const char *dir, struct buf *out, struct err *err)
{
  for (struct json *l = json_get(j, "layers") ? json_get(j, "layers")->kids : NULL; l; l = l->next) {
    struct str hash = json_text(l, STR_NONE);
    if (!all_of(hash, ""))
      return err_set(err, -EINVAL, "bad layer name '" STR_FMT "'", STR_ARG(hash));
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

static int new_build(struct catalog *c, struct template *t, struct json *j, const char *layers, const char *config, struct err *err)
{
  struct row_build b = {.layers = (char *)layers,
                        .config = (char *)config,
                        .cpus = number(j, "cpu", 2),
                        .memory_mb = number(j, "memoryMB", 1024),
                        .disk_mb = number(j, "diskMB", 10240),
                        .created_us = clock_wall_us()};
  uuid4(b.id);
  memcpy(b.template_id, t->row.id, sizeof(b.template_id));
  int r = store_build_put(c->store, &b, err);
  r = r ? r : store_tag_put(c->store, t->row.id, "default", b.id, b.created_us, err);
  if (r)
    return r;
  load_build(&b, c);
  load_tag(t->row.id, "default", b.id, c);
  t->row.updated_us = b.created_us;
  return store_template_put(c->store, &t->row, err);
}

static struct template *system_template(struct catalog *c, struct str name, struct err *err)
{
  struct template *t = by_name(c, STR(SYSTEM_TEAM_ID), name);
  if (t)
    return t;
  struct row_template r = {.team = SYSTEM_TEAM_ID, .public = true, .created_us = clock_wall_us()};
  random_id(r.id, 20);
  if (!all_of(name, "_-") || str_copyz(name, r.name, sizeof(r.name)) || store_template_put(c->store, &r, err))
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
  struct build *now = map_get(&t->tags, STR("default"));
  if (now && !strcmp(now->row.layers, buf_z(&layers)) && !strcmp(now->row.config, buf_z(&config)))
    return 0;
  return new_build(c, t, j, buf_z(&layers), buf_z(&config), err);
}

int catalog_import(struct catalog *c, const char *dir, struct err *err)
{
  char path[4096];
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
      log_warn("template %s left out: %s", path, why.msg);
      worst = r;
      if (err)
        *err = why;
    }
  }
  closedir(d);
  return worst;
}
