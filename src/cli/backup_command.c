/* SPDX-License-Identifier: Apache-2.0 */
/* backup_command.c - `cloche backup`: a copy of what must survive, while the server runs.
 *
 * Nothing is stopped and no lock is taken. The store is copied by SQLite's own means, then the files that its rows
 * name: layers, checkpoints and the disks of boxes that are paused on disk do not change while a row names them. Since
 * rows change meanwhile, the store is copied again afterwards, and what the new rows name beyond the old ones is copied
 * too, until a copy of the store names nothing that is not there. A box that was resumed and paused again between two
 * rounds has another run or checkpoint and is copied again. Volumes that are images are mounted and written to: their
 * filesystem is frozen for as long as the image is copied, and thawed also when this program is killed. */
#include "cli/admin_client.h"
#include "cli/backup.h"
#include "cli/cli.h"
#include "cli/config.h"
#include "warden/db/store_backup.h"
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define ROUNDS_MAX     10
#define CAUSE_RESTLESS "not in the backup: it was resumed and paused again all the time"

static const char help[] =
    "cloche backup - a copy of teams, keys, templates, volumes, secrets and paused sandboxes\n\n"
    "Usage: cloche backup DIRECTORY [--with-key] [--data DIR]\n\n"
    "Makes DIRECTORY, which must not exist, and writes into it what 'cloche restore' makes a data directory of. The\n"
    "server may run, and nobody waits for it but writers of a volume while its image is copied. Kept are the store\n"
    "(teams, hashes of keys, templates, tags, events, webhooks, secrets as sealed values), layers and checkpoints of\n"
    "templates and snapshots, uploads, volumes, and sandboxes that are paused on disk. Sandboxes that run, or are\n"
    "paused in memory, are not. Ready-made templates are named only: they come with the server.\n\n"
    "  --with-key   the master key of secrets, too; without it, keep <data>/secrets.key in another place: who has\n"
    "               only one of the two can open no secret\n"
    "  --data DIR   the server's data directory [/var/lib/cloche]\n\n"
    "The directory has all that a server has, memory of sandboxes included: it is for root alone. Its files have "
    "holes\n"
    "and may share blocks with the originals (reflinks); 'tar -S' and 'rsync -S' keep the holes.\n\n"
    "Exit status: 0 when the backup is whole, 1 when not, 2 when the command line is wrong.";

struct copied_box {
  char id[BOX_ID_SIZE], checkpoint[CHECKPOINT_NAME_SIZE];
  uint64_t run;
  unsigned round; /* in which it was copied */
};

struct backup {
  const char *data, *to;
  char store[DATA_PATH_SIZE];
  struct err *err;
  struct map made;              /* paths below `to` that are there */
  VEC(struct copied_box) boxes; /* as they were when they were copied */
  VEC(char *) restless;         /* ids of boxes that could not be copied in this round */
  struct map outside;           /* layers outside the data directory */
  unsigned round;
  size_t fresh; /* copied in this round */
  size_t nboxes, nbuilds, nvolumes, left_out;
  struct line line; /* to the warden; fd -1: no server runs, and we hold its lock */
  int lock;
};

/* ---- trees ---- */

/* -ENOENT: it is gone, and so is the row that named it, as the next round will show. */
static int copy(struct backup *b, const char *name)
{
  char from[DATA_PATH_SIZE + 128], to[DATA_PATH_SIZE + 128];
  if (map_get(&b->made, str_of(name)))
    return 0;
  snprintf(from, sizeof(from), "%s/%s", b->data, name);
  snprintf(to, sizeof(to), "%s/%s", b->to, name);
  struct err why = ERR_NONE;
  int r = tree_copy(from, to, &why);
  if (!r) {
    map_put(&b->made, str_of(name), b);
    b->fresh++;
  } else if (r != -ENOENT) {
    *b->err = why;
  }
  return r;
}

static void drop(struct backup *b, const char *name)
{
  char path[DATA_PATH_SIZE + 128];
  snprintf(path, sizeof(path), "%s/%s", b->to, name);
  path_remove_tree(AT_FDCWD, path);
  map_del(&b->made, str_of(name));
}

