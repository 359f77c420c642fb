/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes, their content, and secrets. */
#include <stdio.h>
#include <string.h>
#include "internal.h"

#define AT(type, key, kind, member)                                                                                    \
  {                                                                                                                    \
    key, kind, offsetof(struct type, member), 0, NULL                                                                  \
  }

static const struct field volume_fields[] = {AT(cloche_volume, "volumeID", F_TEXT, id),
                                             AT(cloche_volume, "name", F_TEXT, name),
                                             AT(cloche_volume, "token", F_TEXT, token),
                                             AT(cloche_volume, "domain", F_TEXT, domain),
                                             {0}};
static const struct model volume_model = {sizeof(struct cloche_volume), volume_fields, NULL};
static const struct field stat_fields[] = {
    AT(cloche_volume_entry, "name", F_TEXT, name),   AT(cloche_volume_entry, "type", F_TEXT, type),
    AT(cloche_volume_entry, "path", F_TEXT, path),   AT(cloche_volume_entry, "target", F_TEXT, target),
    AT(cloche_volume_entry, "size", F_INT, size),    AT(cloche_volume_entry, "mode", F_INT, mode),
    AT(cloche_volume_entry, "uid", F_INT, uid),      AT(cloche_volume_entry, "gid", F_INT, gid),
    AT(cloche_volume_entry, "atime", F_TEXT, atime), AT(cloche_volume_entry, "mtime", F_TEXT, mtime),
    AT(cloche_volume_entry, "ctime", F_TEXT, ctime), {0}};
static const struct model stat_model = {sizeof(struct cloche_volume_entry), stat_fields, NULL};
static const struct field secret_fields[] = {AT(cloche_secret, "secretID", F_TEXT, id),
                                             AT(cloche_secret, "name", F_TEXT, name),
                                             AT(cloche_secret, "createdAt", F_TEXT, created_at),
                                             AT(cloche_secret, "updatedAt", F_TEXT, updated_at),
                                             AT(cloche_secret, "currentVersion", F_INT, version),
                                             {"metadata", F_PAIRS, offsetof(struct cloche_secret, metadata),
                                              offsetof(struct cloche_secret, metadata_count), NULL},
                                             {0}};
static const struct model secret_model = {sizeof(struct cloche_secret), secret_fields, NULL};

/* A request of the API about volumes or secrets; `id` may be NULL. */
static struct cloche_op *begin(struct cloche *client, const char *method, const char *path, const char *id,
                               const struct model *model, void *out, const struct cloche_call *call,
                               struct cloche_error *error)
{
  struct cloche_op *op = op_begin(client, NULL, call, OP_CONTROL, error);
  if (!op)
    return NULL;
  req_api(op, method, path);
  if (id)
    req_segment(op, id);
  op->on_reply = reply_model;
  op->model = model;
  op->out = out;
  return op;
}

enum cloche_code cloche_volume_create(struct cloche *client, const char *name, struct cloche_volume **volume,
                                      const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = begin(client, "POST", "/volumes", NULL, &volume_model, volume, call, error);
  if (!op)
    return op_not_begun(call);
  req_json(op);
  buf_puts(&op->body, "{\"name\":");
  buf_json(&op->body, name);
  buf_puts(&op->body, "}");
  return op_go(op, error);
}

enum cloche_code cloche_volume_get(struct cloche *client, const char *id, struct cloche_volume **volume,
                                   const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = begin(client, "GET", "/volumes", id ? id : "", &volume_model, volume, call, error);
  return op ? op_go(op, error) : op_not_begun(call);
}

enum cloche_code cloche_volumes(struct cloche *client, struct cloche_volume_list **list, const struct cloche_call *call,
                                struct cloche_error *error)
{
  struct cloche_op *op = begin(client, "GET", "/volumes", NULL, &volume_model, list, call, error);
  if (!op)
    return op_not_begun(call);
  op->on_reply = reply_list;
  return op_go(op, error);
}

static enum cloche_code delete_at(struct cloche *client, const char *path, const char *id, bool *existed,
                                  const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = begin(client, "DELETE", path, id ? id : "", NULL, existed, call, error);
  if (!op)
    return op_not_begun(call);
  op->on_reply = reply_existed;
  return op_go(op, error);
}

enum cloche_code cloche_volume_delete(struct cloche *client, const char *id, bool *existed,
                                      const struct cloche_call *call, struct cloche_error *error)
{
  return delete_at(client, "/volumes", id, existed, call, error);
}

