/* SPDX-License-Identifier: Apache-2.0 */
/* uploads.c - archives of COPY steps come in through links that carry their own right: team, hash and time under the
 * server's secret, which the warden keeps and checks. The gate has no files: the warden hands it a descriptor to write
 * into, and names the file when it is whole. A disk may be slow, so threads write (upload_write.h). */
#include "gate/api/api.h"
#include "gate/api/upload_write.h"

#include <stdio.h>

static bool hash_good(struct str s)
{
  for (size_t i = 0; i < s.n; i++)
    if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f')))
      return false;
  return s.n == 64;
}

/* ---- the link ---- */

static void found(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  if (api_refused(r, reply))
    return;
  struct str host = http_header(http_x_head(r->x), "host");
  cleanup_buf struct buf b = BUF_INIT(8192);
  struct jw w = JW(&b);
  jw_open(&w, '{');
  jw_key(&w, "present");
  jw_bool(&w, wire_u64(reply->packet, W_COUNT, 0));
  jw_key(&w, "url");
  jw_z(&w,
       arena_fmt(r->arena, "%s://" STR_FMT "/uploads/%s/" STR_FMT "?expires=%llu&signature=" STR_FMT,
                 http_x_secure(r->x) ? "https" : "http", STR_ARG(host), r->team.id, STR_ARG(r->second),
                 (unsigned long long)wire_u64(reply->packet, W_TO, 0), STR_ARG(wire_get(reply->packet, W_SIGNATURE))));
  jw_close(&w, '}');
  api_json(r, 201, buf_str(&b));
}

void upload_link(struct req *r)
{
  if (!hash_good(r->second)) {
    api_error(r, 400, "'" STR_FMT "' is not a hash of 64 lower-case hex digits", STR_ARG(str_sub(r->second, 0, 100)));
    return;
  }
  cleanup_buf struct buf b = BUF_INIT(4096);
  wire_begin(&b, WIRE_FILE_LOOK, 0, 0);
  wire_putz(&b, W_TEAM, r->team.id);
  wire_put(&b, W_REF, r->id);
  wire_put(&b, W_NAME, r->second);
  api_call_warden(r, &b, NULL, found);
}

/* ---- the upload ---- */

struct upload {
  char team[UUID_SIZE];       /* of the link */
  struct upload_write *write; /* NULL: not open */
  char id[UPLOAD_ID_SIZE];
  uint64_t size, expires;
  struct str signature;
  bool open; /* the warden has a file of ours that is neither stored nor dropped */
};

static void put_file(struct req *r, struct buf *b, enum wire_type type)
{
  struct upload *u = r->state;
  wire_begin(b, type, 0, 0);
  wire_put(b, W_TEAM, r->id);
  wire_put(b, W_NAME, r->second);
  wire_putz(b, W_ID, u->id);
  wire_put_u64(b, W_TO, u->expires);
  wire_put(b, W_SIGNATURE, u->signature);
}

static void nobody_waits(const struct warden_reply *reply, void *arg)
{
}

static void upload_drop(struct req *r)
{
  struct upload *u = r->state;
  if (u->write)
    upload_write_leave(steal(&u->write));
  if (!u->open)
    return;
  u->open = false;
  cleanup_buf struct buf b = BUF_INIT(4096);
  put_file(r, &b, WIRE_FILE_CLOSE);
  warden_call(r->gate, &b, NULL, nobody_waits, NULL);
}

static void stored(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct upload *u = r->state;
  r->pending_call = 0;
  u->open = reply->status != 0;
  if (reply->status)
    api_warden_error(r, reply);
  else
    api_empty(r, 200);
}

static void name_it(struct req *r)
{
  const struct upload *u = r->state;
  cleanup_buf struct buf b = BUF_INIT(4096);
  put_file(r, &b, WIRE_FILE_CLOSE);
  wire_put_u64(&b, W_COUNT, u->size);
  api_call_warden(r, &b, NULL, stored);
}

static void written(void *arg, int code)
{
  struct req *r = arg;
  if (code)
    api_error(r, code == -ENOSPC || code == -EDQUOT ? 507 : 500, "the archive can't be stored: %s",
              strerrordesc_np(-code));
  else
    name_it(r);
}

static void upload_piece(struct req *r, struct str chunk)
{
  struct upload *u = r->state;
  u->size += chunk.n;
  if (chunk.n)
    upload_write_add(u->write, chunk);
  else if (upload_write_end(u->write))
    name_it(r);
}

static enum http_lend upload_lend(struct req *r, int fd, uint64_t most)
{
  const struct upload *u = r->state;
  return upload_write_lend(u->write, fd, most);
}

static void upload_passed(struct req *r, size_t n)
{
  struct upload *u = r->state;
  u->size += n;
}

static void opened(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct upload *u = r->state;
  r->pending_call = 0;
  u->open = !reply->status;
  if (reply->status || reply->fd < 0) {
    api_warden_error(r, reply);
    return;
  }
  u->write = upload_write_new(r->gate, r->x, DISK_BUILDS, u->team, reply->fd, written, r);
  if (!api_count(r, u->team)) {
    upload_drop(r); /* now, not when the client has read the refusal */
    return;
  }
  http_x_accepted(r->x); /* the warden knows the link's signature */
  http_x_body_max(r->x, MIN(r->gate->config->upload_max, wire_u64(reply->packet, W_COUNT, UINT64_MAX)));
  r->stream = upload_piece;
  r->lend = upload_lend;
  r->passed = upload_passed;
  http_x_resume(r->x);
}

void upload_put(struct req *r)
{
  struct upload *u = arena_alloc(r->arena, sizeof(*u));
  r->state = u;
  u->signature = api_query(r, "signature");
  if (str_u64(api_query(r, "expires"), &u->expires) || !hash_good(r->second) || u->signature.n != 2 * SHA256_LEN ||
      str_copyz(r->id, u->team, sizeof(u->team)))
    api_error(r, 403, "the upload link is not one of this server's");
  else if (http_x_body_length(r->x) > (int64_t)r->gate->config->upload_max)
    api_error(r, 413, "the archive is larger than %llu bytes", (unsigned long long)r->gate->config->upload_max);
  if (r->answered)
    return;
  http_x_body_max(r->x, r->gate->config->upload_max);
  random_id(u->id, 20);
  u->open =
      true; /* from the request on: a client that leaves before the reply has a file and a part of its quota there */
  r->drop = upload_drop;
  cleanup_buf struct buf b = BUF_INIT(4096);
  put_file(r, &b, WIRE_FILE_OPEN);
  wire_put_u64(&b, W_COUNT, (uint64_t)MAX(http_x_body_length(r->x), (int64_t)0));
  wire_put_u64(&b, W_MOST, r->gate->config->upload_max);
  api_call_warden(r, &b, NULL, opened);
}
