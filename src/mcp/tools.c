/* SPDX-License-Identifier: Apache-2.0 */
/* tools.c - the table of tools: names, words for models, arguments. A new tool is a row here and a function. */
#include "mcp/session.h"

struct field {
  const char *name, *type, *words; /* type as in JSON Schema, or TEXTS; words: of arguments */
  bool required;
};

#define TEXTS  "texts" /* an object whose values are texts */
#define NEEDED true
#define SANDBOX                                                                                                        \
  {                                                                                                                    \
    "sandbox", "string", "ID of a sandbox; default: this session's own", false                                         \
  }
#define ID                                                                                                             \
  {                                                                                                                    \
    "sandbox", "string", NULL, NEEDED                                                                                  \
  }
#define FIELDS (const struct field[])

struct row {
  struct mcp_tool tool;
  const struct field *in, *out; /* each ends with a field without a name; out may be NULL */
};

static const struct row rows[] = {
    {{"run_code", "Run code",
      "Runs code as a notebook cell does: state stays between calls; the value of the last expression, figures and "
      "tables are results. Languages: python (default), javascript, typescript, bash, r, java.",
      tool_run_code, false},
     FIELDS{{"code", "string", "the code", NEEDED},
            {"language", "string", "default: python", false},
            {"context", "string", "ID of a context of its own", false},
            {"timeout", "integer", "seconds; default 300", false},
            SANDBOX,
            {0}},
     FIELDS{ID,
            {"stdout", "string", NULL, false},
            {"stderr", "string", NULL, false},
            {"results", "array", NULL, NEEDED},
            {"error", "object", NULL, false},
            {"executionCount", "integer", NULL, false},
            {0}}},
    {{"run_command", "Run a command", "Runs a line of bash and waits for its end.", tool_run_command, false},
     FIELDS{{"command", "string", "the line", NEEDED},
            {"cwd", "string", "working directory; default: the user's home", false},
            {"user", "string", "who runs it; default: user, who may use sudo", false},
            {"envs", TEXTS, "environment variables", false},
            {"timeout", "integer", "seconds; default 60", false},
            SANDBOX,
            {0}},
     FIELDS{ID,
            {"exitCode", "integer", NULL, NEEDED},
            {"stdout", "string", NULL, false},
            {"stderr", "string", NULL, false},
            {0}}},
    {{"read_file", "Read a file", "Reads a file: text as text, a picture as a picture.", tool_read_file, true},
     FIELDS{{"path", "string", "absolute, or relative to the user's home", NEEDED}, SANDBOX, {0}},
     NULL},
    {{"write_file", "Write a file", "Writes a file, and makes the directories above it.", tool_write_file, false},
     FIELDS{{"path", "string", "absolute, or relative to the user's home", NEEDED},
            {"content", "string", "what it shall hold", NEEDED},
            {"encoding", "string", "of content: utf-8 (default) or base64", false},
            SANDBOX,
            {0}},
     FIELDS{ID, {"path", "string", NULL, NEEDED}, {"size", "integer", NULL, false}, {0}}},
    {{"list_files", "List files", "Lists the entries of a directory.", tool_list_files, true},
     FIELDS{{"path", "string", "default: the user's home", false},
            {"depth", "integer", "levels; default 1", false},
            SANDBOX,
            {0}},
     FIELDS{ID, {"entries", "array", NULL, NEEDED}, {0}}},
    {{"create_sandbox", "Create a sandbox",
      "Makes a new sandbox, which becomes this session's own unless 'use' is false. Not needed to begin with: the "
      "first "
      "call of another tool makes one.",
      tool_create, false},
     FIELDS{{"template", "string", "name of a template", false},
            {"timeout", "integer", "seconds until it ends unless used; default 900", false},
            {"envs", TEXTS, "environment variables", false},
            {"metadata", TEXTS, "labels", false},
            {"internet", "boolean", "whether it may reach the network; default true", false},
            {"pause", "boolean", "pause it instead of ending it when its time is over; default false", false},
            {"use", "boolean", "make it this session's own; default true", false},
            {0}},
     FIELDS{ID, {"template", "string", NULL, false}, {0}}},
    {{"list_sandboxes", "List sandboxes", "Lists running and paused sandboxes.", tool_list, true},
     FIELDS{{"state", "string", "running or paused; default: both", false}, {0}},
     FIELDS{{"sandboxes", "array", NULL, NEEDED}, {0}}},
    {{"pause_sandbox", "Pause a sandbox", "Keeps memory, processes and files on disk until it is resumed.", tool_pause,
      false},
     FIELDS{SANDBOX, {0}},
     FIELDS{ID, {0}}},
    {{"resume_sandbox", "Resume a sandbox", "Resumes a paused sandbox, which goes on where it was.", tool_resume,
      false},
     FIELDS{{"sandbox", "string", "ID of the sandbox", NEEDED},
            {"use", "boolean", "make it this session's own; default false", false},
            {0}},
     FIELDS{ID, {0}}},
    {{"fork_sandbox", "Fork a sandbox", "Makes copies of a running sandbox, memory and files included.", tool_fork,
      false},
     FIELDS{{"count", "integer", "copies, 1 to 20; default 1", false},
            {"timeout", "integer", "seconds that a copy lives; default 900", false},
            SANDBOX,
            {0}},
     FIELDS{{"sandboxes", "array", NULL, NEEDED}, {0}}},
    {{"kill_sandbox", "End a sandbox", "Ends a sandbox; its state is lost.", tool_kill, false},
     FIELDS{SANDBOX, {0}},
     FIELDS{ID, {"existed", "boolean", NULL, false}, {0}}},
    {{"build_template", "Build a template",
      "Builds a template from a Dockerfile's text (FROM, RUN, ENV, WORKDIR, USER, CMD; no COPY of local files). FROM "
      "e2bdev/base or e2bdev/code-interpreter begins with what sandboxes have. create_sandbox takes its name.",
      tool_build_template, false},
     FIELDS{{"name", "string", "of the template", NEEDED},
            {"dockerfile", "string", "the text", NEEDED},
            {"cpus", "integer", "processors of its sandboxes", false},
            {"memory", "integer", "MiB of its sandboxes", false},
            {"timeout", "integer", "seconds; default 900", false},
            {0}},
     FIELDS{{"template", "string", NULL, NEEDED},
            {"build", "string", NULL, false},
            {"status", "string", NULL, false},
            {0}}},
};

