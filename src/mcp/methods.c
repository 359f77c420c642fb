/* SPDX-License-Identifier: Apache-2.0 */
/* methods.c - which method of the protocol means what. Versions of the protocol that begin with a handshake are spoken;
 * a client that knows later ones tries those first and then shakes hands. */
#include "mcp/session.h"

static const char *const versions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}; /* newest first */

static const char instructions[] =
    "Runs code and commands in a sandbox of your own. The first call makes it; variables, files and processes stay "
    "between calls. Python has numpy, pandas and matplotlib; figures come back as pictures and as numbers. Files are "
    "in "
    "/home/user. Other sandboxes are used by giving their ID as 'sandbox'.";

static void initialize(struct mcp_call *c)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  struct jw w = JW(&b);
  struct str wanted = json_text(json_get(c->params, "protocolVersion"), STR(""));
  const char *version = versions[0];
  for (size_t i = 0; i < ARRAY_LEN(versions); i++)
    if (str_is(wanted, versions[i]))
      version = versions[i];
  jw_open(&w, '{');
  jw_key(&w, "protocolVersion");
  jw_z(&w, version);
  jw_key(&w, "capabilities");
  jw_raw(&w, STR("{\"tools\":{\"listChanged\":false},\"resources\":{\"subscribe\":false,\"listChanged\":false}}"));
  jw_key(&w, "serverInfo");
  jw_open(&w, '{');
  jw_key(&w, "name");
  jw_z(&w, "cloche");
  jw_key(&w, "title");
  jw_z(&w, "Cloche sandboxes");
  jw_key(&w, "version");
  jw_z(&w, CLOCHE_VERSION);
  jw_close(&w, '}');
  jw_key(&w, "instructions");
  jw_z(&w, instructions);
  jw_close(&w, '}');
  call_answer(c, buf_str(&b));
}

static void ping(struct mcp_call *c)
{
  call_answer(c, STR("{}"));
}

static void tools_list(struct mcp_call *c)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  struct jw w = JW(&b);
  jw_open(&w, '{');
  jw_key(&w, "tools");
  mcp_tools_add(&w);
  jw_close(&w, '}');
  call_answer(c, buf_str(&b));
}

static void tools_call(struct mcp_call *c)
{
  struct str name = json_text(json_get(c->params, "name"), STR_NONE);
  c->tool = mcp_tool_find(name);
  c->arguments = json_get(c->params, "arguments");
  if (!c->tool)
    call_refuse(c, MCP_INVALID_PARAMS, "unknown tool '" STR_FMT "'; tools/list names them",
                STR_ARG(str_sub(name, 0, 100)));
  else if (json_given(c->arguments) && c->arguments->type != JSON_OBJECT)
    call_refuse(c, MCP_INVALID_PARAMS, "'arguments' must be an object");
  else
    c->tool->run(c);
}

static void resource_templates(struct mcp_call *c)
{
  call_answer(c, STR("{\"resourceTemplates\":[{\"uriTemplate\":\"cloche://{sandbox}/{+path}\",\"name\":\"file\","
                     "\"title\":\"A file of a sandbox\",\"description\":\"sandbox: its ID; path: absolute, without the "
                     "first slash\"}]}"));
}

static const struct {
  const char *name;
  mcp_step run;
} methods[] = {
    {"initialize", initialize},        {"ping", ping},
    {"tools/list", tools_list},        {"tools/call", tools_call},
    {"resources/list", resource_list}, {"resources/templates/list", resource_templates},
    {"resources/read", resource_read},
};

void method_call(struct mcp_call *c, struct str method)
{
  for (size_t i = 0; i < ARRAY_LEN(methods); i++)
    if (str_is(method, methods[i].name)) {
      methods[i].run(c);
      return;
    }
  call_refuse(c, MCP_NO_METHOD, "method '" STR_FMT "' not found", STR_ARG(str_sub(method, 0, 100)));
}
