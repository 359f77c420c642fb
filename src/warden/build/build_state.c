/* SPDX-License-Identifier: Apache-2.0 */
/* build_state.c - see build_state.h. */
#include "warden/build/build_state.h"

void build_state_text(char **slot, struct str value)
{
  free(*slot);
  *slot = value.n ? xstrndup(value.p, value.n) : NULL;
}

void build_state_free(struct build_state *s)
{
  for (size_t i = 0; i < s->env.n; i++) {
    free(s->env.p[i].name);
    free(s->env.p[i].value);
  }
  vec_free(&s->env);
  buf_free(&s->layers);
  char **const texts[] = {&s->user, &s->workdir, &s->start, &s->ready};
  for (size_t i = 0; i < ARRAY_LEN(texts); i++)
    free(*texts[i]);
}

void build_state_env(struct build_state *s, struct str name, struct str value)
{
  char *copy = xstrndup(value.n ? value.p : "", value.n);
  for (size_t i = 0; i < s->env.n; i++)
    if (str_is(name, s->env.p[i].name)) {
      free(s->env.p[i].value);
      s->env.p[i].value = copy;
      return;
    }
  struct build_env e = {xstrndup(name.n ? name.p : "", name.n), copy};
  vec_push(&s->env, e);
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

static void take_settings(struct build_state *s, const struct json *v)
{
  const struct json *env = json_get(v, "env");
  for (const struct json *k = json_is(env, JSON_OBJECT) ? env->kids : NULL; k; k = k->next)
    if (k->type == JSON_STRING)
      build_state_env(s, k->key, k->text);
  read_text(v, "user", &s->user);
  read_text(v, "workdir", &s->workdir);
  read_text(v, "start", &s->start);
  read_text(v, "ready", &s->ready);
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

void build_state_config(const struct build_state *s, bool commands, struct buf *out)
{
  struct jw w = JW(out);
  jw_open(&w, '{');
  jw_key(&w, "env");
  jw_open(&w, '{');
  for (size_t i = 0; i < s->env.n; i++) {
    jw_key(&w, s->env.p[i].name);
    jw_z(&w, s->env.p[i].value);
  }
  jw_close(&w, '}');
  put_text(&w, "user", s->user);
  put_text(&w, "workdir", s->workdir);
  if (commands) {
    put_text(&w, "start", s->start);
    put_text(&w, "ready", s->ready);
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