/* A request of the content API. */
static struct cloche_op *begin_content(struct cloche *client, const struct cloche_volume *volume, const char *method,
                                       const char *what, const char *path, enum op_kind kind,
                                       const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = op_begin(client, NULL, call, kind, error);
  if (!op)
    return NULL;
  if (!volume->token)
    op_fail(op, CLOCHE_EINVAL, "the volume has no token: one of a list has none, cloche_volume_get() gives it");
  op->method = method;
  if (client->volume_url)
    buf_puts(&op->url, client->volume_url);
  else if (volume->domain)
    buf_printf(&op->url, "https://api.%s", volume->domain);
  else
    buf_puts(&op->url, client->api_url);
  buf_puts(&op->url, "/volumecontent");
  req_segment(op, volume->id);
  req_path(op, what);
  req_query(op, "path", path);
  struct buf bearer = {0};
  buf_printf(&bearer, "Bearer %s", volume->token ? volume->token : "");
  if (bearer.failed)
    op->failed = CLOCHE_ENOMEM;
  else
    req_header(op, "Authorization", bearer.data);
  buf_free(&bearer);
  op->on_reply = reply_model;
  op->model = &stat_model;
  return op;
}

enum cloche_code cloche_volume_stat(struct cloche *client, const struct cloche_volume *volume, const char *path,
                                    struct cloche_volume_entry **entry, const struct cloche_call *call,
                                    struct cloche_error *error)
{
  struct cloche_op *op = begin_content(client, volume, "GET", "/path", path, OP_CONTROL, call, error);
  if (!op)
    return op_not_begun(call);
  op->out = entry;
  return op_go(op, error);
}

enum cloche_code cloche_volume_chmod(struct cloche *client, const struct cloche_volume *volume, const char *path,
                                     int uid, int gid, int mode, struct cloche_volume_entry **entry,
                                     const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = begin_content(client, volume, "PATCH", "/path", path, OP_CONTROL, call, error);
  if (!op)
    return op_not_begun(call);
  req_json(op);
  const char *between = "";
  const struct {
    const char *key;
    int value;
  } rows[] = {{"uid", uid}, {"gid", gid}, {"mode", mode}};
  buf_puts(&op->body, "{");
  for (int i = 0; i < 3; i++) {
    if (rows[i].value < 0)
      continue;
    buf_printf(&op->body, "%s\"%s\":%d", between, rows[i].key, rows[i].value);
    between = ",";
  }
  buf_puts(&op->body, "}");
  op->out = entry;
  return op_go(op, error);
}

enum cloche_code cloche_volume_list_dir(struct cloche *client, const struct cloche_volume *volume, const char *path,
                                        int depth, struct cloche_volume_entry_list **list,
                                        const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = begin_content(client, volume, "GET", "/dir", path, OP_CONTROL, call, error);
  if (!op)
    return op_not_begun(call);
  if (depth > 0)
    req_query_int(op, "depth", depth);
  op->on_reply = reply_list;
  op->out = list;
  return op_go(op, error);
}

static void put_write(struct cloche_op *op, const struct cloche_volume_write *options)
{
  OPTIONS(cloche_volume_write, o, options);
  if (o.uid)
    req_query_int(op, "uid", o.uid);
  if (o.gid)
    req_query_int(op, "gid", o.gid);
  if (o.mode)
    req_query_int(op, "mode", o.mode);
  if (o.force)
    req_query(op, "force", "true");
  op->on_progress = o.on_progress;
  op->progress_user = o.user;
}

enum cloche_code cloche_volume_make_dir(struct cloche *client, const struct cloche_volume *volume, const char *path,
                                        const struct cloche_volume_write *options, struct cloche_volume_entry **entry,
                                        const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = begin_content(client, volume, "POST", "/dir", path, OP_CONTROL, call, error);
  if (!op)
    return op_not_begun(call);
  put_write(op, options);
  op->out = entry;
  return op_go(op, error);
}

enum cloche_code cloche_volume_remove(struct cloche *client, const struct cloche_volume *volume, const char *path,
                                      bool *existed, const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = begin_content(client, volume, "DELETE", "/path", path, OP_CONTROL, call, error);
  if (!op)
    return op_not_begun(call);
  op->on_reply = reply_existed;
  op->out = existed;
  return op_go(op, error);
}

