/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

enum cloche_code cloche_template_delete(struct cloche *client, const char *name, bool *existed,
                                        const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = op_begin(client, NULL, call, OP_CONTROL, error);
  if (!op)
    return error ? error->code : CLOCHE_ENOMEM;
  req_api(op, "DELETE", "/templates");
  req_segment(op, name);
  op->on_reply = reply_existed;
  op->out = existed;
  return op_go(op, error);
}
