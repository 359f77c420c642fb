/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a sandbox: content over /files, the rest and watching over the agent's filesystem service. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "internal.h"

#define AT(key, kind, member)                                                                                          \
  {                                                                                                                    \
    key, kind, offsetof(struct cloche_entry, member), 0, NULL                                                          \
  }
static const struct field entry_fields[] = {
    AT("name", F_TEXT, name),
    AT("path", F_TEXT, path),
    AT("isSymlink", F_BOOL, is_symlink),
    AT("size", F_INT, size),
    AT("mode", F_U32, mode),
    AT("permissions", F_TEXT, permissions),
    AT("owner", F_TEXT, owner),
    AT("group", F_TEXT, group),
    AT("modifiedTime", F_TEXT, modified),
    AT("symlinkTarget", F_TEXT, symlink_target),
    {"metadata", F_PAIRS, offsetof(struct cloche_entry, metadata), offsetof(struct cloche_entry, metadata_count), NULL},
    {0}};
const struct model entry_model = {sizeof(struct cloche_entry), entry_fields, NULL};

void entry_fix(struct cloche_entry *entry, const struct json *j)
{
  const char *type = json_text(j, "type");
  if (type && (strcmp(type, "FILE_TYPE_FILE") == 0 || strcmp(type, "file") == 0))
    entry->type = CLOCHE_ENTRY_FILE;
  else if (type && (strcmp(type, "FILE_TYPE_DIRECTORY") == 0 || strcmp(type, "dir") == 0))
    entry->type = CLOCHE_ENTRY_DIRECTORY;
}

/* An answer with one entry: {"entry": {...}}, or the first of an array. */
enum cloche_code reply_entry(struct cloche_op *op)
{
  if (!reply_good(op))
    return reply_failed(op);
  if (!op->out)
    return CLOCHE_OK;
  enum cloche_code code = CLOCHE_OK;
  struct cloche_entry *entry = result_new(sizeof *entry);
  if (!entry)
    return CLOCHE_ENOMEM;
  struct json *j = reply_json(op, result_arena(entry), &code);
  const struct json *of = j && j->type == JSON_ARRAY ? j->child : json_get(j, "entry");
  if (j && !of)
    code = op_fail(op, CLOCHE_EPROTO, "the answer names no file");
  if (code == CLOCHE_OK && !model_fill(result_arena(entry), &entry_model, of, entry))
    code = CLOCHE_ENOMEM;
  if (code != CLOCHE_OK) {
    cloche_free(entry);
    return code;
  }
  entry_fix(entry, of);
  return answer(op, entry);
}

static enum cloche_code reply_entries(struct cloche_op *op)
{
  if (!reply_good(op))
    return reply_failed(op);
  enum cloche_code code = CLOCHE_OK;
  struct cloche_entry_list *list = result_new(sizeof *list);
  if (!list)
    return CLOCHE_ENOMEM;
  struct json *j = reply_json(op, result_arena(list), &code);
  const struct json *all = json_get(j, "entries");
  const void *items = NULL;
  if (j && !model_array(result_arena(list), &entry_model, all, &items, &list->count))
    code = CLOCHE_ENOMEM;
  if (code != CLOCHE_OK) {
    cloche_free(list);
    return code;
  }
  struct cloche_entry *entries = (struct cloche_entry *)items;
  list->items = entries;
  for (const struct json *e = list->count ? all->child : NULL; e; e = e->next)
    entry_fix(entries++, e);
  return answer(op, list);
}

enum cloche_code reply_bytes(struct cloche_op *op)
{
  if (!reply_good(op))
    return reply_failed(op);
  struct cloche_text *text = result_new(sizeof *text);
  if (!text || !(text->data = arena_text(result_arena(text), op->in.data, op->in.len))) {
    cloche_free(text);
    return CLOCHE_ENOMEM;
  }
  text->len = op->in.len;
  return answer(op, text);
}

static enum cloche_code sink_waits(struct cloche_op *op)
{
  op->watch_fd = dup(op->sink_fd);
  if (op->watch_fd < 0 || !client_watch(op->client, op->watch_fd, EPOLLOUT))
    return op_fail(op, CLOCHE_ESYSTEM, "waiting for the descriptor: %s", strerror(errno));
  op->source_waits = true;
  return CLOCHE_OK;
}

enum cloche_code sink_write(struct cloche_op *op)
{
  size_t at = 0;
  enum cloche_code code = CLOCHE_OK;
  while (at < op->in.len && code == CLOCHE_OK && !op->source_waits) {
    ssize_t n = write(op->sink_fd, op->in.data + at, op->in.len - at);
    if (n >= 0)
      at += (size_t)n;
    else if (errno == EAGAIN)
      code = sink_waits(op);
    else if (errno != EINTR)
      code = op_fail(op, CLOCHE_ESYSTEM, "writing to the descriptor: %s", strerror(errno));
  }
  op->source_size += (int64_t)at;
  buf_cut(&op->in, at);
  op->progress_at = now_ms();
  return code;
}

