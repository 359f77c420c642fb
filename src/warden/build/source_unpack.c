/* SPDX-License-Identifier: Apache-2.0 */
/* source_unpack.c - see source_unpack.h.
 *
 * The box's root is made of layers that strangers wrote. So the program comes from the read-only mount that every box
 * has at JAIL_RUNTIME, and never from a path that such a layer can stand in; its memory, processes and disk are limited
 * as any box's, whatever it counts itself. What it wrote is copied out by jail_commit, which follows nothing. What it
 * says is one letter and a bounded text (unpack_reply.h), over a socket that takes no descriptors. */
#include "warden/build/source_unpack.h"

#include "jail/fs/layer_commit.h"
#include "jail/jail.h"
#include "warden/build/layer_lease.h"
#include "warden/db/layer_list.h"
#include "warden/db/layer_owner.h"
#include "warden/build/unpack_reply.h"
#include "wire/box_socket.h"
#include "wire/sizes.h"
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define MEMORY     ((uint64_t)1 << 30)
#define PIDS       16
#define ENTRIES    5000000
#define LOOK_MS    100
#define DEATH_MS   10000
#define DISK_SPARE ((uint64_t)256 << 20)
#define SIZE       "size" /* beside a part's files: how many bytes they have, as the layer says */

struct session {
  const struct source_spec *s;
  const struct source_input *in;
  struct source_base *out;
  struct jail jail;
  char id[UUID_SIZE], dir[DATA_DIR_SIZE];
  int line;
  char layer[DATA_DIR_SIZE]; /* what it will be, or is */
  VEC(struct source_part) parts;
  bool known;   /* the layer is there */
  bool stacked; /* the image's layers are kept apart */
  bool done;
};

void source_key(const char *team, const char *identity, char key[DIGEST_TEXT_SIZE])
{
  struct sha256 sum;
  uint8_t digest[SHA256_LEN];
  static const char head[] = "cloche source 1\n";
  sha256_init(&sum);
  sha256_add(&sum, head, sizeof(head) - 1);
  sha256_add(&sum, team, strlen(team) + 1);
  sha256_add(&sum, identity, strlen(identity) + 1);
  sha256_end(&sum, digest);
  hex_encode(digest, sizeof(digest), key);
}

static void name_layer(struct session *x, const char *identity)
{
  source_key(x->s->team, identity, x->out->key);
  snprintf(x->layer, sizeof(x->layer), "%s/layers/%s/fs", x->s->data, x->out->key);
  x->known = layer_lease_tree(x->layer);
}

/* ---- the box ---- */

/* What the unpacker may write, and room for the last block of each file and for its directories. */
static uint64_t disk_of(const struct session *x)
{
  uint64_t bytes = (uint64_t)x->s->rules->size_mb << 20;
  return bytes + bytes / 4 + DISK_SPARE;
}

static int start(struct session *x, struct err *err)
{
  static const char *const argv[] = {UNPACK_PROGRAM, NULL}, *const env[] = {"PATH=/usr/bin", NULL};
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  int pair[2];
  snprintf(x->id, sizeof(x->id), "unpack-");
  random_id(x->id + strlen(x->id), 16);
  snprintf(x->dir, sizeof(x->dir), "%s/boxes/%s", x->s->data, x->id);
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
    return err_errno(err, "making a socket pair");
  x->line = pair[0];
  box_socket_guard(x->line);
  cleanup_fd int theirs = pair[1];
  struct jail_spec spec = {
      .instance = x->s->instance,
      .id = x->id,
      .dir = x->dir,
      .lowers = layer_stack(&a, x->in->lowers, x->s->data, x->s->runtime),
      .id_base = x->s->id_base,
      .hostname = "unpack",
      .argv = argv,
      .env = env,
      .runtime = arena_fmt(&a, "%s/runtime/%s" JAIL_RUNTIME, x->s->data, x->s->runtime),
      .boot_fd = theirs,
      .limits = {.cpus = 1, .memory = MEMORY, .pids = PIDS, .open_files = 64, .disk = disk_of(x), .disk_once = true},
  };
  int r = jail_spawn(&spec, &x->jail, err);
  return r ? err_wrap(err, "the unpacker's box") : 0;
}

