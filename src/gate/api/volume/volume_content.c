/* SPDX-License-Identifier: Apache-2.0 */
/* volume_content.c - files of volumes, for who shows the volume's token: look, change, delete, list, make directories,
 * read and write. The content role works with the files (src/content); this file checks what the client wrote, and
 * moves the bytes between the client and the descriptors that it is handed. */
#include "gate/api/disk_work.h"
#include "gate/api/file_send.h"
#include "gate/api/upload_write.h"
#include "wire/volume_path.h"

#define ID_MAX      65535
#define MODE_MAX    07777
#define PATCH_BYTES 65536
#define KNOWN_MAX   4096
#define KNOWN_US    60000000

/* ---- tokens ---- */

static struct map known; /* hashes of tokens that were right lately -> until when: a guesser at the same address does
                            not lock them out */

static bool is_known(const uint8_t hash[SHA256_LEN])
{
  const int64_t *until = map_get(&known, str_make(hash, SHA256_LEN));
  return until && *until > clock_mono_us();
}

static void remember(const uint8_t hash[SHA256_LEN])
{
  void *value;
  if (known.n >= KNOWN_MAX) {
    for (size_t i = 0; map_next(&known, &i, NULL, &value);)
      free(value);
    map_free(&known);
  }
  int64_t *until = xmalloc(sizeof(*until));
  *until = clock_mono_us() + KNOWN_US;
  free(map_put(&known, str_make(hash, SHA256_LEN), until));
}

static bool may_ask(struct req *r)
{
  struct str token = http_bearer(http_x_head(r->x));
  uint8_t client[CLIENT_LEN];
  client_of(r->x, client);
  sha256_of(token.p ? token.p : "", token.n, r->proof);
  if (!token.n || token.n > 256) {
    api_error(r, 401, "the volume's token is missing: send it as 'Authorization: Bearer TOKEN'");
    return false;
  }
  unsigned wait = is_known(r->proof) ? 0 : throttle_wait(&r->gate->throttle, client, clock_mono_us());
  if (wait)
    api_too_fast(r, STR("too many wrong tokens from this address; try again later"), wait);
  return !wait;
}

/* ---- requests ---- */

/* What a content request of a client came to. */
struct content {
  struct str path, token;
  char team[UUID_SIZE];
  uint64_t uid, gid, mode;
  bool force;
  /* an upload */
  char upload[UPLOAD_ID_SIZE];
  struct upload_write *write; /* NULL: not open */
  uint64_t size;
  bool open; /* the content role has an upload of ours that is neither stored nor dropped */
};

static bool read_path(struct req *r, struct content *c)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 17);
  struct str given = api_query(r, "path");
  int e = given.p ? volume_path_clean(given, &b) : -EINVAL;
  if (e == -EINVAL)
    api_error(r, 400, "'path' is missing, empty or holds a NUL byte");
  else if (e)
    api_error(r, 400, "'path' is longer than %d bytes, or one of its names than %d", VOLUME_PATH_SIZE - 1,
              VOLUME_NAME_MAX);
  c->path = arena_str(r->arena, buf_str(&b));
  return !e;
}

/* NULL: answered. */
static struct content *content_new(struct req *r)
{
  struct content *c = arena_alloc(r->arena, sizeof(*c));
  if (!c) {
    http_abort(r->x);
    return NULL;
  }
  *c = (struct content){.token = http_bearer(http_x_head(r->x))};
  r->state = c;
  if (!may_ask(r))
    return NULL;
  if (!uuid_valid(r->id)) {
    api_error(r, 400, "'" STR_FMT "' is not the id of a volume: a UUID is expected", STR_ARG(str_sub(r->id, 0, 64)));
    return NULL;
  }
  return read_path(r, c) ? c : NULL;
}

