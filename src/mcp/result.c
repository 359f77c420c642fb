/* SPDX-License-Identifier: Apache-2.0 */
/* result.c - results of tools, bounded: a model can't use a megabyte, and some clients refuse one. */
#include "mcp/result.h"

#include <stdarg.h>

#define CONTENT_MAX ((size_t)64 << 20)
#define NOTE_MAX    8192

void text_shorten(struct buf *out, struct str text, size_t max)
{
  if (text.n <= max) {
    buf_adds(out, text);
    return;
  }
  size_t half = max / 2;
  struct str head = str_sub(text, 0, half), tail = str_skip(text, text.n - half);
  head.n = utf8_whole(head);
  while (tail.n && ((unsigned char)tail.p[0] & 0xc0) == 0x80)
    tail = str_skip(tail, 1);
  buf_adds(out, head);
  buf_addf(out, "\n[... %zu bytes left out ...]\n", text.n - head.n - tail.n);
  buf_adds(out, tail);
}

void result_begin(struct mcp_result *r, size_t text_max, size_t result_max)
{
  *r = (struct mcp_result){
      .content = BUF_INIT(CONTENT_MAX), .structured = BUF_INIT(CONTENT_MAX), .text_max = text_max, .left = result_max};
  r->items = JW(&r->content);
  r->data = JW(&r->structured);
  jw_open(&r->items, '[');
  jw_open(&r->data, '{');
}

void result_free(struct mcp_result *r)
{
  buf_free(&r->content);
  buf_free(&r->structured);
}

static void add_text(struct mcp_result *r, struct str text)
{
  jw_open(&r->items, '{');
  jw_key(&r->items, "type");
  jw_z(&r->items, "text");
  jw_key(&r->items, "text");
  jw_str(&r->items, text);
  jw_close(&r->items, '}');
}

void result_text(struct mcp_result *r, struct str text)
{
  cleanup_buf struct buf b = BUF_INIT(CONTENT_MAX);
  if (!text.n)
    return;
  text_shorten(&b, text, r->text_max);
  add_text(r, buf_str(&b));
}

void result_note(struct mcp_result *r, const char *fmt, ...)
{
  cleanup_buf struct buf b = BUF_INIT(NOTE_MAX);
  va_list ap;
  va_start(ap, fmt);
  buf_vaddf(&b, fmt, ap);
  va_end(ap);
  add_text(r, buf_str(&b));
}

void result_image(struct mcp_result *r, const char *mime, struct str base64)
{
  if (base64.n > r->left) {
    result_note(r,
                "[a picture (%s) of %zu bytes is left out: the result is full; write it to a smaller file, and read"
                " that]",
                mime, base64.n / 4 * 3);
    return;
  }
  r->left -= base64.n;
  jw_open(&r->items, '{');
  jw_key(&r->items, "type");
  jw_z(&r->items, "image");
  jw_key(&r->items, "data");
  jw_str(&r->items, base64);
  jw_key(&r->items, "mimeType");
  jw_z(&r->items, mime);
  jw_close(&r->items, '}');
}

void result_put(struct mcp_result *r, const char *name, struct str text)
{
  cleanup_buf struct buf b = BUF_INIT(CONTENT_MAX);
  text_shorten(&b, text, r->text_max);
  jw_key(&r->data, name);
  jw_str(&r->data, buf_str(&b));
}

/* Written anew: a sandbox chose its white space, which may end a line, and its bytes, which may be no UTF-8. */
void result_put_json(struct mcp_result *r, struct jw *w, const char *name, const char *json)
{
  cleanup_arena struct arena a = ARENA_INIT(CONTENT_MAX);
  struct json_error why;
  struct str text = str_of(json);
  if (!text.n)
    return;
  if (text.n > r->left) {
    result_note(r, "[%s of %zu bytes is left out: the result is full]", name, text.n);
    return;
  }
  const struct json *value = json_read(&a, text, JSON_REPAIR_UTF8, &why);
  if (!value) {
    result_note(r, "[%s of %zu bytes is left out: it can't be read]", name, text.n);
    return;
  }
  r->left -= text.n;
  jw_key(w, name);
  jw_value(w, value);
}

void result_write(struct mcp_result *r, struct buf *out)
{
  bool empty = r->structured.n == 1;
  jw_close(&r->items, ']');
  jw_close(&r->data, '}');
  struct jw w = JW(out);
  jw_open(&w, '{');
  jw_key(&w, "content");
  jw_raw(&w, buf_str(&r->content));
  if (!empty) {
    jw_key(&w, "structuredContent");
    jw_raw(&w, buf_str(&r->structured));
  }
  jw_key(&w, "isError");
  jw_bool(&w, r->failed);
  jw_close(&w, '}');
}