static int tell(struct session *x, const void *p, size_t n, int fd, struct err *err)
{
  ssize_t k = fd_send(x->line, p, n, &fd, fd >= 0 ? 1 : 0, MSG_DONTWAIT); /* it reads each answer before it goes on */
  if (k == -EAGAIN)
    return err_set(err, -EPROTO, "cloche-unpack does not read its answers");
  return k < 0 ? err_set(err, (int)k, "cloche-unpack exited: %s", strerrordesc_np((int)-k)) : 0;
}

static int give(struct session *x, const char *name, struct err *err)
{
  cleanup_fd int fd = -1;
  if (!strcmp(name, UNPACK_INDEX))
    fd = fcntl(x->in->index, F_DUPFD_CLOEXEC, 3);
  else if (x->in->blobs >= 0)
    fd = openat(x->in->blobs, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC); /* the fetch made it */
  struct stat st;
  if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode))
    return tell(x, &(char){UNPACK_HERE}, 1, fd, err);
  return tell(x, &(char){UNPACK_ABSENT}, 1, -1, err);
}

static int note_part(struct session *x, const struct unpack_reply *said, struct err *err)
{
  struct source_part part;
  if (x->parts.n == SOURCE_PARTS_MAX)
    return err_set(err, -EPROTO, "the image has more than %d layers", SOURCE_PARTS_MAX);
  memcpy(part.packed, said->name, sizeof(part.packed));
  memcpy(part.diff, said->diff, sizeof(part.diff));
  vec_push(&x->parts, part);
  return 0;
}

static int identify(struct session *x, const char *digest, struct err *err)
{
  char identity[80];
  snprintf(identity, sizeof(identity), "image sha256:%s", digest);
  name_layer(x, identity);
  x->stacked = !x->known && x->parts.n > 0 && x->parts.n <= x->s->rules->layers;
  return tell(x, &(char){x->known || x->stacked ? UNPACK_KNOWN : UNPACK_GO}, 1, -1, err);
}

static void note(struct session *x, const char *line)
{
  if (x->s->say)
    x->s->say(x->s->arg, LOG_INFO, line);
}

static int heard(struct session *x, struct str packet, struct err *err)
{
  struct unpack_reply said;
  if (unpack_reply_read(packet, &said))
    return err_set(err, -EPROTO, "cloche-unpack: protocol error");
  switch (said.what) {
  case UNPACK_WANT:
    return give(x, said.name, err);
  case UNPACK_PART_IS:
    return note_part(x, &said, err);
  case UNPACK_IS:
    return identify(x, said.name, err);
  case UNPACK_NOTE:
    note(x, said.line);
    return 0;
  case UNPACK_FAILED:
    return err_set(err, -EBADMSG, "%.400s", said.line);
  default: /* RESULT */
    x->done = true;
    return buf_adds(&x->out->config, said.text) ? err_set(err, -EPROTO, "cloche-unpack: too long a result") : 0;
  }
}

static int converse(struct session *x, struct err *err)
{
  int64_t end = clock_mono_us() + (int64_t)source_seconds(x->s, x->s->rules->seconds) * 1000000;
  cleanup_free char *packet = xmalloc(UNPACK_PACKET);
  while (!x->done) {
    struct pollfd p = {.fd = x->line, .events = POLLIN};
    int k = poll(&p, 1, LOOK_MS);
    if (x->s->cancelled && atomic_load(x->s->cancelled))
      return err_set(err, -ECANCELED, "cancelled");
    if (clock_mono_us() > end)
      return err_set(err, -ETIMEDOUT, "unpacking took longer than %u s", x->s->rules->seconds);
    if (k <= 0)
      continue;
    ssize_t n = box_socket_recv(x->line, packet, UNPACK_PACKET);
    if (n == -EAGAIN)
      continue;
    if (n == -EPERM)
      return err_set(err, -EPROTO, "cloche-unpack sent descriptors");
    if (n <= 0)
      return err_set(err, -EPIPE, "the unpacker ended without a message: out of memory, or killed");
    int r = heard(x, str_make(packet, (size_t)n), err);
    if (r)
      return r;
  }
  return 0;
}