static int copy_named(struct backup *b, const char *part, const char *name)
{
  char path[DATA_PATH_SIZE];
  snprintf(path, sizeof(path), "%s/%.200s", part, name);
  int r = name[0] ? copy(b, path) : 0;
  return r == -ENOENT ? 0 : r; /* a round that finds it missing in the end says so */
}

/* ---- what rows name ---- */

/* `<data>/layers/KEY/fs` and the like: the directory of the layer. */
static int copy_layer(struct backup *b, struct str path)
{
  char prefix[DATA_PATH_SIZE];
  int n = snprintf(prefix, sizeof(prefix), "%s/layers/", b->data);
  if (!path.n)
    return 0;
  if (!str_starts(path, str_make(prefix, (size_t)n))) {
    map_put(&b->outside, path, b);
    return 0;
  }
  struct str key, rest;
  char name[256];
  str_cut(str_skip(path, (size_t)n), '/', &key, &rest);
  return str_copyz(key, name, sizeof(name)) ? 0 : copy_named(b, "layers", name);
}

static int take_build(struct backup *b, const struct store_need *n)
{
  struct str left = n->layers, line;
  int r = copy_named(b, "checkpoints", n->checkpoint);
  r = r ? r : copy_named(b, "runtime", n->runtime);
  while (!r && left.n) {
    str_cut(left, '\n', &line, &left);
    r = copy_layer(b, line);
  }
  b->nbuilds++;
  return r;
}

static struct copied_box *copied(struct backup *b, const char *id)
{
  for (size_t i = 0; i < b->boxes.n; i++)
    if (!strcmp(b->boxes.p[i].id, id))
      return &b->boxes.p[i];
  return NULL;
}

static int take_box(struct backup *b, const struct store_need *n)
{
  struct copied_box *c = copied(b, n->id);
  char dir[DATA_PATH_SIZE];
  snprintf(dir, sizeof(dir), "boxes/%s", n->host_name);
  b->nboxes++;
  if (c && c->run == n->run && !strcmp(c->checkpoint, n->checkpoint))
    return 0;
  drop(b, dir);
  if (!c) {
    vec_push(&b->boxes, ((struct copied_box){0}));
    c = &b->boxes.p[b->boxes.n - 1];
    str_copyz(str_of(n->id), c->id, sizeof(c->id));
  }
  c->run = n->run;
  c->round = b->round;
  str_copyz(str_of(n->checkpoint), c->checkpoint, sizeof(c->checkpoint));
  int r = copy_named(b, "runtime", n->runtime);
  r = r ? r : copy_named(b, "checkpoints", n->checkpoint);
  r = r ? r : copy(b, dir);
  b->fresh++; /* looked at again: it may have been resumed while it was copied */
  if (r == -ENOENT)
    vec_push(&b->restless, xstrdup(n->id));
  return r == -ENOENT ? 0 : r;
}

/* ---- volumes ---- */

/* A child that thaws the filesystem when our end of the pipe is gone, however. */
static pid_t thaw_guard(int root, int *go)
{
  int pair[2];
  if (pipe2(pair, O_CLOEXEC))
    return -1;
  pid_t pid = fork();
  if (pid == 0) {
    char c;
    close(pair[1]);
    setsid();
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    while (read(pair[0], &c, 1) < 0 && errno == EINTR)
      ;
    ioctl(root, FITHAW, 0);
    _exit(0);
  }
  close(pair[0]);
  *go = pair[1];
  return pid;
}

static int copy_frozen(struct backup *b, int root, const char *name)
{
  int go = -1, status;
  pid_t guard = thaw_guard(root, &go);
  if (guard < 0)
    return err_errno(b->err, "fork");
  int r = ioctl(root, FIFREEZE, 0) ? err_errno(b->err, "freezing the filesystem of %s", name) : copy(b, name);
  close(go);
  waitpid(guard, &status, 0);
  return r;
}

