/* SPDX-License-Identifier: Apache-2.0 */
/* multipart.c - see multipart.h.
 *
 * The delimiter begins with CR and a boundary holds none, so a failed match can only begin anew at the byte that broke
 * it: what was matched is given out as data and no backtracking is needed. */
#include "agent/envd/multipart.h"

/* ---- header parameters ---- */

/* Takes a quoted string off *s. A backslash escapes only a quote or another backslash, as browsers mean it. */
static int quoted_take(struct str *s, struct buf *out)
{
  size_t i = 1;
  for (; i < s->n && s->p[i] != '"'; i++) {
    bool escape = s->p[i] == '\\' && i + 1 < s->n && (s->p[i + 1] == '"' || s->p[i + 1] == '\\');
    buf_addc(out, s->p[escape ? ++i : i]);
  }
  if (i >= s->n)
    return -EINVAL;
  *s = str_skip(*s, i + 1);
  return 0;
}

static int value_take(struct str *s, struct buf *out)
{
  if (s->n && s->p[0] == '"')
    return quoted_take(s, out);
  ptrdiff_t end = str_find(*s, ';');
  struct str token = end < 0 ? *s : str_sub(*s, 0, (size_t)end);
  buf_adds(out, str_trim(token));
  *s = str_skip(*s, token.n);
  return 0;
}

static int extended_decode(struct buf *value, struct buf *out)
{
  struct str charset, rest, language, text;
  if (!str_cut(buf_str(value), '\'', &charset, &rest) || !str_cut(rest, '\'', &language, &text))
    return -EINVAL;
  buf_clear(out);
  return percent_decode(text, false, out);
}

static bool is_extended(struct str key, const char *name)
{
  return key.n == strlen(name) + 1 && key.p[key.n - 1] == '*' && str_ieq(str_sub(key, 0, key.n - 1), str_of(name));
}

int multipart_param(struct str value, const char *name, struct buf *out)
{
  struct str first;
  int found = 0;
  bool more = str_cut(value, ';', &first, &value);
  while (more && value.n) {
    struct str key, rest;
    cleanup_buf struct buf text = BUF_INIT(MULTIPART_HEAD_MAX);
    if (!str_cut(value, '=', &key, &rest))
      return found;
    if (value_take(&rest, &text) < 0)
      return -EINVAL;
    key = str_trim(key);
    if (is_extended(key, name))
      return extended_decode(&text, out) < 0 ? -EINVAL : 1;
    if (!found && str_ieq(key, str_of(name))) {
      buf_clear(out);
      buf_adds(out, buf_str(&text));
      found = 1;
    }
    more = str_cut(rest, ';', &first, &value);
  }
  return found;
}

/* ---- the parser ---- */

int multipart_init(struct multipart *m, struct str content_type, const struct multipart_ops *ops, void *arg)
{
  cleanup_buf struct buf boundary = BUF_INIT(MULTIPART_HEAD_MAX);
  *m = (struct multipart){.ops = ops, .arg = arg};
  m->line = BUF_INIT(256);
  m->head = BUF_INIT(MULTIPART_HEAD_MAX);
  if (multipart_param(content_type, "boundary", &boundary) <= 0 || boundary.n == 0 ||
      boundary.n > MULTIPART_BOUNDARY_MAX)
    return -EINVAL;
  struct str b = buf_str(&boundary);
  if (memchr(b.p, '\r', b.n) || memchr(b.p, '\n', b.n))
    return -EINVAL;
  memcpy(m->delimiter, "\r\n--", 4);
  memcpy(m->delimiter + 4, b.p, b.n);
  m->dlen = b.n + 4;
  m->matched = 2; /* the first one may stand at the very beginning */
  return 0;
}

void multipart_free(struct multipart *m)
{
  buf_free(&m->line);
  buf_free(&m->head);
}

static int data_out(struct multipart *m, struct str bytes)
{
  return m->in_part && bytes.n ? m->ops->data(m->arg, bytes) : 0;
}

