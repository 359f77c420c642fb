/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_output.c - events become lines; see kernel_output.h. Waiting text is kept in its escaped form, since two
 * escaped pieces put together are the escaped form of the whole: a print costs one copy on its way through. */
#include "agent/interpreter/kernel_output.h"
#include "agent/interpreter/json_token.h"
#include "agent/log_capture.h"
#include <stdio.h>

#define OUT_KEEP ((size_t)64 << 10) /* buffers larger than this are given back after use */

static const struct {
  const char *mime, *field;
} fields[] = {
    {"text/plain", "text"},        {"text/html", "html"},
    {"text/markdown", "markdown"}, {"image/svg+xml", "svg"},
    {"image/png", "png"},          {"image/jpeg", "jpeg"},
    {"application/pdf", "pdf"},    {"text/latex", "latex"},
    {"application/json", "json"},  {"application/javascript", "javascript"},
    {"e2b/data", "data"},          {"e2b/chart", "chart"},
};

void output_init(struct output *o, void (*line)(void *arg, struct str line), void *arg)
{
  *o = (struct output){.line = line, .arg = arg};
  buf_init(&o->out, OUTPUT_LINE_MAX);
  for (int i = 0; i < 2; i++)
    buf_init(&o->text[i].body, OUTPUT_LINE_MAX);
}

void output_free(struct output *o)
{
  buf_free(&o->out);
  for (int i = 0; i < 2; i++)
    buf_free(&o->text[i].body);
}

void output_begin(struct output *o)
{
  o->live = true;
  o->failed = o->cut = false;
  o->used = 0;
  for (int i = 0; i < 2; i++) {
    buf_clear(&o->text[i].body);
    o->text[i].ntail = 0;
  }
}

static void slim(struct buf *b)
{
  buf_clear(b);
  if (b->cap > OUT_KEEP)
    buf_free(b);
}

/* Sends the line that was built. One that grew past the limit is replaced by an error. */
static void send_line(struct output *o)
{
  buf_addc(&o->out, '\n');
  bool whole = !buf_failed(&o->out);
  if (whole)
    o->line(o->arg, buf_str(&o->out));
  slim(&o->out);
  if (!whole)
    output_fault(o, "ResultTooLarge", "The result does not fit into one event of 1 GiB", "");
}

/* Counts what a run has produced; false once its limit is reached, which is said once. */
static bool admit(struct output *o, size_t n)
{
  o->used += n;
  if (!o->limit || o->used <= o->limit || o->cut)
    return !o->cut;
  o->cut = true;
  char value[128];
  snprintf(value, sizeof(value), "The execution produced more than %llu bytes; the rest was dropped",
           (unsigned long long)o->limit);
  output_fault(o, "OutputLimitExceeded", value, "");
  return false;
}

void output_count(struct output *o, int64_t n)
{
  if (!o->live)
    return;
  buf_addf(&o->out, "{\"type\":\"number_of_executions\",\"execution_count\":%lld}", (long long)n);
  send_line(o);
}

static void add_stamp(struct buf *b, int64_t wall_us)
{
  char text[CLOCK_TEXT];
  clock_text(wall_us, text);
  size_t n = strlen(text);
  buf_add(b, text, n && text[n - 1] == 'Z' ? n - 1 : n);
  buf_addz(b, "+00:00");
}

static void send_text(struct output *o, int which, struct str body, int64_t stamp)
{
  log_capture_escaped("kernel", NULL, which == OUTPUT_STDOUT ? "stdout" : "stderr", body);
  while (body.n) {
    size_t n = token_prefix(body, OUTPUT_PIECE);
    buf_addz(&o->out, which == OUTPUT_STDOUT ? "{\"type\":\"stdout\",\"text\":\"" : "{\"type\":\"stderr\",\"text\":\"");
    buf_adds(&o->out, str_sub(body, 0, n));
    buf_addz(&o->out, "\",\"timestamp\":\"");
    add_stamp(&o->out, stamp);
    buf_addz(&o->out, "\"}");
    body = str_skip(body, n);
    send_line(o);
  }
}

static void flush_one(struct output *o, int which)
{
  struct output_text *t = &o->text[which];
  if (!t->body.n)
    return;
  struct buf body = t->body; /* a line may end the run, so the waiting text is empty before it goes */
  buf_init(&t->body, OUTPUT_LINE_MAX);
  send_text(o, which, buf_str(&body), t->stamp);
  if (t->body.cap || body.cap > OUT_KEEP) {
    buf_free(&body);
    return;
  }
  buf_clear(&body);
  t->body = body;
}

void output_flush(struct output *o)
{
  int first = o->first;
  flush_one(o, first);
  flush_one(o, !first);
}

bool output_waiting(const struct output *o)
{
  return o->text[0].body.n || o->text[1].body.n;
}

/* The buffer to which a piece may be appended. */
static struct buf *text_room(struct output *o, int which, int64_t stamp)
{
  struct output_text *t = &o->text[which];
  if (!t->body.n) {
    t->stamp = stamp;
    if (!o->text[!which].body.n)
      o->first = which;
  }
  return &t->body;
}

static void text_added(struct output *o, int which)
{
  if (!o->coalesce || o->text[which].body.n >= OUTPUT_PIECE)
    output_flush(o);
}

void output_stream(struct output *o, int which, struct str body, int64_t stamp)
{
  if (!o->live || !body.n || !admit(o, body.n))
    return;
  if (o->text[which].body.n && o->text[which].body.n + body.n > OUTPUT_PIECE)
    output_flush(o);
  token_add_body(text_room(o, which, stamp), body);
  text_added(o, which);
}