static void begin(struct req *r, struct buf *b, enum content_op op)
{
  const struct content *c = r->state;
  wire_begin(b, WIRE_CONTENT, 0, 0);
  wire_put(b, W_ID, r->id);
  wire_put(b, W_TOKEN, c->token);
  wire_put_u64(b, W_OP, op);
  wire_put(b, W_PATH, c->path);
}

static int status_of(int error)
{
  switch (-error) {
  case EPERM:
    return 403;
  case ENOENT:
    return 404;
  case EEXIST:
  case EISDIR:
  case EBUSY:
    return 409;
  default:
    return 0;
  }
}

/* True: the client has its answer. */
static bool refused(struct req *r, const struct warden_reply *reply)
{
  struct content *c = r->state;
  struct str message = wire_get(reply->packet, W_MESSAGE);
  r->pending_call = 0;
  if (!reply->status) {
    remember(r->proof);
    wire_copyz(reply->packet, W_TEAM, c->team, sizeof(c->team));
    return false;
  }
  if (reply->status == -EACCES) {
    throttle_failed(&r->gate->throttle, r->x, "volume token", STR_NONE);
    api_error(r, 401, "Invalid volume token: it is not one of this server, or its volume is gone");
    return true;
  }
  if (reply->status != -EPERM)
    remember(r->proof);
  int status = status_of(reply->status);
  if (status)
    api_error(r, status, STR_FMT, STR_ARG(message));
  else
    api_warden_error(r, reply);
  return true;
}

/* A whole number of the query; not given: as it was. False: answered. */
static bool read_number(struct req *r, const char *name, uint64_t least, uint64_t most, uint64_t *out)
{
  struct str given = api_query(r, name);
  if (!given.p || (!str_u64(given, out) && *out >= least && *out <= most))
    return true;
  api_error(r, 400, "'%s' must be a decimal number from %llu to %llu, not '" STR_FMT "'", name,
            (unsigned long long)least, (unsigned long long)most, STR_ARG(str_sub(given, 0, 100)));
  return false;
}

static bool read_force(struct req *r, bool *out)
{
  struct str given = api_query(r, "force");
  *out = str_is(given, "true");
  if (!given.p || *out || str_is(given, "false"))
    return true;
  api_error(r, 400, "'force' must be true or false, not '" STR_FMT "'", STR_ARG(str_sub(given, 0, 100)));
  return false;
}

static bool read_owner(struct req *r, struct content *c, uint64_t mode)
{
  c->mode = mode;
  return read_number(r, "uid", 0, ID_MAX, &c->uid) && read_number(r, "gid", 0, ID_MAX, &c->gid) &&
         read_number(r, "mode", 0, MODE_MAX, &c->mode) && read_force(r, &c->force);
}

static void put_owner(struct buf *b, const struct content *c)
{
  wire_put_u64(b, W_UID, c->uid);
  wire_put_u64(b, W_GID, c->gid);
  wire_put_u64(b, W_PERMISSIONS, c->mode);
  wire_put_u64(b, W_FORCE, c->force);
}

static void answer_json(struct req *r, const struct warden_reply *reply, int status)
{
  if (!refused(r, reply))
    api_json(r, status, wire_get(reply->packet, W_BODY));
}

static void told(const struct warden_reply *reply, void *arg)
{
  answer_json(arg, reply, 200);
}

static void created(const struct warden_reply *reply, void *arg)
{
  answer_json(arg, reply, 201);
}

static void deleted(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  if (!refused(r, reply))
    api_empty(r, 204);
}

/* ---- paths ---- */

void content_stat(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  if (!content_new(r))
    return;
  begin(r, &b, CONTENT_STAT);
  api_call_warden(r, &b, NULL, told);
}

void content_remove(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  if (!content_new(r))
    return;
  begin(r, &b, CONTENT_REMOVE);
  api_call_warden(r, &b, NULL, deleted);
}

