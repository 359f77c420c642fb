/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.c - see manifest.h. */
#include "jail/checkpoint/manifest.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>

#define MANIFEST_MAX ((size_t)16 << 20)
#define CHUNK        ((size_t)256 << 10)
#define SUM_LINE     9 /* eight digits and a newline */
#define VERSION      2
#define WRITERS      4 /* threads that wait for the disk at once */
#define PAGE         ((size_t)4096)
#define HOLE_LEAST   (16 * PAGE) /* fewer pages of zeros are not worth a call */

void manifest_free(struct manifest *m)
{
  vec_free(&m->mounts);
  vec_free(&m->files);
  vec_free(&m->entries);
  vec_free(&m->addresses);
  arena_free(&m->arena);
}

/* `see`, where it is one, is shown each stretch. */
static int file_sum(int fd, void (*see)(int fd, const char *bytes, size_t n, off_t at), uint64_t *size, uint32_t *sum)
{
  cleanup_free char *bytes = xmalloc(CHUNK);
  ssize_t n;
  *size = 0;
  *sum = 0;
  while ((n = read(fd, bytes, CHUNK)) != 0) {
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return -errno;
    *sum = crc32c(*sum, bytes, (size_t)n);
    if (see)
      see(fd, bytes, (size_t)n, (off_t)*size);
    *size += (uint64_t)n;
  }
  return 0;
}

/* --- writing -------------------------------------------------------------------------------------------------- */

static int each_name(int dir, struct manifest *m, struct err *err)
{
  int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  cleanup_dir DIR *d = fd < 0 ? NULL : fdopendir(fd);
  if (!d)
    return err_errno(err, "reading a checkpoint's directory");
  for (struct dirent *e; (e = readdir(d));)
    if (e->d_name[0] != '.')
      vec_push(&m->entries, ((struct manifest_entry){.name = arena_z(&m->arena, str_of(e->d_name))}));
  return 0;
}

static size_t zero_bytes(const char *bytes, size_t n)
{
  size_t k = 0;
  while (k + PAGE <= n && !bytes[k] && !memcmp(bytes + k, bytes + k + 1, PAGE - 1))
    k += PAGE;
  return k;
}

/* Memory that was only cleared takes no place on the disk; the rest begins its way there. */
static void thin_out(int fd, const char *bytes, size_t n, off_t at)
{
  for (size_t i = 0; i + PAGE <= n;) {
    size_t zero = zero_bytes(bytes + i, n - i);
    if (zero >= HOLE_LEAST)
      fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at + (off_t)i, (off_t)zero);
    i += zero ? zero : PAGE;
  }
  sync_file_range(fd, at, (off_t)n, SYNC_FILE_RANGE_WRITE);
}

static bool is_memory(const char *name)
{
  return str_starts(str_of(name), STR(MANIFEST_MEMORY));
}

struct settling {
  const struct manifest *of;
  VEC(int) fds; /* of its entries, in their order */
  atomic_size_t next;
  atomic_int failed; /* errno */
};

static void settle_one(struct settling *s, size_t i)
{
  if (fsync(s->fds.p[i]))
    atomic_store(&s->failed, errno);
}

static void *settle_some(void *arg)
{
  struct settling *s = arg;
  for (size_t i; (i = atomic_fetch_add(&s->next, 1)) < s->fds.n;)
    if (!is_memory(s->of->entries.p[i].name))
      settle_one(s, i);
  return NULL;
}

static int sum_all(const struct settling *s, struct manifest *m, struct err *err)
{
  int r = 0;
  for (size_t i = 0; i < s->fds.n && !r; i++)
    if ((r = file_sum(s->fds.p[i], is_memory(m->entries.p[i].name) ? thin_out : NULL, &m->entries.p[i].size,
                      &m->entries.p[i].sum)))
      err_set(err, r, "reading %s: %s", m->entries.p[i].name, strerrordesc_np(-r));
  return r;
}

/* Each file waits for the disk's own word that it is written; threads that wait together share that word. The checksums
 * are made meanwhile. */
static int settle_all(struct settling *s, struct manifest *m, struct err *err)
{
  pthread_t threads[WRITERS];
  size_t n = 0;
  while (n < WRITERS && !pthread_create(&threads[n], NULL, settle_some, s))
    n++;
  int r = sum_all(s, m, err);
  settle_some(s);
  for (size_t i = 0; i < s->fds.n && !r; i++)
    if (is_memory(m->entries.p[i].name)) /* not before it was thinned out */
      settle_one(s, i);
  while (n > 0)
    pthread_join(threads[--n], NULL);
  int failed = atomic_load(&s->failed);
  return r || !failed ? r : err_set(err, -failed, "writing out a checkpoint: %s", strerrordesc_np(failed));
}

