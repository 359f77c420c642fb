/* SPDX-License-Identifier: Apache-2.0 */
/* tool_files.c - read_file, write_file, list_files, and files as resources (cloche://SANDBOX/PATH). */
#include "mcp/session.h"

#define SCHEME STR("cloche://")

static const struct {
  const char *ending, *mime;
} pictures[] = {{".png", "image/png"},
                {".jpg", "image/jpeg"},
                {".jpeg", "image/jpeg"},
                {".gif", "image/gif"},
                {".webp", "image/webp"}};

static const char *picture_type(const char *path)
{
  for (size_t i = 0; i < ARRAY_LEN(pictures); i++)
    if (str_ends(str_of(path), str_of(pictures[i].ending)))
      return pictures[i].mime;
  return NULL;
}

static bool is_text(struct str s)
{
  return utf8_valid(s) && str_find(s, 0) < 0;
}

/* ---- read_file ---- */

static void file_read_done(struct mcp_call *c)
{
  const struct cloche_text *t = c->result;
  struct str bytes = str_make(t->data, t->len);
  const char *path, *mime;
  if (!arg_text(c, "path", true, &path))
    return;
  mime = picture_type(path);
  if (mime) {
    cleanup_buf struct buf b = BUF_INIT((size_t)64 << 20);
    base64_add(&b, bytes.p, bytes.n, true);
    result_image(&c->out, mime, buf_str(&b));
  } else if (is_text(bytes)) {
    if (bytes.n)
      result_text(&c->out, bytes);
    else
      result_note(&c->out, "[the file is empty]");
  } else {
    result_note(&c->out, "[%zu bytes that are no text; run_command with base64, file or xxd shows them]", bytes.n);
  }
  call_tool_done(c);
}

static void read_file(struct mcp_call *c)
{
  const char *path;
  if (!arg_text(c, "path", true, &path))
    return;
  struct cloche_error e = {0};
  struct cloche_call call = call_begin(c, file_read_done);
  call_go(c, cloche_read(c->box->handle, path, NULL, (struct cloche_text **)&c->result, &call, &e), &e);
}

void tool_read_file(struct mcp_call *c)
{
  const char *path;
  if (arg_text(c, "path", true, &path))
    call_with_box(c, read_file);
}

/* ---- write_file ---- */

static void written(struct mcp_call *c)
{
  const struct cloche_entry *entry = c->result;
  result_note(&c->out, "wrote %lld bytes to %s", (long long)c->number, entry->path);
  result_put(&c->out, "sandbox", str_of(c->box_id));
  result_put(&c->out, "path", str_of(entry->path));
  jw_key(&c->out.data, "size");
  jw_int(&c->out.data, c->number);
  call_tool_done(c);
}

static void write_file(struct mcp_call *c)
{
  const char *path, *encoding;
  struct json *content = json_get(c->arguments, "content");
  if (!arg_text(c, "path", true, &path) || !arg_text(c, "encoding", false, &encoding))
    return;
  struct str bytes = json_text(content, STR_NONE);
  if (encoding && !strcmp(encoding, "base64")) {
    cleanup_buf struct buf b = BUF_INIT((size_t)64 << 20);
    if (base64_decode(bytes, &b)) {
      call_tool_failed(c, "'content' is not base64");
      return;
    }
    bytes = arena_str(&c->arena, buf_str(&b));
  }
  c->number = (int64_t)bytes.n;
  struct cloche_error e = {0};
  struct cloche_call call = call_begin(c, written);
  call_go(c,
          cloche_write(c->box->handle, path, bytes.p ? bytes.p : "", bytes.n, NULL, (struct cloche_entry **)&c->result,
                       &call, &e),
          &e);
}

