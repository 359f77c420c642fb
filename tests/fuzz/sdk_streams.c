/* SPDX-License-Identifier: Apache-2.0 */
/* sdk_streams.c - what libcloche reads from a server: the interpreter's lines, the agent's frames, answers in JSON.
 *
 * Byte 0 chooses the call, byte 1 how many bytes arrive at once; the rest is what the server sends. The request is made
 * and never sent: its answer is put where libcurl would put it. */
#include "must.h"

#include <stdlib.h>
#include <string.h>
#include "internal.h"

static struct cloche *client;
static struct cloche_box *box;

static int on_text(const struct cloche_text *text, void *user)
{
  MUST(text->data[text->len] == 0);
  return 0;
}

static int on_result(const struct cloche_result *result, void *user)
{
  MUST(result->raw && result->raw[0] == '{');
  return 0;
}

static int on_event(const struct cloche_watch_event *event, void *user)
{
  MUST(event->name != NULL);
  return 0;
}

/* Bytes as they come, then the end of the answer. */
static enum cloche_code feed(struct cloche_op *op, const char *data, size_t len, size_t chunk)
{
  op->status = 200;
  op->head_seen = true;
  op->busy = true;
  enum cloche_code code = CLOCHE_OK;
  for (size_t at = 0; at < len && code == CLOCHE_OK; at += chunk) {
    buf_add(&op->in, data + at, len - at < chunk ? len - at : chunk);
    if (op->on_data)
      code = op->on_data(op);
  }
  if (code == CLOCHE_OK)
    code = op->on_reply(op);
  op->busy = false;
  return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (size < 2)
    return 0;
  if (!client) {
    const struct cloche_config config = {.size = sizeof config, .key = "k", .url = "http://127.0.0.1:1"};
    MUST(cloche_open(&config, &client, NULL) == CLOCHE_OK);
    MUST(cloche_attach(client, "ibox", NULL, NULL, &box, NULL) == CLOCHE_OK);
  }
  struct cloche_op *op = cloche_op_new(client, NULL, NULL);
  const struct cloche_call call = {.size = sizeof call, .op = op};
  const struct cloche_run run = {.size = sizeof run,
                                 .on_stdout = on_text,
                                 .on_stderr = on_text,
                                 .on_result = on_result,
                                 .no_retain = data[0] & 64};
  const struct cloche_command command = {.size = sizeof command, .on_stdout = on_text, .on_stderr = on_text};
  const struct cloche_watch watch = {.size = sizeof watch, .on_event = on_event};
  void *out = NULL;
  struct cloche_box *made = NULL;
  bool is_box = false;
  switch (data[0] % 7) {
  case 0:
    cloche_run_code(box, "1", &run, (struct cloche_execution **)&out, &call, NULL);
    break;
  case 1:
    cloche_command(box, "true", &command, (struct cloche_command_result **)&out, &call, NULL);
    break;
  case 2:
    cloche_watch(box, "/", &watch, &call, NULL);
    break;
  case 3:
    cloche_list(client, NULL, (struct cloche_box_list **)&out, &call, NULL);
    break;
  case 4:
    cloche_list_dir(box, "/", 1, NULL, (struct cloche_entry_list **)&out, &call, NULL);
    break;
  case 5:
    cloche_git_status(box, "/", NULL, (struct cloche_git_status **)&out, &call, NULL);
    break;
  default:
    is_box = true;
    cloche_create(client, NULL, &made, &call, NULL);
  }
  MUST(!cloche_op_done(op));
  feed(op, (const char *)data + 2, size - 2, (size_t)data[1] + 1);
  cloche_op_free(op);
  if (is_box)
    cloche_box_free(made);
  cloche_free(out);
  return 0;
}
