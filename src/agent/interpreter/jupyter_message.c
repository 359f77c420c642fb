/* SPDX-License-Identifier: Apache-2.0 */
/* jupyter_message.c - signing, checking and taking apart; see jupyter_message.h. */
#include "agent/interpreter/jupyter_message.h"
#include "agent/interpreter/json_token.h"
#include <stdio.h>

#define SIGNED_FRAMES 4 /* header, parent header, metadata, content */

void jupyter_session_init(struct jupyter_session *s)
{
  uuid4(s->key);
  uuid4(s->id);
  s->last = 0;
}

/* HMAC-SHA256 over frames that are not contiguous, as lower-case hex. */
static void sign(const struct jupyter_session *s, const struct str *frames, char out[2 * SHA256_LEN + 1])
{
  uint8_t inner[64] = {0}, outer[64], sum[SHA256_LEN];
  struct sha256 h;
  memcpy(inner, s->key, strlen(s->key));
  for (size_t i = 0; i < sizeof(inner); i++) {
    outer[i] = inner[i] ^ 0x5c;
    inner[i] ^= 0x36;
  }
  sha256_init(&h);
  sha256_add(&h, inner, sizeof(inner));
  for (size_t i = 0; i < SIGNED_FRAMES; i++)
    sha256_add(&h, frames[i].p, frames[i].n);
  sha256_end(&h, sum);
  sha256_init(&h);
  sha256_add(&h, outer, sizeof(outer));
  sha256_add(&h, sum, sizeof(sum));
  sha256_end(&h, sum);
  hex_encode(sum, sizeof(sum), out);
}

struct str jupyter_member(struct str object, const char *name)
{
  struct str key, value, found = {NULL, 0};
  if (token_object(&object) < 0)
    return found;
  while (token_member(&object, &key, &value) > 0)
    if (token_is(key, name))
      found = value;
  return found;
}

static struct str member_body(struct str object, const char *name)
{
  struct str body = {"", 0};
  token_body(jupyter_member(object, name), &body);
  return body;
}

int jupyter_message_read(const struct jupyter_session *s, const struct str *frames, size_t n, struct jupyter_message *m)
{
  char want[2 * SHA256_LEN + 1];
  size_t at = 0;
  while (at < n && !str_is(frames[at], "<IDS|MSG>"))
    at++;
  if (at + 2 + SIGNED_FRAMES > n)
    return -EINVAL;
  const struct str *parts = &frames[at + 2];
  sign(s, parts, want);
  if (!str_eq_secret(frames[at + 1], str_of(want)))
    return -EACCES;
  m->type = member_body(parts[0], "msg_type");
  m->date = member_body(parts[0], "date");
  m->parent = member_body(parts[1], "msg_id");
  m->content = parts[3];
  return m->type.n ? 0 : -EINVAL;
}

int jupyter_message_write(struct jupyter_session *s, struct arena *a, const char *type, struct str content,
                          struct str frames[JUPYTER_FRAMES], char id[JUPYTER_ID])
{
  char date[CLOCK_TEXT];
  clock_text(clock_wall_us(), date);
  snprintf(id, JUPYTER_ID, "%s_%llu", s->id, (unsigned long long)++s->last);
  char *header =
      arena_fmt(a,
                "{\"msg_id\":\"%s\",\"session\":\"%s\",\"username\":\"root\",\"date\":\"%s\",\"msg_type\":\"%s\","
                "\"version\":\"5.3\"}",
                id, s->id, date, type);
  char *signature = arena_alloc(a, 2 * SHA256_LEN + 1);
  if (!header || !signature)
    return -ENOMEM;
  frames[0] = STR("<IDS|MSG>");
  frames[2] = str_of(header);
  frames[3] = frames[4] = STR("{}");
  frames[5] = content;
  sign(s, &frames[2], signature);
  frames[1] = str_of(signature);
  return 0;
}