/* What a pipe gave, behind the tail it left last time; the new tail is kept back. */
static void bytes_whole(struct output *o, int which, struct str bytes)
{
  struct output_text *t = &o->text[which];
  struct buf *room = text_room(o, which, clock_wall_us());
  if (t->ntail) {
    /* At most three bytes complete the sequence that was cut. */
    char seq[8];
    memcpy(seq, t->tail, t->ntail);
    size_t more = MIN(bytes.n, (size_t)3), whole;
    memcpy(seq + t->ntail, bytes.p, more);
    whole = utf8_whole((struct str){seq, t->ntail + more});
    if (whole <= t->ntail && whole < t->ntail + more && t->ntail + more < 4) {
      memcpy(t->tail, seq, t->ntail + more);
      t->ntail += more;
      return;
    }
    size_t used = MAX(whole, t->ntail) - t->ntail;
    token_add_text(room, (struct str){seq, t->ntail + used});
    bytes = str_skip(bytes, used);
    t->ntail = 0;
  }
  size_t whole = utf8_whole(bytes);
  t->ntail = MIN(bytes.n - whole, sizeof(t->tail));
  if (t->ntail)
    memcpy(t->tail, bytes.p + whole, t->ntail);
  token_add_text(room, str_sub(bytes, 0, whole));
}

void output_bytes(struct output *o, int which, struct str bytes)
{
  if (!o->live || !bytes.n || !admit(o, bytes.n))
    return;
  bytes_whole(o, which, bytes);
  text_added(o, which);
}

void output_end(struct output *o)
{
  for (int i = 0; i < 2 && o->live; i++) {
    struct output_text *t = &o->text[i];
    if (t->ntail)
      token_add_text(text_room(o, i, clock_wall_us()), (struct str){t->tail, t->ntail});
    t->ntail = 0;
  }
  if (o->live)
    output_flush(o);
  o->live = false;
}

/* One MIME entry: to its own field, or to *extra. */
static void add_field(struct output *o, struct buf *extra, struct str mime, struct str value)
{
  struct str body;
  for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
    if (!token_is(mime, fields[i].mime))
      continue;
    buf_addf(&o->out, ",\"%s\":", fields[i].field);
    if (i == 0 && token_body(value, &body)) {
      buf_addc(&o->out, '"');
      token_add_body(&o->out, token_unquote(body));
      buf_addc(&o->out, '"');
    } else {
      token_copy(&o->out, value);
    }
    return;
  }
  buf_addz(extra, extra->n ? ",\"" : "\"");
  token_add_body(extra, mime);
  buf_addz(extra, "\":");
  token_copy(extra, value);
}

void output_display(struct output *o, bool main, struct str data)
{
  struct buf cleanup_buf extra = BUF_INIT(OUTPUT_LINE_MAX);
  struct str mime, value;
  if (!o->live || token_object(&data) < 0 || !admit(o, data.n))
    return;
  output_flush(o);
  buf_addz(&o->out, "{\"type\":\"result\"");
  while (token_member(&data, &mime, &value) > 0)
    if (!token_null(value))
      add_field(o, &extra, mime, value);
  buf_addz(&o->out, ",\"extra\":{");
  if (buf_failed(&extra))
    o->out.failed = extra.failed;
  else if (extra.n)
    buf_adds(&o->out, buf_str(&extra));
  buf_addz(&o->out, main ? "},\"is_main_result\":true}" : "},\"is_main_result\":false}");
  send_line(o);
}

/* A string field from any token: strings as they are, other values as their text, null and absent as nothing. */
static void add_text_of(struct buf *b, struct str raw)
{
  struct str body;
  if (token_body(raw, &body))
    token_add_body(b, body);
  else if (!token_null(raw))
    token_add_text(b, raw);
}

static bool ends_line(const struct buf *b)
{
  size_t n = b->n, slashes = 0;
  if (!n || b->p[n - 1] != 'n')
    return false;
  while (slashes < n - 1 && b->p[n - 2 - slashes] == '\\')
    slashes++;
  return slashes % 2;
}

/* A traceback is a string, or an array of lines that get the line ends they lack. */
static void add_traceback(struct buf *b, struct str raw)
{
  if (!raw.n || raw.p[0] != '[') {
    add_text_of(b, raw);
    return;
  }
  struct str in = str_skip(raw, 1), item;
  for (bool first = true; token_take(&in, &item) == 0; first = false) {
    if (!first && !ends_line(b))
      buf_addz(b, "\\n");
    add_text_of(b, item);
    in = str_trim(in);
    if (!in.n || in.p[0] != ',')
      break;
    in = str_skip(in, 1);
  }
}

void output_error(struct output *o, struct str name, struct str value, struct str traceback)
{
  if (!o->live || o->failed)
    return;
  output_flush(o);
  o->failed = true;
  buf_addz(&o->out, "{\"type\":\"error\",\"name\":\"");
  add_text_of(&o->out, name);
  buf_addz(&o->out, "\",\"value\":\"");
  add_text_of(&o->out, value);
  buf_addz(&o->out, "\",\"traceback\":\"");
  add_traceback(&o->out, traceback);
  buf_addz(&o->out, "\"}");
  send_line(o);
}

void output_fault(struct output *o, const char *name, const char *value, const char *traceback)
{
  struct buf cleanup_buf b = BUF_INIT(64 << 10);
  const char *parts[] = {name, value, traceback};
  struct str raw[3];
  size_t from[4] = {0};
  for (int i = 0; i < 3; i++) {
    json_put_str(&b, str_of(parts[i]), true);
    from[i + 1] = b.n;
  }
  if (buf_failed(&b))
    return;
  for (int i = 0; i < 3; i++)
    raw[i] = str_make(b.p + from[i], from[i + 1] - from[i]);
  output_error(o, raw[0], raw[1], raw[2]);
}