const struct mcp_tool *mcp_tool_find(struct str name)
{
  for (size_t i = 0; i < ARRAY_LEN(rows); i++)
    if (str_is(name, rows[i].tool.name))
      return &rows[i].tool;
  return NULL;
}

static void field_add(struct jw *w, const struct field *f)
{
  bool texts = !strcmp(f->type, TEXTS);
  jw_key(w, f->name);
  jw_open(w, '{');
  jw_key(w, "type");
  jw_z(w, texts ? "object" : f->type);
  if (texts) {
    jw_key(w, "additionalProperties");
    jw_raw(w, STR("{\"type\":\"string\"}"));
  }
  if (f->words) {
    jw_key(w, "description");
    jw_z(w, f->words);
  }
  jw_close(w, '}');
}

static void schema_add(struct jw *w, const char *name, const struct field *fields)
{
  jw_key(w, name);
  jw_open(w, '{');
  jw_key(w, "type");
  jw_z(w, "object");
  jw_key(w, "properties");
  jw_open(w, '{');
  for (const struct field *f = fields; f->name; f++)
    field_add(w, f);
  jw_close(w, '}');
  jw_key(w, "required");
  jw_open(w, '[');
  for (const struct field *f = fields; f->name; f++)
    if (f->required)
      jw_z(w, f->name);
  jw_close(w, ']');
  jw_close(w, '}');
}

static void tool_add(struct jw *w, const struct row *row)
{
  jw_open(w, '{');
  jw_key(w, "name");
  jw_z(w, row->tool.name);
  jw_key(w, "title");
  jw_z(w, row->tool.title);
  jw_key(w, "description");
  jw_z(w, row->tool.description);
  schema_add(w, "inputSchema", row->in);
  if (row->out)
    schema_add(w, "outputSchema", row->out);
  jw_key(w, "annotations");
  jw_open(w, '{');
  jw_key(w, "readOnlyHint");
  jw_bool(w, row->tool.reads);
  jw_close(w, '}');
  jw_close(w, '}');
}

void mcp_tools_add(struct jw *w)
{
  jw_open(w, '[');
  for (size_t i = 0; i < ARRAY_LEN(rows); i++)
    tool_add(w, &rows[i]);
  jw_close(w, ']');
}