/* The warden mounts it, so that there is never a second device on one image. */
static int take_volume(struct backup *b, const struct store_need *n)
{
  char name[DATA_PATH_SIZE], image[DATA_PATH_SIZE + 64];
  snprintf(name, sizeof(name), "volumes/%s", n->id);
  snprintf(image, sizeof(image), "%s/%s/volume.img", b->data, name);
  if (access(image, F_OK)) { /* a directory, or another volumes_dir */
    b->left_out++;
    return 0;
  }
  b->nvolumes++;
  if (map_get(&b->made, str_of(name)))
    return 0;
  if (b->line.fd < 0)
    return copy(b, name);
  cleanup_buf struct buf p = BUF_INIT(WIRE_MAX);
  wire_begin(&p, WIRE_VOLUME_OPEN, 1, 0);
  wire_putz(&p, W_TEAM, n->team);
  wire_putz(&p, W_ID, n->id);
  int fd = -1;
  struct err why = ERR_NONE;
  int r = admin_fetch(&b->line, &p, &fd, &why);
  cleanup_fd int root = fd;
  if (r == -ENOENT) /* deleted meanwhile */
    return 0;
  if (r || root < 0)
    return err_set(b->err, r ? r : -EIO, "volume %s: %s", n->id, r ? why.msg : "the server gave no descriptor");
  r = copy_frozen(b, root, name);
  return r == -ENOENT ? 0 : r;
}

static int take(const struct store_need *n, void *arg)
{
  struct backup *b = arg;
  return n->kind == NEED_BUILD ? take_build(b, n) : n->kind == NEED_BOX ? take_box(b, n) : take_volume(b, n);
}

/* ---- rounds ---- */

static void forget_restless(struct backup *b)
{
  for (size_t i = 0; i < b->restless.n; i++)
    free(b->restless.p[i]);
  b->restless.n = 0;
}

static int one_round(struct backup *b)
{
  char path[DATA_PATH_SIZE];
  snprintf(path, sizeof(path), "%s/" BACKUP_STORE, b->data);
  b->fresh = b->nboxes = b->nbuilds = b->nvolumes = b->left_out = 0;
  forget_restless(b);
  int r = store_copy(path, b->store, b->err);
  return r ? r : store_needs(b->store, take, b, b->err);
}

static int all_rounds(struct backup *b)
{
  int r = one_round(b);
  while (!r && b->fresh && ++b->round < ROUNDS_MAX)
    r = one_round(b);
  /* What was still moving in the last round is not taken. */
  for (size_t i = 0; !r && i < b->boxes.n; i++)
    if (b->boxes.p[i].round == ROUNDS_MAX - 1)
      vec_push(&b->restless, xstrdup(b->boxes.p[i].id));
  for (size_t i = 0; !r && i < b->restless.n; i++)
    r = store_copy_drop_box(b->store, b->restless.p[i], CAUSE_RESTLESS, b->err);
  return r ? r : store_copy_settle(b->store, b->err);
}

/* Whole directories of files that only come and go. */
static int copy_plain(struct backup *b)
{
  static const char *const names[] = {"files", "builds", "heaps"};
  int r = 0;
  for (size_t i = 0; !r && i < ARRAY_LEN(names); i++) {
    char path[DATA_PATH_SIZE];
    snprintf(path, sizeof(path), "%s/%s", b->to, names[i]);
    rmdir(path);
    r = copy(b, names[i]);
    r = r == -ENOENT ? 0 : r;
  }
  return r;
}

/* ---- beginning and end ---- */