void tool_write_file(struct mcp_call *c)
{
  const char *path, *encoding;
  if (!arg_text(c, "path", true, &path) || !arg_text(c, "encoding", false, &encoding))
    return;
  if (!json_is(json_get(c->arguments, "content"), JSON_STRING))
    call_tool_failed(c, "the argument 'content' must be a text");
  else if (encoding && strcmp(encoding, "base64") != 0 && strcmp(encoding, "utf-8") != 0)
    call_tool_failed(c, "the argument 'encoding' must be utf-8 or base64, not '%.40s'", encoding);
  else
    call_with_box(c, write_file);
}

/* ---- list_files ---- */

static void entry_put(struct jw *w, const struct cloche_entry *e)
{
  jw_open(w, '{');
  jw_key(w, "path");
  jw_z(w, e->path);
  jw_key(w, "type");
  jw_z(w, e->is_symlink ? "symlink" : e->type == CLOCHE_ENTRY_DIRECTORY ? "directory" : "file");
  jw_key(w, "size");
  jw_int(w, e->size);
  jw_close(w, '}');
}

static void listed(struct mcp_call *c)
{
  const struct cloche_entry_list *l = c->result;
  cleanup_buf struct buf b = BUF_INIT((size_t)64 << 20);
  size_t shown = 0;
  result_put(&c->out, "sandbox", str_of(c->box_id));
  jw_key(&c->out.data, "entries");
  jw_open(&c->out.data, '[');
  for (; shown < l->count && b.n < c->out.text_max; shown++) {
    const struct cloche_entry *e = &l->items[shown];
    buf_addf(&b, "%s%s%s", e->path, e->type == CLOCHE_ENTRY_DIRECTORY ? "/" : "", e->is_symlink ? "@" : "");
    if (e->type == CLOCHE_ENTRY_FILE)
      buf_addf(&b, "  %lld", (long long)e->size);
    buf_addc(&b, '\n');
    entry_put(&c->out.data, e);
  }
  jw_close(&c->out.data, ']');
  if (l->count)
    result_text(&c->out, buf_str(&b));
  else
    result_note(&c->out, "[the directory is empty]");
  if (shown < l->count)
    result_note(&c->out, "[%zu more entries are left out]", l->count - shown);
  call_tool_done(c);
}

static void list_files(struct mcp_call *c)
{
  const char *path;
  int64_t depth;
  if (!arg_text(c, "path", false, &path) || !arg_int(c, "depth", 1, 16, 1, &depth))
    return;
  struct cloche_error e = {0};
  struct cloche_call call = call_begin(c, listed);
  call_go(c,
          cloche_list_dir(c->box->handle, path ? path : ".", (int)depth, NULL, (struct cloche_entry_list **)&c->result,
                          &call, &e),
          &e);
}

void tool_list_files(struct mcp_call *c)
{
  call_with_box(c, list_files);
}

/* ---- resources ---- */

static void resource_uri(struct buf *b, const char *box, const char *path)
{
  struct str rest = str_of(path), part;
  buf_adds(b, SCHEME);
  buf_addz(b, box);
  while (rest.n && rest.p[0] == '/')
    rest = str_skip(rest, 1);
  while (rest.n) {
    str_cut(rest, '/', &part, &rest);
    buf_addc(b, '/');
    percent_encode(part, b);
  }
}

static void home_listed(struct mcp_call *c)
{
  const struct cloche_entry_list *l = c->result;
  cleanup_buf struct buf b = BUF_INIT((size_t)16 << 20);
  struct jw w = JW(&b);
  jw_open(&w, '{');
  jw_key(&w, "resources");
  jw_open(&w, '[');
  for (size_t i = 0; i < l->count && b.n < c->out.text_max; i++) {
    cleanup_buf struct buf uri = BUF_INIT(1 << 16);
    if (l->items[i].type != CLOCHE_ENTRY_FILE)
      continue;
    resource_uri(&uri, c->box_id, l->items[i].path);
    jw_open(&w, '{');
    jw_key(&w, "uri");
    jw_str(&w, buf_str(&uri));
    jw_key(&w, "name");
    jw_z(&w, l->items[i].name);
    jw_key(&w, "size");
    jw_int(&w, l->items[i].size);
    jw_close(&w, '}');
  }
  jw_close(&w, ']');
  jw_close(&w, '}');
  call_answer(c, buf_str(&b));
}

