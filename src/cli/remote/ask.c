/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/ask.h"

#include <stdio.h>

#define PATH_TEXT  ((size_t)65536)
#define ARENA_MOST ((size_t)512 << 20)

/* ---- requests ---- */

char *path_of(const char *pattern, ...)
{
  cleanup_buf struct buf out = BUF_INIT(PATH_TEXT);
  va_list words;
  va_start(words, pattern);
  for (const char *p = pattern; *p; p++) {
    if (p[0] != '{' || p[1] != '}') {
      buf_addc(&out, *p);
      continue;
    }
    percent_encode(str_of(va_arg(words, const char *)), &out);
    p++;
  }
  va_end(words);
  return xstrdup(buf_z(&out));
}

const char *admin_token(const struct args *args)
{
  const char *token = args->admin_token ? args->admin_token : getenv("CLOCHE_ADMIN_TOKEN");
  return token && *token ? token : NULL;
}

int remote_open_admin(const struct args *args, struct remote *r)
{
  struct args with = *args;
  if (!admin_token(args))
    return complain("the administrator's token is missing: --admin-token, or better CLOCHE_ADMIN_TOKEN; the server has "
                    "it as 'admin_token'"),
           EXIT_USAGE;
  if (!with.key && !with.profile && !environment_has_key())
    with.key = "none"; /* these requests need no key */
  return remote_open(&with, r);
}

static bool for_administrators(const char *path)
{
  return str_starts(str_of(path), STR("/admin/")) || str_starts(str_of(path), STR("/nodes"));
}

static enum cloche_code request(struct remote *r, const struct args *args, const char *method, const char *path,
                                const char *body, struct answer *out)
{
  const char *token = for_administrators(path) ? admin_token(args) : NULL;
  const struct cloche_pair header = {"X-Admin-Token", token};
  const struct cloche_request options = {
      .size = sizeof(options), .body = body, .headers = &header, .header_count = token ? 1 : 0};
  *out = (struct answer){.arena = ARENA_INIT(ARENA_MOST)};
  return cloche_request(r->client, method, path, &options, &out->text, NULL, &r->error);
}

static int read_answer(const char *path, struct answer *out)
{
  struct json_error why;
  struct str text = str_make(out->text->data, out->text->len);
  if (!text.n || (out->json = json_read(&out->arena, text, 0, &why)))
    return 0;
  return complain("%s: the server's answer is no JSON: %s", path, why.what);
}

int ask(struct remote *r, const struct args *args, const char *method, const char *path, const char *body,
        const char *what, struct answer *out)
{
  return request(r, args, method, path, body, out) ? remote_failed(r, what) : read_answer(path, out);
}

int ask_whether(struct remote *r, const struct args *args, const char *method, const char *path, const char *what,
                struct answer *out, bool *missing)
{
  enum cloche_code code = request(r, args, method, path, NULL, out);
  *missing = code == CLOCHE_ENOTFOUND;
  if (*missing)
    cloche_error_clear(&r->error);
  return *missing ? 0 : code ? remote_failed(r, what) : read_answer(path, out);
}

void answer_free(struct answer *a)
{
  cloche_free(a->text);
  arena_free(&a->arena);
  *a = (struct answer){0};
}

/* ---- tables ---- */

const struct json *member_at(const struct json *object, const char *key)
{
  struct str rest = str_of(key), part;
  bool more = true;
  while (object && more) {
    char name[64];
    more = str_cut(rest, '.', &part, &rest);
    if (str_copyz(part, name, sizeof(name)))
      return NULL;
    object = json_get(object, name);
  }
  return object;
}

static void add_number(struct buf *out, const struct json *v, enum column_kind kind)
{
  double number = 0;
  if (kind == COLUMN_TEXT || json_double(v, &number))
    buf_adds(out, v->text);
  else
    buf_addf(out, "%.0f", kind == COLUMN_GIB ? number / (1 << 30) : number);
}

static void add_value(struct buf *out, const struct json *v, enum column_kind kind)
{
  int64_t at;
  if (!v || v->type == JSON_NULL)
    return;
  if (v->type == JSON_BOOL)
    buf_addz(out, v->flag ? "yes" : "no");
  else if (v->type == JSON_NUMBER)
    add_number(out, v, kind);
  else if (v->type == JSON_ARRAY && kind == COLUMN_FIRST)
    add_value(out, v->kids, COLUMN_TEXT);
  else if (v->type != JSON_STRING)
    json_put(out, v, false);
  else if (kind == COLUMN_AGE && !clock_parse(v->text, &at))
    duration_text(out, (clock_wall_us() - at) / 1000000);
  else
    buf_adds(out, kind == COLUMN_TIME ? str_sub(v->text, 0, 19) : v->text);
}

static int print_raw(const struct answer *a)
{
  cleanup_buf struct buf out = BUF_INIT(PRINT_MAX);
  buf_adds(&out, a->json ? str_trim(str_make(a->text->data, a->text->len)) : STR("{}"));
  buf_addc(&out, '\n');
  return print_out(&out);
}

int print_rows(const struct args *args, const struct answer *a, const struct column *columns, size_t n)
{
  struct table table = {.columns = n};
  cleanup_buf struct buf out = BUF_INIT(PRINT_MAX);
  if (args->json)
    return print_raw(a);
  for (size_t i = 0; i < n; i++)
    table_add(&table, columns[i].head);
  for (const struct json *row = a->json ? a->json->kids : NULL; row; row = row->next)
    for (size_t i = 0; i < n; i++) {
      cleanup_buf struct buf cell = BUF_INIT(PATH_TEXT);
      add_value(&cell, member_at(row, columns[i].key), columns[i].kind);
      table_add(&table, buf_z(&cell));
    }
  table_print(&table, &out);
  table_free(&table);
  return print_out(&out);
}

int print_object(const struct args *args, const struct answer *a, const struct column *columns, size_t n)
{
  struct table table = {.columns = 2};
  cleanup_buf struct buf out = BUF_INIT(PRINT_MAX);
  if (args->json)
    return print_raw(a);
  for (size_t i = 0; i < n; i++) {
    cleanup_buf struct buf cell = BUF_INIT(PATH_TEXT);
    add_value(&cell, member_at(a->json, columns[i].key), columns[i].kind);
    table_add(&table, columns[i].head);
    table_add(&table, buf_z(&cell));
  }
  table_print(&table, &out);
  table_free(&table);
  return print_out(&out);
}

int print_answer(const struct args *args, const struct answer *a, const char *member)
{
  cleanup_buf struct buf out = BUF_INIT(PRINT_MAX);
  if (args->json)
    return print_raw(a);
  if (!member)
    return 0;
  text_clean(&out, json_text(json_get(a->json, member), STR_NONE), 0);
  buf_addc(&out, '\n');
  return print_out(&out);
}