enum cloche_code reply_sink(struct cloche_op *op)
{
  if (!reply_good(op))
    return reply_failed(op);
  if (op->out)
    *(int64_t *)op->out = op->source_size;
  return CLOCHE_OK;
}

/* Content of a file to or from somewhere. */
static struct cloche_op *begin_content(struct cloche_box *box, const char *method, const char *path,
                                       const struct cloche_file *o, const struct cloche_call *call,
                                       struct cloche_error *error)
{
  struct cloche_op *op = op_begin(box->client, box, call, OP_TRANSFER, error);
  if (!op)
    return NULL;
  req_box(op, AGENT_PORT, method, "/files");
  req_query(op, "path", path);
  if (o->user_name)
    req_query(op, "username", o->user_name);
  if (strcmp(method, "POST") == 0) {
    req_header(op, "Content-Type", "application/octet-stream");
    for (size_t i = 0; i < o->metadata_count; i++) {
      struct buf name = {0};
      buf_printf(&name, "X-Metadata-%s", o->metadata[i].name);
      if (name.failed)
        op->failed = CLOCHE_ENOMEM;
      else
        req_header(op, name.data, o->metadata[i].value);
      buf_free(&name);
    }
  }
  op->on_progress = o->on_progress;
  op->progress_user = o->user;
  return op;
}

enum cloche_code cloche_read(struct cloche_box *box, const char *path, const struct cloche_file *options,
                             struct cloche_text **content, const struct cloche_call *call, struct cloche_error *error)
{
  OPTIONS(cloche_file, o, options);
  *content = NULL;
  struct cloche_op *op = begin_content(box, "GET", path, &o, call, error);
  if (!op)
    return op_not_begun(call);
  op->on_reply = reply_bytes;
  op->out = content;
  return op_go(op, error);
}

enum cloche_code cloche_read_fd(struct cloche_box *box, const char *path, int fd, const struct cloche_file *options,
                                int64_t *bytes, const struct cloche_call *call, struct cloche_error *error)
{
  OPTIONS(cloche_file, o, options);
  struct cloche_op *op = begin_content(box, "GET", path, &o, call, error);
  if (!op)
    return op_not_begun(call);
  op->streaming = true;
  op->sink_fd = fd;
  op->source_size = 0;
  op->on_data = sink_write;
  op->on_reply = reply_sink;
  op->out = bytes;
  return op_go(op, error);
}

enum cloche_code cloche_write(struct cloche_box *box, const char *path, const void *data, size_t len,
                              const struct cloche_file *options, struct cloche_entry **entry,
                              const struct cloche_call *call, struct cloche_error *error)
{
  OPTIONS(cloche_file, o, options);
  struct cloche_op *op = begin_content(box, "POST", path, &o, call, error);
  if (!op)
    return op_not_begun(call);
  op->upload = len ? data : "";
  op->upload_len = len;
  op->on_reply = reply_entry;
  op->out = entry;
  return op_go(op, error);
}

enum cloche_code cloche_write_fd(struct cloche_box *box, const char *path, int fd, const struct cloche_file *options,
                                 struct cloche_entry **entry, const struct cloche_call *call,
                                 struct cloche_error *error)
{
  OPTIONS(cloche_file, o, options);
  struct cloche_op *op = begin_content(box, "POST", path, &o, call, error);
  if (!op)
    return op_not_begun(call);
  op->source_fd = fd;
  op->on_reply = reply_entry;
  op->out = entry;
  return op_go(op, error);
}

/* A call of the filesystem service about one path. The body's object is left open. */
static struct cloche_op *begin_on(struct cloche_box *box, const char *method, const char *key, const char *path,
                                  const struct cloche_file *options, const struct cloche_call *call,
                                  struct cloche_error *error)
{
  OPTIONS(cloche_file, o, options);
  struct cloche_op *op = op_begin(box->client, box, call, OP_CONTROL, error);
  if (!op)
    return NULL;
  req_rpc(op, method, false, o.user_name);
  buf_printf(&op->body, "{\"%s\":", key);
  buf_json(&op->body, path);
  return op;
}

enum cloche_code cloche_list_dir(struct cloche_box *box, const char *path, int depth, const struct cloche_file *options,
                                 struct cloche_entry_list **list, const struct cloche_call *call,
                                 struct cloche_error *error)
{
  struct cloche_op *op = begin_on(box, "/filesystem.Filesystem/ListDir", "path", path, options, call, error);
  if (!op)
    return op_not_begun(call);
  buf_printf(&op->body, ",\"depth\":%d}", depth > 0 ? depth : 1);
  op->on_reply = reply_entries;
  op->out = list;
  return op_go(op, error);
}

