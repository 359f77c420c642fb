/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_message.c - what a client of the Model Context Protocol may send: every request is answered once, with JSON, and
 * nothing is left when the session ends. There is no server behind it: operations fail. */
#include "must.h"

#include "mcp/mcp.h"
#include <cloche.h>

static unsigned answers;

static int no_way(void *arg)
{
  return -1;
}

static void hear(struct str message, bool last, void *arg)
{
  cleanup_arena struct arena a = ARENA_INIT(0);
  struct json_error why;
  struct json *m = json_read(&a, message, 0, &why);
  MUST(json_is(m, JSON_OBJECT));
  MUST(!last || json_get(m, "id"));
  answers += last;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct cloche_config config = {
      .size = sizeof(config), .url = "http://127.0.0.1", .key = "e2b_0", .open_socket = no_way, .retries = -1};
  struct mcp_options options = {.id = STR("0"), .idle_s = 60, .limits = mcp_limits_default};
  struct err err = ERR_NONE;
  struct mcp_call *call = NULL;
  uv_loop_t loop;
  int code = 0;
  uv_loop_init(&loop);
  struct mcp_session *s = mcp_session_new(&loop, &config, &options, &err);
  MUST(s);
  answers = 0;
  int r = mcp_session_take(s, str_make(data, size), hear, NULL, &call, &code, &err);
  MUST(!r || code);
  bool request = call || answers;
  for (int i = 0; i < 100 && call; i++)
    uv_run(&loop, UV_RUN_NOWAIT);
  mcp_session_end(s, NULL, NULL);
  MUST(!call);
  MUST(answers == request);
  uv_run(&loop, UV_RUN_DEFAULT);
  MUST(!uv_loop_close(&loop));
  return 0;
}
