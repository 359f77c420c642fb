/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - see init.h.
 *
 * A token once set can be changed or cleared only by who shows it, or by who shows the secret that the warden gave the
 * agent at launch (X-Cloche-Control). The timestamps order the tries of a control plane that repeats itself; the clock
 * is left alone, because a box has the clock of its host. */
#include "agent/envd/init.h"
#include "agent/envd/http_reply.h"
#include "agent/box_identity.h"
#include "agent/machine_id.h"
#include "agent/trust.h"

#define INIT_MAX ((size_t)1 << 20)

static bool string_or_absent(const struct json *body, const char *name)
{
  const struct json *v = json_get(body, name);
  return !json_given(v) || json_is(v, JSON_STRING);
}

static int init_check(const struct json *body, struct err *err)
{
  if (!json_is(body, JSON_OBJECT))
    return err_set(err, -EINVAL, "object expected");
  const char *const texts[] = {"accessToken", "defaultUser", "defaultWorkdir", "timestamp", "authority"};
  for (size_t i = 0; i < ARRAY_LEN(texts); i++)
    if (!string_or_absent(body, texts[i]))
      return err_set(err, -EINVAL, "%s: string expected", texts[i]);
  const struct json *token = json_get(body, "accessToken"), *envs = json_get(body, "envVars");
  if (json_given(token) &&
      (token->text.n == 0 || str_find(token->text, '\\') >= 0 || memchr(token->text.p, 0, token->text.n)))
    return err_set(err, -EINVAL, "accessToken: empty or with a backslash");
  if (json_given(envs) && !json_is(envs, JSON_OBJECT))
    return err_set(err, -EINVAL, "envVars: object expected");
  for (const struct json *kid = json_given(envs) ? envs->kids : NULL; kid; kid = kid->next)
    if (!json_is(kid, JSON_STRING))
      return err_set(err, -EINVAL, "envVars: strings expected");
  return 0;
}

static void text_replace(char **slot, const struct json *v)
{
  struct str text = json_text(v, STR(""));
  if (!text.n || memchr(text.p, 0, text.n))
    return;
  free(*slot);
  *slot = xstrndup(text.p, text.n);
}

static void token_set(struct agent *a, const struct json *token)
{
  if (a->token)
    explicit_bzero(a->token, strlen(a->token));
  free(a->token);
  a->token = json_given(token) ? xstrndup(token->text.p, token->text.n) : NULL;
}

/* A box restored from another one's checkpoint gets its own identity. */
static void identity_take(struct agent *a, const struct json *body)
{
  const struct json *id = json_get(body, "sandboxID"), *renew = json_get(body, "renew");
  text_replace(&a->secret, json_get(body, "controlSecret"));
  if (json_is(id, JSON_STRING)) {
    text_replace(&a->box_id, id);
    text_replace(&a->template_id, json_get(body, "templateID"));
    text_replace(&a->build_id, json_get(body, "buildID"));
    identity_publish(a);
  }
  if (json_is(renew, JSON_BOOL) && renew->flag) {
    a->renewals++;
    a->env_generation++;
    machine_id_write(true);
    if (a->renewed)
      a->renewed(a->renewed_arg);
  }
}

/* The control plane alone may say whom the box trusts. */
static void authority_take(struct agent *a, const struct json *body)
{
  const struct json *pem = json_get(body, "authority");
  struct err err = ERR_NONE;
  if (json_given(pem) && trust_install(a, pem->text, &err))
    log_warn("%s", err.msg);
}

/* Of a running box that gets header rules: nothing else changes. */
static bool only_authority(const struct json *body)
{
  return json_given(json_get(body, "authority")) && body->count == 1;
}

static void init_take(struct agent *a, const struct json *body)
{
  const struct json *envs = json_get(body, "envVars");
  token_set(a, json_get(body, "accessToken"));
  text_replace(&a->default_user, json_get(body, "defaultUser"));
  text_replace(&a->default_workdir, json_get(body, "defaultWorkdir"));
  if (!json_given(envs))
    return;
  env_free(&a->init_env);
  env_merge_json(&a->init_env, envs);
  a->env_generation++;
}

enum init_result init_apply(struct agent *a, struct str text, bool control, struct err *err)
{
  cleanup_arena struct arena arena = ARENA_INIT(8 * INIT_MAX);
  struct json_error why = {0};
  int64_t stamp = 0;
  struct json *body = json_read(&arena, str_trim(text).n ? text : STR("{}"), 0, &why);
  if (!body) {
    err_set(err, -EINVAL, "syntax error at offset %zu: %s", why.offset, why.what ? why.what : "too large");
    return INIT_BAD;
  }
  if (init_check(body, err) < 0)
    return INIT_BAD;
  const struct json *token = json_get(body, "accessToken"), *time = json_get(body, "timestamp");
  if (json_given(time) && clock_parse(time->text, &stamp) < 0) {
    err_set(err, -EINVAL, "timestamp: RFC 3339 expected");
    return INIT_BAD;
  }
  if (a->token && !control && !json_given(token))
    return INIT_RESET_REFUSED;
  if (a->token && !control && !str_eq_secret(token->text, str_of(a->token)))
    return INIT_REFUSED;
  if (control && only_authority(body)) {
    authority_take(a, body);
    return INIT_APPLIED;
  }
  if (stamp && stamp < a->init_us)
    return INIT_STALE;
  if (stamp)
    a->init_us = stamp;
  init_take(a, body);
  if (control)
    authority_take(a, body);
  if (control)
    identity_take(a, body);
  return INIT_APPLIED;
}

static void reply(struct http_x *x, int status, const char *text)
{
  const struct http_header headers[] = {
      {STR("X-Envd-Version"), STR(AGENT_VERSION)},
      {STR("Cache-Control"), STR("no-store")},
      {STR("Content-Type"), STR("text/plain; charset=utf-8")},
  };
  answer(x, status, headers, text[0] ? 3 : 2, str_of(text));
}

static void init_body(struct http_x *x, struct str body, void *arg)
{
  struct agent *a = arg;
  struct err err = ERR_NONE;
  struct str shown = http_header(http_x_head(x), "X-Cloche-Control");
  bool control = a->secret && shown.p && str_eq_secret(shown, str_of(a->secret));
  switch (init_apply(a, body, control, &err)) {
  case INIT_APPLIED:
  case INIT_STALE:
    reply(x, 204, "");
    break;
  case INIT_BAD:
    reply(x, 400, err.msg);
    break;
  case INIT_REFUSED:
    reply(x, 401, "access token validation failed");
    break;
  case INIT_RESET_REFUSED:
    reply(x, 401, "access token reset not authorized");
    break;
  }
}

void init_request(struct http_x *x, struct agent *a)
{
  answer_with_body(x, INIT_MAX, init_body, a);
}

void envs_request(struct http_x *x, struct agent *a)
{
  cleanup_env struct env all = {0};
  cleanup_buf struct buf body = BUF_INIT(8 * INIT_MAX);
  struct jw w = JW(&body);
  agent_envs(a, &all);
  jw_open(&w, '{');
  for (size_t i = 0; i < all.n; i++) {
    struct str name, value;
    str_cut(str_of(all.p[i]), '=', &name, &value);
    jw_keys(&w, name);
    jw_str(&w, value);
  }
  jw_close(&w, '}');
  http_x_handle(x, &answer_no_ops, NULL);
  answer_json(x, 200, true, buf_str(&body));
}
