/* SPDX-License-Identifier: Apache-2.0 */
/* h1reader.c - see h1reader.h. */
#include "net/h1reader.h"

static int take_head(struct h1_reader *r, struct str head)
{
  struct http_head h;
  struct h1_frame frame;
  const char *why;
  size_t cap = r->scan.lines;
  struct http_header *hv = calloc(cap ? cap : 1, sizeof(*hv));
  if (!hv)
    return -ENOMEM;
  int bad = h1_response(head, r->bodyless, &h, hv, cap, &frame, &why);
  bool interim = !bad && h.status < 200 && h.status != 101;
  for (size_t i = 0; !bad && !interim && r->header && i < h.nheaders; i++)
    r->header(r->arg, hv[i].name, hv[i].value);
  free(hv);
  r->scan = (struct h1scan){0};
  if (bad || interim)
    return bad ? -EPROTO : 0;
  r->status = h.status;
  r->closes = !frame.keep || frame.kind == H1_UNTIL_EOF;
  h1_body_start(&r->body, &frame);
  r->over = h.status == 101 || frame.kind == H1_NONE || (frame.kind == H1_LENGTH && !frame.length);
  return 0;
}

int h1_reader_take(struct h1_reader *r, struct str in, size_t *used, struct str *body)
{
  *used = 0;
  *body = str_sub(in, 0, 0);
  if (r->over || !in.n)
    return 0;
  if (!r->status) {
    const char *why;
    ptrdiff_t n = h1_scan(&r->scan, H1_RESPONSE, in, &http_limits_default, &why);
    *used = n > 0 ? (size_t)n : 0;
    return n < 0 ? -EPROTO : n > 0 ? take_head(r, str_sub(in, 0, *used)) : 0;
  }
  struct str rest = in;
  int step = h1_body_next(&r->body, &rest, body);
  *used = in.n - rest.n;
  r->over = step == H1_END || r->body.done || (r->body.kind == H1_LENGTH && !r->body.left);
  if (step != H1_DATA)
    *body = str_sub(in, 0, 0);
  return step < 0 ? -EPROTO : 0;
}

int h1_reader_eof(struct h1_reader *r)
{
  if (!r->status || r->body.kind != H1_UNTIL_EOF)
    return -ECONNRESET;
  r->over = true;
  return 0;
}
