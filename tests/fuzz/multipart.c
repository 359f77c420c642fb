/* SPDX-License-Identifier: Apache-2.0 */
/* multipart.c - upload bodies. Whatever the bytes, reading them in one piece and in pieces of the size that byte 0
 * gives must see the same parts with the same content and fail alike; names come from headers inside the input. */
#include "must.h"

#include "agent/envd/multipart.h"

#include <stdio.h>

struct seen {
  struct buf text;
  int open;
};

static int on_begin(void *arg, struct str name, struct str filename, bool has_filename)
{
  struct seen *s = arg;
  MUST(s->open++ == 0);
  buf_addc(&s->text, has_filename ? 'F' : 'N');
  buf_adds(&s->text, name);
  buf_addc(&s->text, 0);
  return buf_adds(&s->text, filename);
}

static int on_data(void *arg, struct str bytes)
{
  struct seen *s = arg;
  MUST(s->open == 1 && bytes.n > 0);
  return buf_adds(&s->text, bytes);
}

static int on_end(void *arg)
{
  struct seen *s = arg;
  MUST(s->open-- == 1);
  return buf_addc(&s->text, 'E');
}

static const struct multipart_ops ops = {on_begin, on_data, on_end};

static int read_in(struct str in, size_t piece, struct seen *s)
{
  struct multipart m;
  int rc = multipart_init(&m, STR("multipart/form-data; boundary=xX"), &ops, s);
  MUST(rc == 0);
  for (size_t at = 0; rc == 0 && at < in.n; at += piece)
    rc = multipart_feed(&m, str_sub(in, at, piece));
  if (rc == 0)
    rc = multipart_finish(&m);
  multipart_free(&m);
  return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (size < 2)
    return 0;
  struct str in = str_make(data + 1, size - 1);
  struct seen whole = {.text = BUF_INIT((size_t)16 << 20)}, cut = {.text = BUF_INIT((size_t)16 << 20)};
  int a = read_in(in, in.n, &whole), b = read_in(in, (size_t)(data[0] % 61) + 1, &cut);
  MUST(a == b);
  MUST(str_eq(buf_str(&whole.text), buf_str(&cut.text)));
  buf_free(&whole.text);
  buf_free(&cut.text);
  cleanup_buf struct buf value = BUF_INIT(1 << 20);
  multipart_param(in, "filename", &value);
  return 0;
}