/* A number of the body; absent or null: nothing is put. False: answered. */
static bool put_number(struct req *r, struct buf *b, const char *name, enum wire_tag tag, int64_t most)
{
  const struct json *v = json_get(r->json, name);
  int64_t n;
  if (!json_given(v))
    return true;
  if (!json_is(v, JSON_NUMBER) || json_int(v, &n) || n < 0 || n > most) {
    api_error(r, 400, "'%s' must be a whole number from 0 to %lld", name, (long long)most);
    return false;
  }
  wire_put_u64(b, tag, (uint64_t)n);
  return true;
}

static void patch(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  struct str text = str_trim(buf_str(&r->body));
  struct json_error why;
  r->json = text.n ? json_read(r->arena, text, 0, &why) : NULL;
  if (text.n && !json_is(r->json, JSON_OBJECT)) {
    api_error(r, 400, "the body must be a JSON object with any of uid, gid and mode");
    return;
  }
  begin(r, &b, CONTENT_CHANGE);
  if (put_number(r, &b, "uid", W_UID, ID_MAX) && put_number(r, &b, "gid", W_GID, ID_MAX) &&
      put_number(r, &b, "mode", W_PERMISSIONS, MODE_MAX))
    api_call_warden(r, &b, NULL, told);
}

static void patch_piece(struct req *r, struct str chunk)
{
  if (!chunk.n)
    patch(r);
  else if (buf_adds(&r->body, chunk))
    api_error(r, 413, "the body is longer than %d bytes", PATCH_BYTES);
}

/* The token is good and the file is there: the body may come. */
static void patch_known(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  if (refused(r, reply))
    return;
  http_x_accepted(r->x);
  r->stream = patch_piece;
  http_x_resume(r->x);
}

void content_change(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  if (!content_new(r))
    return;
  http_x_body_max(r->x, PATCH_BYTES);
  begin(r, &b, CONTENT_STAT);
  api_call_warden(r, &b, NULL, patch_known);
}

/* ---- directories ---- */

static struct map listings; /* team -> how many of its listings are being sent (unsigned *): each is in memory as long
                               as its client takes it */

static bool listing_enter(const char *team, unsigned most)
{
  unsigned *n = map_get(&listings, str_of(team));
  if (!n) {
    n = xcalloc(1, sizeof(*n));
    map_put(&listings, str_of(team), n);
  }
  if (*n >= most)
    return false;
  ++*n;
  return true;
}

static void listing_leave(const char *team)
{
  unsigned *n = map_get(&listings, str_of(team));
  if (n && --*n == 0)
    free(map_del(&listings, str_of(team)));
}

static void send_descriptor(struct req *r, const struct warden_reply *reply, const char *type,
                            void (*sent)(const char *team))
{
  struct content *c = r->state;
  if (refused(r, reply))
    return;
  if (reply->fd < 0) {
    api_error(r, 500, "the file could not be opened");
    return;
  }
  if (!api_count(r, c->team)) {
    disk_close(r->gate, DISK_VOLUMES, c->team, reply->fd);
    return;
  }
  if (sent && !listing_enter(c->team, r->gate->config->volume_team_listings)) {
    disk_close(r->gate, DISK_VOLUMES, c->team, reply->fd);
    api_too_fast(r,
                 STR("this team has as many listings of volumes under way as it may (setting volume_team_listings): "
                     "read them first"),
                 1);
    return;
  }
  http_x_accepted(r->x);
  file_send(r, c->team, reply->fd, wire_u64(reply->packet, W_COUNT, 0), type, sent);
}

static void listed(const struct warden_reply *reply, void *arg)
{
  send_descriptor(arg, reply, "application/json", listing_leave);
}

void content_list(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  uint64_t depth = 1;
  if (!content_new(r) || !read_number(r, "depth", 1, UINT64_MAX, &depth))
    return;
  begin(r, &b, CONTENT_LIST);
  wire_put_u64(&b, W_DEPTH, depth);
  api_call_warden(r, &b, NULL, listed);
}