enum cloche_code cloche_stat(struct cloche_box *box, const char *path, const struct cloche_file *options,
                             struct cloche_entry **entry, const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = begin_on(box, "/filesystem.Filesystem/Stat", "path", path, options, call, error);
  if (!op)
    return op_not_begun(call);
  buf_puts(&op->body, "}");
  op->on_reply = reply_entry;
  op->out = entry;
  return op_go(op, error);
}

enum cloche_code cloche_exists(struct cloche_box *box, const char *path, const struct cloche_file *options,
                               bool *exists, const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = begin_on(box, "/filesystem.Filesystem/Stat", "path", path, options, call, error);
  if (!op)
    return op_not_begun(call);
  buf_puts(&op->body, "}");
  op->on_reply = reply_existed;
  op->out = exists;
  return op_go(op, error);
}

static enum cloche_code reply_made(struct cloche_op *op)
{
  if (!reply_good(op) && op->status != 409)
    return reply_failed(op);
  if (op->out)
    *(bool *)op->out = op->status != 409;
  return CLOCHE_OK;
}

enum cloche_code cloche_make_dir(struct cloche_box *box, const char *path, const struct cloche_file *options,
                                 bool *made, const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = begin_on(box, "/filesystem.Filesystem/MakeDir", "path", path, options, call, error);
  if (!op)
    return op_not_begun(call);
  buf_puts(&op->body, "}");
  op->on_reply = reply_made;
  op->out = made;
  return op_go(op, error);
}

enum cloche_code cloche_move(struct cloche_box *box, const char *from, const char *to,
                             const struct cloche_file *options, struct cloche_entry **entry,
                             const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = begin_on(box, "/filesystem.Filesystem/Move", "source", from, options, call, error);
  if (!op)
    return op_not_begun(call);
  buf_puts(&op->body, ",\"destination\":");
  buf_json(&op->body, to);
  buf_puts(&op->body, "}");
  op->on_reply = reply_entry;
  op->out = entry;
  return op_go(op, error);
}

enum cloche_code cloche_remove(struct cloche_box *box, const char *path, const struct cloche_file *options,
                               const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = begin_on(box, "/filesystem.Filesystem/Remove", "path", path, options, call, error);
  if (!op)
    return op_not_begun(call);
  buf_puts(&op->body, "}");
  op->on_reply = reply_ok;
  return op_go(op, error);
}

static enum cloche_watch_type watch_type(const char *word)
{
  static const char *const words[] = {
      "", "EVENT_TYPE_CREATE", "EVENT_TYPE_WRITE", "EVENT_TYPE_REMOVE", "EVENT_TYPE_RENAME", "EVENT_TYPE_CHMOD"};
  for (int i = 1; i < 6; i++)
    if (word && strcmp(word, words[i]) == 0)
      return (enum cloche_watch_type)i;
  return 0;
}

static enum cloche_code on_watch(struct cloche_op *op, const struct json *message)
{
  const struct cloche_watch *o = op->state;
  const struct json *change = json_get(message, "filesystem"), *of = json_get(change, "entry");
  int said = 0;
  if (json_get(message, "start") && o->on_start)
    said = o->on_start(o->user);
  if (change && o->on_event) {
    struct arena a = {0};
    struct cloche_entry entry = {0};
    const char *name = json_text(change, "name");
    struct cloche_watch_event event = {watch_type(json_text(change, "type")), name ? name : "", NULL};
    if (of && !model_fill(&a, &entry_model, of, &entry)) {
      arena_free(&a);
      return CLOCHE_ENOMEM;
    }
    if (of) {
      entry_fix(&entry, of);
      event.entry = &entry;
    }
    said = o->on_event(&event, o->user);
    arena_free(&a);
  }
  return said ? op_fail(op, CLOCHE_ECANCELED, "canceled by a callback") : CLOCHE_OK;
}

static enum cloche_code on_watch_data(struct cloche_op *op)
{
  return frame_read(op, on_watch);
}

enum cloche_code cloche_watch(struct cloche_box *box, const char *path, const struct cloche_watch *options,
                              const struct cloche_call *call, struct cloche_error *error)
{
  OPTIONS(cloche_watch, o, options);
  struct cloche_op *op = op_begin(box->client, box, call, OP_ENDLESS, error);
  if (!op)
    return op_not_begun(call);
  req_rpc(op, "/filesystem.Filesystem/WatchDir", true, o.user_name);
  buf_puts(&op->body, "{\"path\":");
  buf_json(&op->body, path);
  buf_printf(&op->body, ",\"recursive\":%s,\"includeEntry\":%s,\"allowNetworkMounts\":%s}",
             o.recursive ? "true" : "false", o.with_entries ? "true" : "false", o.network_mounts ? "true" : "false");
  req_stream_body(op);
  if (op_state(op, sizeof o, NULL))
    memcpy(op->state, &o, sizeof o);
  op->on_data = on_watch_data;
  op->on_reply = frame_reply;
  return op_go(op, error);
}