/* Reads content up to and with a delimiter; *in loses what was read. */
static int content_step(struct multipart *m, struct str *in)
{
  if (m->matched == 0) {
    const char *cr = memchr(in->p, '\r', in->n);
    size_t run = cr ? (size_t)(cr - in->p) : in->n;
    struct str plain = str_sub(*in, 0, run);
    *in = str_skip(*in, run);
    int rc = data_out(m, plain);
    if (rc < 0 || in->n == 0)
      return rc;
  }
  while (in->n && m->matched < m->dlen && in->p[0] == m->delimiter[m->matched]) {
    m->matched++;
    *in = str_skip(*in, 1);
  }
  if (m->matched == m->dlen) {
    m->state = MP_LINE;
    buf_clear(&m->line);
    return 0;
  }
  if (in->n == 0)
    return 0;
  size_t held = m->matched;
  m->matched = 0;
  return data_out(m, str_make(m->delimiter, held));
}

/* What follows the delimiter on its line: `--`, or blanks and CR LF; anything else and it was only content. */
static bool line_possible(struct str line)
{
  if (line.p[0] == '-')
    return line.n == 1 || line.p[1] == '-';
  size_t i = 0;
  while (i < line.n && (line.p[i] == ' ' || line.p[i] == '\t'))
    i++;
  return i == line.n || (line.p[i] == '\r' && (i + 1 == line.n || line.p[i + 1] == '\n'));
}

static int part_end(struct multipart *m)
{
  bool was = m->in_part;
  m->in_part = false;
  return was ? m->ops->end(m->arg) : 0;
}

/* It was no delimiter: delimiter and line are content. A CR that ends the line may begin another one. */
static int line_undo(struct multipart *m)
{
  struct str line = buf_str(&m->line);
  bool cr = line.p[line.n - 1] == '\r';
  m->state = m->in_part ? MP_BODY : MP_PREAMBLE;
  m->matched = cr ? 1 : 0;
  int rc = data_out(m, str_make(m->delimiter, m->dlen));
  return rc < 0 ? rc : data_out(m, str_sub(line, 0, line.n - cr));
}

static int line_step(struct multipart *m, struct str *in)
{
  if (buf_addc(&m->line, in->p[0]) < 0)
    return -EINVAL;
  *in = str_skip(*in, 1);
  struct str line = buf_str(&m->line);
  if (!line_possible(line))
    return line_undo(m);
  if (line.n == 2 && line.p[0] == '-') {
    m->state = MP_EPILOGUE;
    return part_end(m);
  }
  if (line.p[line.n - 1] != '\n')
    return 0;
  m->state = MP_HEAD;
  buf_clear(&m->head);
  return part_end(m);
}

static int part_begin(struct multipart *m)
{
  cleanup_buf struct buf name = BUF_INIT(MULTIPART_HEAD_MAX), filename = BUF_INIT(MULTIPART_HEAD_MAX);
  struct str rest = buf_str(&m->head), line;
  int has_filename = 0;
  while (rest.n) {
    struct str all = rest, key, value;
    str_cut(all, '\n', &line, &rest);
    if (!str_cut(line, ':', &key, &value) || !str_ieq(str_trim(key), STR("Content-Disposition")))
      continue;
    value = str_trim(value);
    has_filename = multipart_param(value, "filename", &filename);
    if (has_filename < 0 || multipart_param(value, "name", &name) < 0)
      return -EINVAL;
  }
  m->state = MP_BODY;
  m->matched = 0;
  m->in_part = true;
  return m->ops->begin(m->arg, buf_str(&name), buf_str(&filename), has_filename > 0);
}

static int head_step(struct multipart *m, struct str *in)
{
  const char *lf = memchr(in->p, '\n', in->n);
  struct str piece = lf ? str_sub(*in, 0, (size_t)(lf - in->p) + 1) : *in;
  if (buf_adds(&m->head, piece) < 0)
    return -EINVAL;
  *in = str_skip(*in, piece.n);
  struct str head = buf_str(&m->head);
  if (lf && (str_is(head, "\r\n") || str_ends(head, STR("\n\r\n"))))
    return part_begin(m);
  return 0;
}

int multipart_feed(struct multipart *m, struct str in)
{
  int rc = 0;
  while (rc == 0 && in.n && m->state != MP_EPILOGUE) {
    if (m->state == MP_LINE)
      rc = line_step(m, &in);
    else if (m->state == MP_HEAD)
      rc = head_step(m, &in);
    else
      rc = content_step(m, &in);
  }
  return rc;
}

int multipart_finish(struct multipart *m)
{
  return m->state == MP_EPILOGUE ? 0 : -EINVAL;
}
