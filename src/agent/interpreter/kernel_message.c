/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_message.c - the native protocol's lines; see kernel_message.h and docs/kernel-protocol.md. */
#include "agent/interpreter/kernel_message.h"
#include "agent/interpreter/json_token.h"

static const struct {
  const char *key;
  size_t at;
} keys[] = {
#define KEY(name)                                                                                                      \
  {                                                                                                                    \
#name, offsetof(struct message, name)                                                                              \
  }
    KEY(ev),
    KEY(id),
    KEY(name),
    KEY(text),
    KEY(main),
    KEY(data),
    KEY(value),
    KEY(traceback),
    KEY(n),
    KEY(status),
    KEY(ok),
    KEY(reason),
    KEY(pid),
    KEY(interrupt),
    KEY(coalesce),
    KEY(nursery),
#undef KEY
    {"stdout", offsetof(struct message, out)},
    {"stderr", offsetof(struct message, err)},
};

int message_read(struct str line, struct message *m)
{
  struct str key, value;
  int rc;
  *m = (struct message){0};
  if (token_object(&line) < 0)
    return -EINVAL;
  while ((rc = token_member(&line, &key, &value)) > 0)
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
      if (token_is(key, keys[i].key)) {
        *(struct str *)((char *)m + keys[i].at) = value;
        break;
      }
  return rc < 0 || str_trim(line).n ? -EINVAL : 0;
}

bool message_is(const struct message *m, const char *ev)
{
  struct str body;
  return token_body(m->ev, &body) && token_is(body, ev);
}

int message_text(struct str raw, char *out, size_t size)
{
  struct buf cleanup_buf b = BUF_INIT(16 << 10);
  struct str body;
  out[0] = 0;
  if (!token_body(raw, &body))
    return -EINVAL;
  token_decode(str_sub(body, 0, token_prefix(body, size)), &b);
  struct str text = str_sub(buf_str(&b), 0, size - 1);
  return str_copyz(str_sub(text, 0, utf8_whole(text)), out, size);
}

static void put_env_json(struct buf *b, const struct json *env)
{
  bool comma = false;
  for (const struct json *v = env->kids; v; v = v->next) {
    if (!json_is(v, JSON_STRING))
      continue;
    if (comma)
      buf_addc(b, ',');
    json_put_str(b, v->key, true);
    buf_addc(b, ':');
    json_put_str(b, v->text, true);
    comma = true;
  }
}

void message_run(struct buf *b, uint64_t id, struct str code, const struct json *env)
{
  buf_addz(b, "{\"op\":\"run\",\"id\":");
  buf_addu(b, id);
  buf_addz(b, ",\"code\":");
  json_put_str(b, code, true);
  if (json_is(env, JSON_OBJECT) && env->kids) {
    buf_addz(b, ",\"env\":{");
    put_env_json(b, env);
    buf_addc(b, '}');
  }
  buf_addz(b, "}\n");
}

void message_env(struct buf *b, const struct env *env, bool renew)
{
  buf_addz(b, "{\"op\":\"env\",\"set\":{");
  bool comma = false;
  for (size_t i = 0; i < env->n; i++) {
    struct str name, value;
    if (!env->p[i] || !str_cut(str_of(env->p[i]), '=', &name, &value))
      continue;
    if (comma)
      buf_addc(b, ',');
    json_put_str(b, name, true);
    buf_addc(b, ':');
    json_put_str(b, value, true);
    comma = true;
  }
  buf_addz(b, renew ? "},\"renew\":true}\n" : "}}\n");
}

void message_cd(struct buf *b, const char *path)
{
  buf_addz(b, "{\"op\":\"cd\",\"path\":");
  json_put_str(b, str_of(path), true);
  buf_addz(b, "}\n");
}

void message_interrupt(struct buf *b, uint64_t id)
{
  buf_addf(b, "{\"op\":\"interrupt\",\"id\":%llu}\n", (unsigned long long)id);
}

void message_renew(struct buf *b)
{
  buf_addz(b, "{\"op\":\"renew\"}\n");
}

void message_fork(struct buf *b, uint64_t id)
{
  buf_addf(b, "{\"op\":\"fork\",\"id\":%llu}\n", (unsigned long long)id);
}