/* ---- the layer ---- */

/* A whole tree, out of the box. */
static int take_tree(struct session *x, const char *fs, struct err *err)
{
  return jail_commit_dir(x->dir, &UNPACK_ROOT[1], x->s->id_base, fs, err);
}

/* Appears under its name whole and on the disk, or not at all. Another build may have been quicker: its tree is as
 * good. */
static int keep(struct session *x, struct err *err)
{
  char fresh[DATA_PATH_SIZE], fs[DATA_PATH_SIZE], home[DATA_PATH_SIZE];
  snprintf(home, sizeof(home), "%s/layers/%s", x->s->data, x->out->key);
  snprintf(fresh, sizeof(fresh), "%s/layers/.new-%s", x->s->data, x->id);
  snprintf(fs, sizeof(fs), "%s/fs", fresh);
  int r = path_mkdirs(fresh, 0700);
  r = r ? err_set(err, r, "making %s: %s", fresh, strerrordesc_np(-r)) : take_tree(x, fs, err);
  r = r ? r : layer_owner_write(fresh, x->s->team, jail_layer_bytes(fs), err);
  if (!r && rename(fresh, home) && access(x->layer, F_OK))
    r = err_errno(err, "naming %s", home);
  path_remove_tree(AT_FDCWD, fresh);
  return r;
}

static void finish(struct session *x)
{
  int status;
  if (x->line >= 0)
    box_socket_close(x->line);
  if (x->jail.pidfd < 0)
    return;
  jail_kill(x->s->instance, x->id, &x->jail, NULL);
  jail_wait(&x->jail, DEATH_MS, &status);
}

/* One box's work, up to its end; the box's directory is left for what it made to be taken out. */
static int work(struct session *x, struct err *err)
{
  uint64_t bytes = (uint64_t)x->s->rules->size_mb << 20;
  struct unpack_request order = {
      .what = x->in->what, .bytes = bytes, .entries = ENTRIES, .used = x->in->used, .lowest = !x->in->lowers.n};
  memcpy(order.packed, x->in->part.packed, sizeof(order.packed));
  memcpy(order.diff, x->in->part.diff, sizeof(order.diff));
  int r = start(x, err);
  r = r ? r : tell(x, &order, sizeof(order), -1, err);
  r = r ? r : converse(x, err);
  finish(x);
  return r;
}

/* What can't be removed is the caller's to reclaim, and nothing else is done with its ids. */
static int clear(struct session *x, int r, struct err *err)
{
  struct err why = ERR_NONE;
  struct source_left *left = x->s->left;
  if (x->id[0] && jail_remove(x->s->instance, x->id, x->dir, &why)) {
    log_warn("box %s: %s", x->id, why.msg);
    if (left->n < ARRAY_LEN(left->all)) {
      memcpy(left->all[left->n].name, x->id, sizeof(x->id));
      memcpy(left->all[left->n++].dir, x->dir, sizeof(x->dir));
    }
    r = r ? r : err_set(err, -EIO, "the unpacker's box could not be removed; try again later");
  }
  jail_close(&x->jail);
  vec_free(&x->parts);
  return r;
}

/* ---- an image's layers, each by itself ---- */

static int add_layer(struct source_base *out, const char *path)
{
  cleanup_buf struct buf below = BUF_INIT(out->layers.max);
  buf_adds(&below, buf_str(&out->layers));
  buf_clear(&out->layers);
  buf_addf(&out->layers, "%s\n", path);
  return buf_adds(&out->layers, buf_str(&below));
}

/* Its size, or -ENOENT. A layer that changed nothing has no files, only a name. */
static int64_t known_part(const char *home)
{
  cleanup_buf struct buf b = BUF_INIT(64);
  char path[DATA_PATH_SIZE];
  uint64_t n;
  snprintf(path, sizeof(path), "%s/" SIZE, home);
  if (!layer_lease(home) || file_read(path, &b) || str_u64(buf_str(&b), &n))
    return -ENOENT;
  return (int64_t)n;
}

