/* SPDX-License-Identifier: Apache-2.0 */
/* files_query.c - the small texts a caller of /files chooses: query and signature, Basic user, range, date, accepted
 * encodings, path. Byte 0 says which. A signature must open exactly the query it was made for. */
#include "must.h"

#include "agent/agent.h"
#include "agent/envd/files.h"
#include "agent/envd/http_fields.h"
#include "agent/envd/resolve.h"

#include <stdio.h>

static void query(struct str in)
{
  cleanup_files_query struct files_query q = {0};
  char signature[SIGNATURE_TEXT];
  if (files_query_parse(in, &q) < 0)
    return;
  files_refuse(&q, "read", "token", STR_NONE, 0);
  if (q.has_expiration)
    return;
  files_sign(buf_str(&q.path), "read", buf_str(&q.username), STR("token"), STR_NONE, false, signature);
  buf_clear(&q.signature);
  q.signature.max = 1024;
  buf_addz(&q.signature, signature);
  q.has_signature = true;
  MUST(!files_refuse(&q, "read", "token", STR_NONE, 0));
  MUST(files_refuse(&q, "write", "token", STR_NONE, 0));
  MUST(files_refuse(&q, "read", "other", STR_NONE, 0));
}

static void range(struct str in)
{
  uint64_t from = 0, n = 0;
  const uint64_t sizes[] = {0, 1, 1000, UINT64_MAX / 2};
  for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
    if (http_range_parse(in, sizes[i], &from, &n) > 0)
      MUST(n > 0 && n <= sizes[i] && from <= sizes[i] - n);
}

static void date(struct str in)
{
  char text[HTTP_DATE_TEXT];
  time_t t, again;
  if (http_date_parse(in, &t) < 0)
    return;
  http_date_text(t, text);
  if (strlen(text) == 29)
    MUST(http_date_parse(str_of(text), &again) == 0 && again == t);
}

static void path(struct str in)
{
  struct user u = {.home = "/home/user"};
  struct err err = ERR_NONE;
  cleanup_buf struct buf out = BUF_INIT(1 << 20), shown = BUF_INIT(4 << 20);
  if (resolve_path(in, &u, "work", &out, &err) < 0) {
    MUST(err.msg[0]);
    return;
  }
  MUST(out.n > 0 && out.p[0] == '/' && strlen(buf_z(&out)) == out.n);
  http_disposition(path_base(buf_str(&out)), &shown);
  http_mime_type(path_base(buf_str(&out)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (size == 0)
    return 0;
  struct str in = str_make(data + 1, size - 1);
  cleanup_buf struct buf name = BUF_INIT(1 << 20);
  switch (data[0] % 6) {
  case 0:
    query(in);
    break;
  case 1:
    agent_basic_user(in, &name);
    break;
  case 2:
    range(in);
    break;
  case 3:
    date(in);
    break;
  case 4:
    http_coding_choose(in, false);
    break;
  default:
    path(in);
  }
  return 0;
}