void content_mkdir(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  struct content *c = content_new(r);
  if (!c || !read_owner(r, c, 0755))
    return;
  begin(r, &b, CONTENT_MKDIR);
  put_owner(&b, c);
  api_call_warden(r, &b, NULL, created);
}

/* ---- files ---- */

static void opened(const struct warden_reply *reply, void *arg)
{
  send_descriptor(arg, reply, "application/octet-stream", NULL);
}

void content_read(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  if (!content_new(r))
    return;
  begin(r, &b, CONTENT_READ);
  api_call_warden(r, &b, NULL, opened);
}

static void nobody_waits(const struct warden_reply *reply, void *arg)
{
  if (reply->fd >= 0)
    close(reply->fd);
}

static void upload_drop(struct req *r)
{
  struct content *c = r->state;
  if (c->write)
    upload_write_leave(steal(&c->write));
  if (!c->open)
    return;
  c->open = false;
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  begin(r, &b, CONTENT_DROP);
  wire_putz(&b, W_UPLOAD, c->upload);
  warden_call(r->gate, &b, NULL, nobody_waits, NULL);
}

static void committed(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct content *c = r->state;
  c->open = false; /* it has its name, or is gone */
  answer_json(r, reply, 201);
}

static void name_it(struct req *r)
{
  const struct content *c = r->state;
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  begin(r, &b, CONTENT_COMMIT);
  wire_putz(&b, W_UPLOAD, c->upload);
  wire_put_u64(&b, W_COUNT, c->size);
  put_owner(&b, c);
  api_call_warden(r, &b, NULL, committed);
}

static void written(void *arg, int code)
{
  struct req *r = arg;
  if (code == -ENOSPC || code == -EDQUOT)
    api_error(r, 507, "the file does not fit: the volume has no bytes left (setting volume_mb); nothing was stored");
  else if (code)
    api_error(r, 500, "the file can't be stored: %s", strerrordesc_np(-code));
  else
    name_it(r);
}

static void upload_piece(struct req *r, struct str chunk)
{
  struct content *c = r->state;
  c->size += chunk.n;
  if (chunk.n)
    upload_write_add(c->write, chunk);
  else if (upload_write_end(c->write))
    name_it(r);
}

static enum http_lend upload_lend(struct req *r, int fd, uint64_t most)
{
  const struct content *c = r->state;
  return upload_write_lend(c->write, fd, most);
}

static void upload_passed(struct req *r, size_t n)
{
  struct content *c = r->state;
  c->size += n;
}

static void upload_opened(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct content *c = r->state;
  c->open = !reply->status;
  if (refused(r, reply))
    return;
  if (reply->fd < 0)
    api_error(r, 500, "the file could not be opened");
  else
    c->write = upload_write_new(r->gate, r->x, DISK_VOLUMES, c->team, reply->fd, written, r);
  if (r->answered || !api_count(r, c->team)) {
    upload_drop(r); /* now, not when the client has read the refusal */
    return;
  }
  http_x_accepted(r->x);
  http_x_body_max(r->x, UINT64_MAX);
  r->stream = upload_piece;
  r->lend = upload_lend;
  r->passed = upload_passed;
  http_x_resume(r->x);
}

void content_write(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  struct content *c = content_new(r);
  if (!c || !read_owner(r, c, 0644))
    return;
  http_x_body_max(r->x, UINT64_MAX); /* the volume is the limit, and nothing is read before its token was shown */
  random_id(c->upload, 20);
  c->open = true; /* from the request on: a client may leave before the reply */
  r->drop = upload_drop;
  begin(r, &b, CONTENT_UPLOAD);
  wire_putz(&b, W_UPLOAD, c->upload);
  wire_put_u64(&b, W_FORCE, c->force);
  if (http_x_body_length(r->x) >= 0)
    wire_put_u64(&b, W_COUNT, (uint64_t)http_x_body_length(r->x));
  api_call_warden(r, &b, NULL, upload_opened);
}
