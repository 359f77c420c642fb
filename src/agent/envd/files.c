/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - who may use /files: token header, else a signature in the URL. */
#include "agent/envd/files.h"
#include "agent/envd/http_reply.h"
#include <stdio.h>

#define QUERY_MAX ((size_t)64 << 10)

static int query_take(struct str query, const char *name, struct buf *out, bool *has)
{
  *out = BUF_INIT(QUERY_MAX);
  int rc = query_get(query, name, out);
  *has = rc > 0;
  return rc;
}

int files_query_parse(struct str query, struct files_query *q)
{
  int64_t number;
  *q = (struct files_query){0};
  int rc = query_take(query, "path", &q->path, &q->has_path);
  if (rc >= 0)
    rc = query_take(query, "username", &q->username, &q->has_username);
  if (rc >= 0)
    rc = query_take(query, "signature", &q->signature, &q->has_signature);
  if (rc >= 0)
    rc = query_take(query, "signature_expiration", &q->expiration, &q->has_expiration);
  if (rc >= 0 && q->has_expiration)
    rc = str_i64(buf_str(&q->expiration), &number);
  return rc < 0 ? -EINVAL : 0;
}

void files_query_free(struct files_query *q)
{
  buf_free(&q->path);
  buf_free(&q->username);
  buf_free(&q->signature);
  buf_free(&q->expiration);
}

void files_sign(struct str path, const char *operation, struct str username, struct str token, struct str expiration,
                bool has_expiration, char out[SIGNATURE_TEXT])
{
  struct sha256 sha;
  uint8_t digest[SHA256_LEN];
  const struct str parts[] = {path, str_of(operation), username, token, expiration};
  sha256_init(&sha);
  for (size_t i = 0; i < (has_expiration ? 5u : 4u); i++) {
    if (i)
      sha256_add(&sha, ":", 1);
    if (parts[i].n)
      sha256_add(&sha, parts[i].p, parts[i].n);
  }
  sha256_end(&sha, digest);
  cleanup_buf struct buf text = BUF_INIT(SIGNATURE_TEXT);
  buf_addz(&text, "v1_");
  base64_add(&text, digest, sizeof(digest), false);
  str_copyz(buf_str(&text), out, SIGNATURE_TEXT);
}

/* A signature is made over the number, so 007 and 7 are the same expiration. */
static struct str number_text(struct str text, char out[24])
{
  int64_t v = 0;
  str_i64(text, &v);
  snprintf(out, 24, "%lld", (long long)v);
  return str_of(out);
}

const char *files_refuse(const struct files_query *q, const char *operation, const char *token, struct str header,
                         int64_t now)
{
  char wanted[SIGNATURE_TEXT], number[24];
  int64_t until = 0;
  if (!token)
    return NULL;
  if (header.p)
    return str_eq_secret(header, str_of(token)) ? NULL : "access token present in header but does not match";
  if (!q->has_signature)
    return "missing signature query parameter";
  files_sign(buf_str(&q->path), operation, buf_str(&q->username), str_of(token),
             number_text(buf_str(&q->expiration), number), q->has_expiration, wanted);
  if (!str_eq_secret(buf_str(&q->signature), str_of(wanted)))
    return "invalid signature";
  if (q->has_expiration && str_i64(buf_str(&q->expiration), &until) == 0 && until < now)
    return "signature is already expired";
  return NULL;
}

int files_enter(struct http_x *x, struct agent *a, const char *operation, struct files_query *q, struct user *u)
{
  const struct http_head *head = http_x_head(x);
  http_x_handle(x, &answer_no_ops, NULL);
  if (files_query_parse(head->query, q) < 0) {
    answer_fail(x, 400, "invalid query parameter");
    return -EINVAL;
  }
  const char *refused =
      files_refuse(q, operation, a->token, http_header(head, "X-Access-Token"), clock_wall_us() / 1000000);
  if (refused) {
    answer_fail(x, 401, "%s", refused);
    return -EACCES;
  }
  struct str name = q->has_username && q->username.n ? buf_str(&q->username) : str_of(a->default_user);
  int rc = user_find(name, u);
  if (rc < 0 && rc != -ENOENT) {
    answer_fail(x, 500, "cannot read the user database: %s", strerror(-rc));
    return rc;
  }
  if (rc < 0) {
    answer_fail(x, 401, "error looking up user '" STR_FMT "': user: unknown user " STR_FMT, STR_ARG(name),
                STR_ARG(name));
    return -ENOENT;
  }
  return 0;
}