enum cloche_code cloche_volume_read(struct cloche *client, const struct cloche_volume *volume, const char *path,
                                    struct cloche_text **content, const struct cloche_call *call,
                                    struct cloche_error *error)
{
  struct cloche_op *op = begin_content(client, volume, "GET", "/file", path, OP_TRANSFER, call, error);
  if (!op)
    return op_not_begun(call);
  op->on_reply = reply_bytes;
  op->out = content;
  return op_go(op, error);
}

enum cloche_code cloche_volume_read_fd(struct cloche *client, const struct cloche_volume *volume, const char *path,
                                       int fd, int64_t *bytes, const struct cloche_call *call,
                                       struct cloche_error *error)
{
  struct cloche_op *op = begin_content(client, volume, "GET", "/file", path, OP_TRANSFER, call, error);
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

enum cloche_code cloche_volume_write(struct cloche *client, const struct cloche_volume *volume, const char *path,
                                     const void *data, size_t len, const struct cloche_volume_write *options,
                                     struct cloche_volume_entry **entry, const struct cloche_call *call,
                                     struct cloche_error *error)
{
  struct cloche_op *op = begin_content(client, volume, "PUT", "/file", path, OP_TRANSFER, call, error);
  if (!op)
    return op_not_begun(call);
  put_write(op, options);
  req_header(op, "Content-Type", "application/octet-stream");
  op->upload = len ? data : "";
  op->upload_len = len;
  op->out = entry;
  return op_go(op, error);
}

enum cloche_code cloche_volume_write_fd(struct cloche *client, const struct cloche_volume *volume, const char *path,
                                        int fd, const struct cloche_volume_write *options,
                                        struct cloche_volume_entry **entry, const struct cloche_call *call,
                                        struct cloche_error *error)
{
  struct cloche_op *op = begin_content(client, volume, "PUT", "/file", path, OP_TRANSFER, call, error);
  if (!op)
    return op_not_begun(call);
  put_write(op, options);
  req_header(op, "Content-Type", "application/octet-stream");
  op->source_fd = fd;
  op->out = entry;
  return op_go(op, error);
}

static enum cloche_code put_secret(struct cloche *client, const char *id, const char *name, const char *value,
                                   const struct cloche_pair *metadata, size_t metadata_count,
                                   struct cloche_secret **secret, const struct cloche_call *call,
                                   struct cloche_error *error)
{
  struct cloche_op *op = begin(client, "POST", "/secrets", id, &secret_model, secret, call, error);
  if (!op)
    return op_not_begun(call);
  req_json(op);
  buf_puts(&op->body, "{\"value\":");
  buf_json(&op->body, value);
  if (name)
    buf_puts(&op->body, ",\"name\":"), buf_json(&op->body, name);
  if (metadata)
    buf_puts(&op->body, ",\"metadata\":"), put_pairs(&op->body, metadata, metadata_count);
  buf_puts(&op->body, "}");
  return op_go(op, error);
}

enum cloche_code cloche_secret_create(struct cloche *client, const char *name, const char *value,
                                      const struct cloche_pair *metadata, size_t metadata_count,
                                      struct cloche_secret **secret, const struct cloche_call *call,
                                      struct cloche_error *error)
{
  return put_secret(client, NULL, name, value, metadata, metadata_count, secret, call, error);
}

enum cloche_code cloche_secret_update(struct cloche *client, const char *name, const char *value,
                                      const struct cloche_pair *metadata, size_t metadata_count,
                                      struct cloche_secret **secret, const struct cloche_call *call,
                                      struct cloche_error *error)
{
  return put_secret(client, name ? name : "", NULL, value, metadata, metadata_count, secret, call, error);
}

enum cloche_code cloche_secret_get(struct cloche *client, const char *name, struct cloche_secret **secret,
                                   const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = begin(client, "GET", "/secrets", name ? name : "", &secret_model, secret, call, error);
  return op ? op_go(op, error) : op_not_begun(call);
}

enum cloche_code cloche_secrets(struct cloche *client, int limit, const char *next, struct cloche_secret_list **list,
                                const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_op *op = begin(client, "GET", "/secrets", NULL, &secret_model, list, call, error);
  if (!op)
    return op_not_begun(call);
  if (limit)
    req_query_int(op, "limit", limit);
  if (next)
    req_query(op, "nextToken", next);
  op->on_reply = reply_list_next;
  return op_go(op, error);
}

enum cloche_code cloche_secret_delete(struct cloche *client, const char *name, bool *existed,
                                      const struct cloche_call *call, struct cloche_error *error)
{
  return delete_at(client, "/secrets", name, existed, call, error);
}