static int keep_part(struct session *x, struct str size, const char *home, struct err *err)
{
  char fresh[DATA_PATH_SIZE], path[DATA_PATH_SIZE];
  snprintf(fresh, sizeof(fresh), "%s/layers/.new-%s", x->s->data, x->id);
  snprintf(path, sizeof(path), "%s/fs", fresh);
  int r = path_mkdirs(fresh, 0700);
  if (r)
    return err_set(err, r, "making %s: %s", fresh, strerrordesc_np(-r));
  r = x->in->lowers.n ? jail_commit(x->dir, x->s->id_base, path, err) : take_tree(x, path, err);
  if (!r && layer_empty(path))
    path_remove_tree(AT_FDCWD, path);
  r = r ? r : layer_owner_write(fresh, x->s->team, jail_layer_bytes(path), err);
  snprintf(path, sizeof(path), "%s/" SIZE, fresh);
  if (!r && (r = file_write_atomic(path, size.p, size.n, 0600)))
    err_set(err, r, "writing %s: %s", path, strerrordesc_np(-r));
  if (!r && rename(fresh, home) && access(home, F_OK))
    r = err_errno(err, "naming %s", home);
  path_remove_tree(AT_FDCWD, fresh);
  return r;
}

static int unpack_part(const struct source_spec *s, const struct source_input *in, const char *home, struct err *err)
{
  struct source_base part = {.config = BUF_INIT(64)};
  struct session x = {.s = s, .in = in, .out = &part, .jail = JAIL_NONE, .line = -1};
  int r = work(&x, err);
  r = r ? r : keep_part(&x, buf_str(&part.config), home, err);
  r = clear(&x, r, err);
  buf_free(&part.config);
  return r ? err_wrap(err, "layer sha256:%.12s", in->part.packed) : 0;
}

static int stack(struct session *x, struct err *err)
{
  char key[DIGEST_TEXT_SIZE] = "", identity[200], home[DATA_PATH_SIZE], path[DATA_PATH_SIZE], line[200];
  uint64_t used = 0;
  for (size_t i = 0; i < x->parts.n; i++) {
    struct source_input in = {.what = UNPACK_PART, .index = -1, .blobs = x->in->blobs, .part = x->parts.p[i]};
    snprintf(identity, sizeof(identity), "layer %s sha256:%s", key, in.part.diff);
    source_key(x->s->team, identity, key);
    snprintf(home, sizeof(home), "%s/layers/%s", x->s->data, key);
    int64_t size = known_part(home);
    snprintf(line, sizeof(line), "%s layer %zu of %zu (sha256:%.12s)", size < 0 ? "unpacking" : "CACHED", i + 1,
             x->parts.n, in.part.packed);
    note(x, line);
    in.lowers = buf_str(&x->out->layers);
    in.used = used;
    int r = size < 0 ? unpack_part(x->s, &in, home, err) : 0;
    size = r ? 0 : known_part(home);
    if (size < 0)
      r = err_set(err, -EIO, "the layer %s no longer exists", home);
    used += (uint64_t)MAX(size, (int64_t)0);
    if (!r && used > (uint64_t)x->s->rules->size_mb << 20)
      r = err_set(err, -EBADMSG, "unpacked it is larger than %u MiB", x->s->rules->size_mb);
    snprintf(path, sizeof(path), "%s/fs", home);
    if (!r && !access(path, F_OK))
      r = add_layer(x->out, path) ? err_set(err, -E2BIG, "the image has too many layers") : 0;
    if (r)
      return r;
  }
  return 0;
}

/* ---- all of it ---- */

int source_unpack(const struct source_spec *s, const struct source_input *in, struct source_base *out, struct err *err)
{
  struct session x = {.s = s, .in = in, .out = out, .jail = JAIL_NONE, .line = -1};
  if (in->identity)
    name_layer(&x, in->identity);
  int r = work(&x, err);
  if (!r && !out->key[0])
    r = err_set(err, -EPROTO, "cloche-unpack did not report a digest");
  if (!r && !x.known && !x.stacked)
    r = keep(&x, err);
  if (!r)
    r = x.stacked ? stack(&x, err) : add_layer(out, x.layer);
  return clear(&x, r, err);
}
