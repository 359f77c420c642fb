/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of the API that have no function of their own. */
#include <string.h>
#include "internal.h"

/* The request outlives the caller's text: one of these stands for it. */
static const char *known_method(const char *method)
{
  static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
  for (size_t i = 0; method && i < sizeof methods / sizeof *methods; i++)
    if (strcmp(method, methods[i]) == 0)
      return methods[i];
  return NULL;
}

enum cloche_code cloche_request(struct cloche *client, const char *method, const char *path,
                                const struct cloche_request *options, struct cloche_text **answer,
                                const struct cloche_call *call, struct cloche_error *error)
{
  OPTIONS(cloche_request, o, options);
  const char *known = known_method(method);
  if (answer)
    *answer = NULL;
  if (!known)
    return error_set(error, CLOCHE_EINVAL, "the method must be GET, POST, PUT, PATCH or DELETE");
  if (!path || path[0] != '/' || strpbrk(path, " \r\n\t#"))
    return error_set(error, CLOCHE_EINVAL, "the path must begin with '/' and be escaped");
  struct cloche_op *op = op_begin(client, NULL, call, OP_CONTROL, error);
  if (!op)
    return op_not_begun(call);
  req_api(op, known, path);
  for (size_t i = 0; i < o.header_count; i++)
    req_header(op, o.headers[i].name, o.headers[i].value);
  if (o.body) {
    req_json(op);
    buf_puts(&op->body, o.body);
  }
  op->on_reply = reply_bytes;
  op->out = answer;
  return op_go(op, error);
}