static int measure_all(const struct settling *s, struct manifest *m, struct err *err)
{
  struct stat st;
  for (size_t i = 0; i < s->fds.n; i++) {
    if (fstat(s->fds.p[i], &st))
      return err_errno(err, "reading the status of %s", m->entries.p[i].name);
    m->entries.p[i].size = (uint64_t)st.st_size;
  }
  return 0;
}

static int settle_files(int dir, struct manifest *m, bool transient, struct err *err)
{
  struct settling s = {.of = m};
  int r = 0;
  for (size_t i = 0; i < m->entries.n && !r; i++) {
    bool memory = is_memory(m->entries.p[i].name);
    int fd = openat(dir, m->entries.p[i].name, (memory ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
      r = err_errno(err, "opening %s", m->entries.p[i].name);
    else
      vec_push(&s.fds, fd);
    if (fd >= 0 && !transient && !memory)
      sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
  }
  if (!r)
    r = transient ? measure_all(&s, m, err) : settle_all(&s, m, err);
  for (size_t i = 0; i < s.fds.n; i++)
    close(s.fds.p[i]);
  vec_free(&s.fds);
  return r;
}

static void put_files(struct jw *w, const struct manifest *m)
{
  jw_key(w, "files");
  jw_open(w, '[');
  for (size_t i = 0; i < m->files.n; i++) {
    jw_open(w, '{');
    jw_key(w, "key"), jw_z(w, m->files.p[i].key);
    jw_key(w, "path"), jw_z(w, m->files.p[i].path);
    jw_key(w, "heap"), jw_z(w, m->files.p[i].heap);
    jw_key(w, "inode"), jw_uint(w, m->files.p[i].inode);
    jw_key(w, "size"), jw_uint(w, m->files.p[i].size);
    jw_key(w, "mark"), jw_uint(w, m->files.p[i].mark);
    jw_close(w, '}');
  }
  jw_close(w, ']');
}

static void put_manifest(struct buf *b, const struct manifest *m)
{
  struct jw w = JW(b);
  jw_open(&w, '{');
  jw_key(&w, "version"), jw_int(&w, VERSION);
  jw_key(&w, "mounts");
  jw_open(&w, '[');
  for (size_t i = 0; i < m->mounts.n; i++) {
    jw_open(&w, '{');
    jw_key(&w, "point"), jw_z(&w, m->mounts.p[i].point);
    jw_key(&w, "source"), jw_z(&w, m->mounts.p[i].source);
    jw_close(&w, '}');
  }
  jw_close(&w, ']');
  put_files(&w, m);
  jw_key(&w, "addresses");
  jw_open(&w, '[');
  for (size_t i = 0; i < m->addresses.n; i++)
    jw_uint(&w, m->addresses.p[i]);
  jw_close(&w, ']');
  jw_key(&w, "images");
  jw_open(&w, '[');
  for (size_t i = 0; i < m->entries.n; i++) {
    jw_open(&w, '{');
    jw_key(&w, "name"), jw_z(&w, m->entries.p[i].name);
    jw_key(&w, "size"), jw_uint(&w, m->entries.p[i].size);
    jw_key(&w, "sum"), jw_uint(&w, m->entries.p[i].sum);
    if (m->entries.p[i].packed)
      jw_key(&w, "packed"), jw_uint(&w, m->entries.p[i].packed);
    jw_close(&w, '}');
  }
  jw_close(&w, ']');
  jw_close(&w, '}');
  buf_addc(b, '\n');
}

int manifest_seal(int dir, struct manifest *m, bool transient, struct err *err)
{
  int r = each_name(dir, m, err);
  r = r ? r : settle_files(dir, m, transient, err);
  return r ? r : manifest_write(dir, m, transient, err);
}

int manifest_write(int dir, const struct manifest *m, bool transient, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(MANIFEST_MAX);
  put_manifest(&b, m);
  buf_addf(&b, "%08" PRIx32 "\n", crc32c(0, b.p, b.n));
  if (buf_failed(&b))
    return err_set(err, -E2BIG, "a manifest of more than %zu bytes", MANIFEST_MAX);
  cleanup_fd int fd = openat(dir, "." MANIFEST_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  int r = fd < 0 ? -errno : fd_write_all(fd, b.p, b.n);
  if (!r &&
      ((!transient && fsync(fd)) || renameat(dir, "." MANIFEST_NAME, dir, MANIFEST_NAME) || (!transient && fsync(dir))))
    r = -errno;
  return r ? err_set(err, r, "writing the manifest of a checkpoint: %s", strerrordesc_np(-r)) : 0;
}

/* --- reading -------------------------------------------------------------------------------------------------- */

static int damaged(struct err *err, const char *name, const char *how)
{
  return err_set(err, -EBADMSG, "the checkpoint is damaged: %s %s", name, how);
}

static const char *text(struct manifest *m, const struct json *o, const char *name)
{
  return arena_z(&m->arena, json_text(json_get(o, name), STR("")));
}

static uint64_t number(const struct json *o, const char *name)
{
  int64_t v = -1;
  return json_int(json_get(o, name), &v) || v < 0 ? UINT64_MAX : (uint64_t)v;
}

static void read_lists(struct manifest *m, const struct json *top)
{
  struct json *list = json_get(top, "mounts");
  for (struct json *o = list ? list->kids : NULL; o; o = o->next)
    vec_push(&m->mounts, ((struct manifest_mount){text(m, o, "point"), text(m, o, "source")}));
  list = json_get(top, "files");
  for (struct json *o = list ? list->kids : NULL; o; o = o->next)
    vec_push(&m->files, ((struct manifest_file){text(m, o, "key"), text(m, o, "path"), text(m, o, "heap"),
                                                number(o, "inode"), number(o, "size"), (uint32_t)number(o, "mark")}));
  list = json_get(top, "addresses");
  for (struct json *o = list ? list->kids : NULL; o; o = o->next) {
    int64_t v = 0;
    if (!json_int(o, &v) && v > 0 && v <= UINT32_MAX)
      vec_push(&m->addresses, (uint32_t)v);
  }
  list = json_get(top, "images");
  for (struct json *o = list ? list->kids : NULL; o; o = o->next)
    vec_push(&m->entries, ((struct manifest_entry){text(m, o, "name"), number(o, "size"), (uint32_t)number(o, "sum"),
                                                   json_get(o, "packed") ? number(o, "packed") : 0}));
}

int manifest_read(int dir, struct manifest *m, struct err *err)
{
  char sum[SUM_LINE + 1];
  cleanup_buf struct buf b = BUF_INIT(MANIFEST_MAX);
  cleanup_fd int fd = openat(dir, MANIFEST_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0)
    return errno == ENOENT ? err_set(err, -ENOENT, "the checkpoint is not complete: it has no manifest")
                           : err_errno(err, "opening a manifest");
  if (fd_read_all(fd, &b) || b.n <= SUM_LINE)
    return damaged(err, MANIFEST_NAME, "is cut short");
  snprintf(sum, sizeof(sum), "%08" PRIx32 "\n", crc32c(0, b.p, b.n - SUM_LINE));
  if (memcmp(sum, b.p + b.n - SUM_LINE, SUM_LINE))
    return damaged(err, MANIFEST_NAME, "does not match its checksum");
  struct json *top = json_read(&m->arena, str_make(b.p, b.n - SUM_LINE), 0, NULL);
  if (number(top, "version") != VERSION)
    return err_set(err, -ENOTSUP, "the checkpoint was written by another version of this program");
  read_lists(m, top);
  return 0;
}

/* Open, and of the size it had; -errno and err otherwise. */
static int open_entry(int dir, const struct manifest_entry *i, struct err *err)
{
  struct stat st;
  cleanup_fd int fd = openat(dir, i->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &st))
    return damaged(err, i->name, errno == ENOENT ? "is missing" : strerrordesc_np(errno));
  if ((uint64_t)st.st_size != i->size)
    return damaged(err, i->name, "has another size than when it was written");
  return steal_fd(&fd);
}

static int check_entry(int dir, const struct manifest_entry *i, struct err *err)
{
  uint64_t size;
  uint32_t sum;
  cleanup_fd int fd = open_entry(dir, i, err);
  if (fd < 0)
    return fd;
  if (file_sum(fd, NULL, &size, &sum))
    return damaged(err, i->name, "can't be read");
  return size == i->size && sum == i->sum ? 0 : damaged(err, i->name, "does not match its checksum");
}

int manifest_check(int dir, const struct manifest *m, bool memory, struct err *err)
{
  int r = 0;
  for (size_t i = 0; i < m->entries.n && !r; i++) {
    const struct manifest_entry *one = &m->entries.p[i];
    if (one->packed)
      continue;
    if (is_memory(one->name) == memory)
      r = check_entry(dir, one, err);
    else if (!memory) { /* criu would wait for the bytes of memory that is cut short */
      cleanup_fd int fd = open_entry(dir, one, err);
      r = fd < 0 ? fd : 0;
    }
  }
  return r;
}
