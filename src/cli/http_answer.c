/* SPDX-License-Identifier: Apache-2.0 */
/* http_answer.c - see http_answer.h. Heads, chunk sizes and trailers are lines; bodies are runs of bytes. */
#include "cli/http_answer.h"

enum { START, FIELDS, SIZED, TO_END, CHUNK_SIZE, CHUNK, CHUNK_END, TRAILER };

static int start(struct answer *a, struct str line)
{
  uint64_t code;
  if (line.n < 12 || !str_starts(line, STR("HTTP/1.")) || str_u64(str_sub(line, 9, 3), &code) || code < 100)
    return -EPROTO;
  a->code = (int)code;
  a->closes = line.p[7] == '0';
  a->sized = a->chunked = false;
  a->left = 0;
  a->stage = FIELDS;
  return 0;
}

/* The empty line behind a head: what comes now. */
static void head_ends(struct answer *a)
{
  if (a->code < 200 && a->code != 101) {
    a->stage = START;
    return;
  }
  a->status = a->code;
  if (a->bodiless || a->code == 101 || a->code == 204 || a->code == 304)
    a->over = true;
  else if (a->chunked)
    a->stage = CHUNK_SIZE;
  else if (a->sized) {
    a->stage = SIZED;
    a->over = !a->left;
  } else {
    a->stage = TO_END;
    a->closes = true;
  }
}

static int field(struct answer *a, struct str line)
{
  struct str name, value;
  if (!str_cut(line, ':', &name, &value))
    return -EPROTO;
  value = str_trim(value);
  if (str_ieq(name, STR("content-length"))) {
    a->sized = true;
    return str_u64(value, &a->left) ? -EPROTO : 0;
  }
  if (str_ieq(name, STR("transfer-encoding"))) {
    a->chunked = str_ieq(value, STR("chunked"));
    return a->chunked ? 0 : -EPROTO;
  }
  if (str_ieq(name, STR("connection")))
    a->closes |= str_ieq(value, STR("close"));
  else if (a->header)
    a->header(a->arg, name, value);
  return 0;
}

static int chunk_size(struct answer *a, struct str line)
{
  struct str size, extension;
  uint64_t n = 0;
  str_cut(line, ';', &size, &extension);
  size = str_trim(size);
  if (!size.n || size.n > 15)
    return -EPROTO;
  for (size_t i = 0; i < size.n; i++) {
    char c = size.p[i], low = (char)(c | 32);
    if (!(c >= '0' && c <= '9') && !(low >= 'a' && low <= 'f'))
      return -EPROTO;
    n = n * 16 + (unsigned)(c <= '9' ? c - '0' : low - 'a' + 10);
  }
  a->left = n;
  a->stage = n ? CHUNK : TRAILER;
  return 0;
}

static int take_line(struct answer *a, struct str line)
{
  switch (a->stage) {
  case START:
    return start(a, line);
  case FIELDS:
    if (line.n)
      return field(a, line);
    head_ends(a);
    return 0;
  case CHUNK_SIZE:
    return chunk_size(a, line);
  case CHUNK_END:
    a->stage = CHUNK_SIZE;
    return line.n ? -EPROTO : 0;
  default: /* trailers say nothing that anybody here asks for */
    a->over = !line.n;
    return 0;
  }
}

int answer_take(struct answer *a, struct str in, size_t *used, struct str *body)
{
  *used = 0;
  *body = str_sub(in, 0, 0);
  if (a->over || !in.n)
    return 0;
  if (a->stage == TO_END) {
    *body = in;
    *used = in.n;
    return 0;
  }
  if (a->stage == SIZED || a->stage == CHUNK) {
    *used = (size_t)MIN(a->left, (uint64_t)in.n);
    *body = str_sub(in, 0, *used);
    a->left -= *used;
    if (!a->left && a->stage == SIZED)
      a->over = true;
    else if (!a->left)
      a->stage = CHUNK_END;
    return 0;
  }
  ptrdiff_t end = str_find(in, '\n');
  if (end < 0)
    return in.n < ANSWER_LINE_MAX ? 0 : -EPROTO;
  *used = (size_t)end + 1;
  return take_line(a, str_trim(str_sub(in, 0, (size_t)end)));
}

int answer_cut(struct answer *a)
{
  if (a->stage != TO_END)
    return -ECONNRESET;
  a->over = true;
  return 0;
}
