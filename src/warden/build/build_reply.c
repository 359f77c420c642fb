/* SPDX-License-Identifier: Apache-2.0 */
/* build_reply.c - see build_reply.h. */
#include "warden/build/build_reply.h"

#include "warden/core/agent_reply.h"

void build_cmd_begin(struct build_cmd *o, uint32_t number)
{
  o->number = number;
  o->over = false;
  o->status = 0;
  for (size_t i = 0; i < ARRAY_LEN(o->part); i++)
    if (!o->part[i].max)
      buf_init(&o->part[i], 2 * BUILD_LINE_MOST + EXEC_CHUNK);
}

void build_cmd_free(struct build_cmd *o)
{
  buf_free(&o->part[0]);
  buf_free(&o->part[1]);
}

static void tell_line(const struct build_output *ear, const struct build_cmd *o, bool errors, struct str line)
{
  if (line.n && line.p[line.n - 1] == '\r')
    line.n--;
  ear->line(ear->arg, o, errors, line);
}

static void tell_output(const struct build_output *ear, struct build_cmd *o, bool errors, struct str bytes, bool end)
{
  struct buf *part = &o->part[errors];
  struct str line, rest;
  buf_adds(part, bytes);
  rest = buf_str(part);
  while (str_find(rest, '\n') >= 0 || rest.n > BUILD_LINE_MOST) {
    struct str cut = str_sub(rest, 0, BUILD_LINE_MOST);
    bool whole = str_cut(cut, '\n', &line, &cut);
    tell_line(ear, o, errors, line);
    rest = str_skip(rest, line.n + whole);
  }
  if (end && rest.n) {
    tell_line(ear, o, errors, rest);
    rest = STR_NONE;
  }
  buf_drop(part, part->n - rest.n);
}

/* A status is one byte by nature; what else is claimed is a failure like any other. */
static void take_end(const struct build_output *ear, struct build_cmd *o, int32_t status)
{
  tell_output(ear, o, false, STR_NONE, true);
  tell_output(ear, o, true, STR_NONE, true);
  o->over = true;
  o->status = status >= 0 && status <= 255 ? status : 255;
}

static int take_word(const struct build_output *ear, struct build_cmd *o, const struct exec_event *w, struct str bytes,
                     struct err *err)
{
  char why[AGENT_TEXT_MAX + 1];
  switch (w->what) {
  case EXEC_STDOUT:
    if (!o->capture)
      tell_output(ear, o, false, bytes, false);
    else if (buf_adds(o->capture, bytes))
      return err_set(err, -E2BIG, "the step printed more than %zu bytes where a value was expected", o->capture->max);
    return 0;
  case EXEC_STDERR:
    tell_output(ear, o, true, bytes, false);
    return 0;
  case EXEC_REFUSED:
    o->over = true;
    agent_text(bytes, why);
    return err_set(err, -ENOEXEC, "%s", why[0] ? why : "the agent refused the step without a reason");
  case EXEC_END:
    take_end(ear, o, w->status);
    return 0;
  }
  return err_set(err, -EPROTO, "the build's sandbox sent a message of the unknown kind %u", w->what);
}

int build_reply_take(const struct build_output *ear, struct build_cmd *o, struct build_cmd *beside, struct str packet,
                     struct err *err)
{
  struct exec_event word;
  struct str bytes;
  int r = agent_reply_exec(packet, &word, &bytes, err);
  if (r)
    return r;
  struct build_cmd *whose = o && word.number == o->number ? o : beside && word.number == beside->number ? beside : NULL;
  return whose && !whose->over ? take_word(ear, whose, &word, bytes, err) : 0;
}