static int write_manifest(struct backup *b, bool key)
{
  char path[DATA_PATH_SIZE], when[CLOCK_TEXT];
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  struct jw w = JW(&out);
  struct str layer;
  clock_text(clock_wall_us(), when);
  jw_open(&w, '{');
  jw_key(&w, "format");
  jw_int(&w, BACKUP_FORMAT);
  jw_key(&w, "version");
  jw_z(&w, CLOCHE_VERSION);
  jw_key(&w, "made");
  jw_z(&w, when);
  jw_key(&w, "data");
  jw_z(&w, b->data);
  jw_key(&w, "builds");
  jw_uint(&w, b->nbuilds);
  jw_key(&w, "sandboxes");
  jw_uint(&w, b->nboxes - MIN(b->restless.n, b->nboxes));
  jw_key(&w, "volumes");
  jw_uint(&w, b->nvolumes);
  jw_key(&w, "volumesLeftOut");
  jw_uint(&w, b->left_out);
  jw_key(&w, "masterKey");
  jw_bool(&w, key);
  jw_key(&w, "layersOutside");
  jw_open(&w, '[');
  for (size_t i = 0; map_next(&b->outside, &i, &layer, NULL);)
    jw_str(&w, layer);
  jw_close(&w, ']');
  jw_close(&w, '}');
  buf_addc(&out, '\n');
  snprintf(path, sizeof(path), "%s/" BACKUP_MANIFEST, b->to);
  int r = file_write_atomic(path, out.p, out.n, 0600);
  return r ? err_set(b->err, r, "%s: %s", path, strerrordesc_np(-r)) : 0;
}

static int make_target(struct backup *b)
{
  if (mkdir(b->to, 0700))
    return err_set(b->err, -errno, "%s: %s; name a directory that is not there yet", b->to, strerrordesc_np(errno));
  cleanup_fd int top = open(b->to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (size_t i = 0; i < backup_parts_n; i++)
    if (top < 0 || mkdirat(top, backup_parts[i], 0700))
      return err_errno(b->err, "%s/%s", b->to, backup_parts[i]);
  return 0;
}

/* A server that runs is asked for volumes; one that doesn't is kept from starting. */
static int reach_server(struct backup *b, int *argc, char **argv)
{
  char path[DATA_PATH_SIZE];
  struct err why = ERR_NONE;
  if (!admin_open(&b->line, argc, argv, &why))
    return 0;
  b->line.fd = -1;
  snprintf(path, sizeof(path), "%s/lock", b->line.data);
  b->lock = open(path, O_RDWR | O_CLOEXEC);
  if (b->lock < 0 || flock(b->lock, LOCK_EX | LOCK_NB))
    return err_set(b->err, -ENOENT, "%s: neither a data directory nor a server that answers: %s", b->line.data,
                   why.msg);
  return 0;
}

static int run(struct backup *b, bool key)
{
  int r = make_target(b);
  r = r ? r : all_rounds(b);
  r = r ? r : copy_plain(b); /* last: a heap goes an hour after the checkpoints that need it, no earlier */
  if (!r && key && copy(b, BACKUP_KEY) == -ENOENT)
    r = err_set(b->err, -ENOENT, "%s/" BACKUP_KEY " is not there: the master key is elsewhere; leave --with-key out",
                b->data);
  r = r ? r : tree_sync(b->to, b->err);
  r = r ? r : write_manifest(b, key);
  return r ? r : tree_sync(b->to, b->err);
}

int backup_main(int argc, char **argv)
{
  struct err err = ERR_NONE;
  static struct backup b;
  bool key = false;
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
      return puts(help), 0;
  b = (struct backup){.err = &err, .lock = -1};
  int r = reach_server(&b, &argc, argv);
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--with-key"))
      key = true;
    else if (argv[i][0] == '-' || b.to)
      return usage_error("unexpected word '%s'; see cloche backup --help", argv[i]);
    else
      b.to = argv[i];
  }
  if (!b.to)
    return usage_error("where to? see cloche backup --help");
  b.data = b.line.data;
  snprintf(b.store, sizeof(b.store), "%s/" BACKUP_STORE, b.to);
  r = r ? r : run(&b, key);
  if (r)
    return usage_error("%s", err.msg), 1;
  printf("%s: %zu builds, %zu paused sandboxes, %zu volumes\n", b.to, b.nbuilds, b.nboxes - MIN(b.restless.n, b.nboxes),
         b.nvolumes);
  if (b.left_out)
    printf("%zu volumes are no images in %s/volumes and were left out; see cloche volume backup\n", b.left_out, b.data);
  if (b.outside.n)
    printf("%zu layers are outside %s, of ready-made templates: the server that takes the backup needs the same\n",
           b.outside.n, b.data);
  return 0;
}
