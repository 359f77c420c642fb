/* SPDX-License-Identifier: Apache-2.0 */
/* build_state.c - see build_state.h. */
#include "warden/build/build_state.h"

void build_state_text(char **slot, struct str value)
{
  free(*slot);
  *slot = value.n ? xstrndup(value.p, value.n) : NULL;
}

static void envs_free(struct build_envs *env)
{
  for (size_t i = 0; i < env->n; i++) {
    free(env->p[i].name);
    free(env->p[i].value);
  }
  vec_free(env);
}

void build_state_own_start(struct build_state *s)
{
  struct build_context *c = steal(&s->inherited);
  if (!c)
    return;
  envs_free(&c->env);
  free(c->user);
  free(c->workdir);
  free(c);
}

void build_state_free(struct build_state *s)
{
  build_state_own_start(s);
  envs_free(&s->env);
  buf_free(&s->layers);
  char **const texts[] = {&s->user, &s->workdir, &s->start, &s->ready};
  for (size_t i = 0; i < ARRAY_LEN(texts); i++)
    free(*texts[i]);
}

static void envs_put(struct build_envs *env, struct str name, struct str value)
{
  char *copy = xstrndup(value.n ? value.p : "", value.n);
  for (size_t i = 0; i < env->n; i++)
    if (str_is(name, env->p[i].name)) {
      free(env->p[i].value);
      env->p[i].value = copy;
      return;
    }
  struct build_env e = {xstrndup(name.n ? name.p : "", name.n), copy};
  vec_push(env, e);
}

void build_state_env(struct build_state *s, struct str name, struct str value)
{
  envs_put(&s->env, name, value);
}

/* ---- references ---- */

static bool name_char(char c, bool first)
{
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (!first && c >= '0' && c <= '9');
}

/* Length of the reference that s begins with, 0 when it is none; its name in *name. */
static size_t reference(struct str s, struct str *name)
{
  bool braced = s.n > 1 && s.p[1] == '{';
  size_t from = braced ? 2 : 1, at = from;
  if (s.p[0] != '$')
    return 0;
  while (at < s.n && name_char(s.p[at], at == from))
    at++;
  *name = str_sub(s, from, at - from);
  if (!name->n || (braced && (at >= s.n || s.p[at] != '}')))
    return 0;
  return braced ? at + 1 : at;
}

static struct str env_value(const struct build_state *s, struct str name)
{
  for (size_t i = 0; i < s->env.n; i++)
    if (str_is(name, s->env.p[i].name))
      return str_of(s->env.p[i].value);
  return STR("");
}

int build_state_expand(const struct build_state *s, struct str text, struct buf *out)
{
  while (text.n) {
    struct str name;
    size_t n = reference(text, &name);
    if (n) {
      buf_adds(out, env_value(s, name));
    } else {
      n = text.n > 1 && text.p[0] == '\\' && text.p[1] == '$' ? 2 : 1;
      buf_addc(out, text.p[n - 1]);
    }
    text = str_skip(text, n);
  }
  return buf_failed(out) ? -E2BIG : 0;
}

static void read_text(const struct json *v, const char *name, char **slot)
{
  struct str text = json_text(json_get(v, name), STR_NONE);
  if (text.n)
    build_state_text(slot, text);
}

static int read_settings(struct arena *a, struct str config, struct json **out, struct err *err)
{
  struct json_error why;
  *out = json_read(a, config, 0, &why);
  return *out ? 0 : err_set(err, -EINVAL, "the base's settings can't be read: %s at byte %zu", why.what, why.offset);
}

static void read_envs(const struct json *v, struct build_envs *env)
{
  const struct json *all = json_get(v, "env");
  for (const struct json *k = json_is(all, JSON_OBJECT) ? all->kids : NULL; k; k = k->next)
    if (k->type == JSON_STRING)
      envs_put(env, k->key, k->text);
}

static void read_context(struct build_state *s, const struct json *v)
{
  const struct json *own = json_get(v, "startContext");
  build_state_own_start(s);
  if (!json_text(json_get(v, "start"), STR_NONE).n)
    return;
  v = json_is(own, JSON_OBJECT) ? own : v;
  s->inherited = xcalloc(1, sizeof(*s->inherited));
  read_envs(v, &s->inherited->env);
  read_text(v, "user", &s->inherited->user);
  read_text(v, "workdir", &s->inherited->workdir);
}