/* Files of the session's sandbox. A list makes none. */
void resource_list(struct mcp_call *c)
{
  if (!c->session->box) {
    call_answer(c, STR("{\"resources\":[]}"));
    return;
  }
  c->box = c->session->box;
  c->box_id = xstrdup(cloche_box_id(c->box->handle));
  struct cloche_error e = {0};
  struct cloche_call call = call_begin(c, home_listed);
  call_go(c, cloche_list_dir(c->box->handle, ".", 1, NULL, (struct cloche_entry_list **)&c->result, &call, &e), &e);
}

static void resource_told(struct mcp_call *c)
{
  const struct cloche_text *t = c->result;
  struct str bytes = str_make(t->data, t->len), uri = json_text(json_get(c->params, "uri"), STR(""));
  const char *mime = picture_type(arena_z(&c->arena, uri));
  bool text = !mime && is_text(bytes);
  if (bytes.n > c->session->options.limits.result_max) {
    call_refuse(c, -32000, "the file has %zu bytes, a resource at most %zu; read a part of it with run_command",
                bytes.n, c->session->options.limits.result_max);
    return;
  }
  cleanup_buf struct buf b = BUF_INIT((size_t)64 << 20), data = BUF_INIT((size_t)64 << 20);
  struct jw w = JW(&b);
  if (!text)
    base64_add(&data, bytes.p, bytes.n, true);
  jw_open(&w, '{');
  jw_key(&w, "contents");
  jw_open(&w, '[');
  jw_open(&w, '{');
  jw_key(&w, "uri");
  jw_str(&w, uri);
  jw_key(&w, "mimeType");
  jw_z(&w, mime ? mime : text ? "text/plain" : "application/octet-stream");
  jw_key(&w, text ? "text" : "blob");
  jw_str(&w, text ? bytes : buf_str(&data));
  jw_close(&w, '}');
  jw_close(&w, ']');
  jw_close(&w, '}');
  call_answer(c, buf_str(&b));
}

static void resource_fetch(struct mcp_call *c)
{
  struct cloche_error e = {0};
  struct cloche_call call = call_begin(c, resource_told);
  const char *path = json_text(json_get(c->arguments, "path"), STR("")).p;
  call_go(c, cloche_read(c->box->handle, path, NULL, (struct cloche_text **)&c->result, &call, &e), &e);
}

/* cloche://SANDBOX/PATH as if both were arguments of a tool. */
static struct json *uri_arguments(struct arena *a, struct str uri)
{
  struct str box, path;
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  struct json *v = arena_alloc(a, 3 * sizeof(*v));
  if (!v || !str_starts(uri, SCHEME))
    return NULL;
  buf_addc(&b, '/');
  if (!str_cut(str_skip(uri, SCHEME.n), '/', &box, &path) || !box.n || percent_decode(path, false, &b) ||
      str_find(buf_str(&b), 0) >= 0)
    return NULL;
  v[1] = (struct json){.type = JSON_STRING, .key = STR("sandbox"), .text = arena_str(a, box), .next = &v[2]};
  v[2] = (struct json){.type = JSON_STRING, .key = STR("path"), .text = arena_str(a, buf_str(&b))};
  v[0] = (struct json){.type = JSON_OBJECT, .kids = &v[1], .count = 2};
  return v;
}

void resource_read(struct mcp_call *c)
{
  c->arguments = uri_arguments(&c->arena, json_text(json_get(c->params, "uri"), STR("")));
  if (!c->arguments)
    call_refuse(c, MCP_INVALID_PARAMS, "'uri' must be cloche://SANDBOX/PATH");
  else
    call_with_box(c, resource_fetch);
}
