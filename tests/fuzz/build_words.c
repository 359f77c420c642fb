/* SPDX-License-Identifier: Apache-2.0 */
/* build_words.c - packets of a box that builds a template, against two orders under way. The input is a row of packets:
 * two bytes of length, then the bytes. Lines are bounded and have no newline, an order that is over stays as it is, and
 * errors say why. */
#include "must.h"

#include "warden/build/build_reply.h"

#define CAPTURE 4096

static size_t told;

static void on_line(void *arg, const struct build_cmd *o, bool errors, struct str line)
{
  MUST(arg == &told && (o->number == 1 || o->number == 2));
  MUST(line.n <= BUILD_LINE_MOST && str_find(line, '\n') < 0);
  told += line.n + errors;
}

static void feed(struct str in, struct build_cmd *o, struct build_cmd *beside)
{
  const struct build_output ear = {.line = on_line, .arg = &told};
  while (in.n >= 2) {
    size_t n = (uint8_t)in.p[0] | (size_t)(uint8_t)in.p[1] << 8;
    struct err err = ERR_NONE;
    bool over = o->over, beside_over = beside->over;
    int status = o->status, beside_status = beside->status;
    in = str_skip(in, 2);
    n = MIN(n, in.n);
    int r = build_reply_take(&ear, o, beside, str_sub(in, 0, n), &err);
    MUST(r == 0 || (r < 0 && err.msg[0]));
    MUST(!over || (o->over && o->status == status));
    MUST(!beside_over || (beside->over && beside->status == beside_status));
    MUST(o->status >= 0 && o->status <= 255 && beside->status >= 0 && beside->status <= 255);
    in = str_skip(in, n);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  cleanup_buf struct buf capture = BUF_INIT(CAPTURE);
  struct build_cmd o = {.prefix = "[one]"}, beside = {.prefix = "[two]", .capture = &capture};
  build_cmd_begin(&o, 1);
  build_cmd_begin(&beside, 2);
  feed(str_make((const char *)data, size), &o, &beside);
  MUST(o.part[0].n <= BUILD_LINE_MOST && o.part[1].n <= BUILD_LINE_MOST && capture.n <= CAPTURE);
  build_cmd_free(&o);
  build_cmd_free(&beside);
  return 0;
}