static void take_settings(struct build_state *s, const struct json *v)
{
  read_envs(v, &s->env);
  read_text(v, "user", &s->user);
  read_text(v, "workdir", &s->workdir);
  read_text(v, "start", &s->start);
  read_text(v, "ready", &s->ready);
  read_context(s, v);
}

int build_state_read(struct build_state *s, struct str config, struct err *err)
{
  cleanup_arena struct arena a = ARENA_INIT(8 << 20);
  struct json *v;
  int r = read_settings(&a, config, &v, err);
  if (!r)
    take_settings(s, v);
  return r;
}

int build_state_exported(struct build_state *s, struct str config, struct err *err)
{
  cleanup_arena struct arena a = ARENA_INIT(8 << 20);
  struct json *v;
  int r = read_settings(&a, config, &v, err);
  if (!r && json_is(json_get(v, "cloche"), JSON_OBJECT))
    take_settings(s, json_get(v, "cloche"));
  return r;
}

static void put_text(struct jw *w, const char *name, const char *value)
{
  if (!value)
    return;
  jw_key(w, name);
  jw_z(w, value);
}

static void put_context(struct jw *w, const struct build_envs *env, const char *user, const char *workdir)
{
  jw_key(w, "env");
  jw_open(w, '{');
  for (size_t i = 0; i < env->n; i++) {
    jw_key(w, env->p[i].name);
    jw_z(w, env->p[i].value);
  }
  jw_close(w, '}');
  put_text(w, "user", user);
  put_text(w, "workdir", workdir);
}

static bool same_text(const char *a, const char *b)
{
  return !strcmp(a ? a : "", b ? b : "");
}

/* An inherited context that is the build's own needs no mention: what is the same has one text. */
static bool same_context(const struct build_context *c, const struct build_state *s)
{
  if (!same_text(c->user, s->user) || !same_text(c->workdir, s->workdir) || c->env.n != s->env.n)
    return false;
  for (size_t i = 0; i < c->env.n; i++)
    if (!same_text(c->env.p[i].name, s->env.p[i].name) || !same_text(c->env.p[i].value, s->env.p[i].value))
      return false;
  return true;
}

void build_state_config(const struct build_state *s, bool commands, struct buf *out)
{
  struct jw w = JW(out);
  const struct build_context *c = s->inherited;
  jw_open(&w, '{');
  put_context(&w, &s->env, s->user, s->workdir);
  if (commands) {
    put_text(&w, "start", s->start);
    put_text(&w, "ready", s->ready);
  }
  if (commands && s->start && c && !same_context(c, s)) {
    jw_key(&w, "startContext");
    jw_open(&w, '{');
    put_context(&w, &c->env, c->user, c->workdir);
    jw_close(&w, '}');
  }
  jw_close(&w, '}');
}

int build_state_layer(struct build_state *s, const char *path, struct err *err)
{
  cleanup_buf struct buf all = BUF_INIT(1 << 20);
  if (s->nlayers == BUILD_LAYERS_MAX)
    return err_set(err, -E2BIG, "the template has more than %d layers; put several commands into one step",
                   BUILD_LAYERS_MAX);
  buf_addf(&all, "%s\n", path);
  buf_adds(&all, buf_str(&s->layers));
  if (buf_failed(&all))
    return err_set(err, -E2BIG, "the list of layers is too long");
  struct buf old = s->layers;
  s->layers = all;
  all = old;
  s->nlayers++;
  return 0;
}

void build_hash_begin(struct build_hash *h, const char *what)
{
  sha256_init(&h->sha);
  build_hash_add(h, str_of(what));
}

void build_hash_add(struct build_hash *h, struct str part)
{
  uint64_t n = part.n;
  sha256_add(&h->sha, &n, sizeof(n));
  sha256_add(&h->sha, part.p, part.n);
}

void build_hash_end(struct build_hash *h, char key[BUILD_KEY])
{
  uint8_t digest[SHA256_LEN];
  sha256_end(&h->sha, digest);
  hex_encode(digest, sizeof(digest), key);
}

/* ---- the disk ---- */

#define DISK_OVERHEAD 16 /* one part of so many that a filesystem keeps for itself, at most */

unsigned build_disk_mb(unsigned has, unsigned wish, unsigned most)
{
  uint64_t wanted = (uint64_t)wish + wish / DISK_OVERHEAD;
  uint64_t rounded = (wanted + BUILD_DISK_STEP_MB - 1) / BUILD_DISK_STEP_MB * BUILD_DISK_STEP_MB;
  return MAX(has, (unsigned)MIN(rounded, (uint64_t)most));
}
