/* SPDX-License-Identifier: Apache-2.0 */
/* template_export.c - `cloche template export`: a build as an OCI image of one layer.
 *
 * The layer is the tree as a sandbox would see it, so that no overlay marks leave this machine. What only Cloche knows
 * (sizes, start and ready commands) goes into a label, which an import reads back. The image appears under its name
 * only when it is whole. */
#include "cli/compressed_file.h"
#include "cli/template.h"
#include "cli/layer_tree.h"
#include "unpack/oci_image.h"
#include "unpack/tar_write.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/xattr.h>

#define DEPTH_MAX  256
#define PIECE      ((size_t)256 << 10)
#define XATTRS_MAX 16
#define ATTR_MAX   4096

/* ---- a blob under way ---- */

struct layer {
  struct pack *pack;
  struct sha256 plain;
  struct buf head;
  struct map links; /* "device:inode" -> first path (owned) */
  char path[TAR_NAME_MAX];
  size_t n;
  uint64_t files, left_out;
  struct err *err;
};

static int put(struct layer *l, const void *p, size_t n)
{
  sha256_add(&l->plain, p, n);
  return pack_put(l->pack, str_make(p, n)) ? err_set(l->err, -EIO, "writing the layer: is the disk full?") : 0;
}

static int put_head(struct layer *l)
{
  int r = buf_failed(&l->head) ? err_set(l->err, -E2BIG, "%s: its names and attributes are too large", l->path)
                               : put(l, l->head.p, l->head.n);
  buf_clear(&l->head);
  return r;
}

static int put_content(struct layer *l, int dir, const char *name, uint64_t size)
{
  cleanup_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  cleanup_free char *piece = xmalloc(PIECE);
  uint64_t left = size;
  int r = fd < 0 ? err_errno(l->err, "opening %s", l->path) : 0;
  while (!r && left) {
    ssize_t k = read(fd, piece, (size_t)MIN((uint64_t)PIECE, left));
    if (k <= 0)
      return err_set(l->err, -EIO, "reading %s", l->path);
    left -= (uint64_t)k;
    r = put(l, piece, (size_t)k);
  }
  tar_write_pad(&l->head, size);
  return r ? r : put_head(l);
}

/* ---- entries ---- */

static bool carried(const char *name)
{
  return !strcmp(name, "security.capability") || !strncmp(name, "user.", 5);
}

/* Attributes of one file, through its descriptor's name in /proc: a path of the caller's choosing is never followed. */
static void read_xattrs(struct layer *l, int dir, const char *name, struct arena *a, struct str *out, size_t *n)
{
  char via[64], names[ATTR_MAX], value[ATTR_MAX];
  cleanup_fd int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  snprintf(via, sizeof(via), "/proc/self/fd/%d", fd);
  ssize_t size = fd < 0 ? 0 : listxattr(via, names, sizeof(names));
  for (const char *p = names; size > 0 && p < names + size && *n < XATTRS_MAX; p += strlen(p) + 1) {
    ssize_t k = carried(p) ? getxattr(via, p, value, sizeof(value)) : -1;
    if (k < 0)
      continue;
    out[2 * *n] = arena_str(a, str_of(p));
    out[2 * (*n)++ + 1] = arena_str(a, str_make(value, (size_t)k));
  }
}

static const char *earlier_link(struct layer *l, const struct stat *st)
{
  char key[64];
  snprintf(key, sizeof(key), "%llu:%llu", (unsigned long long)st->st_dev, (unsigned long long)st->st_ino);
  const char *first = map_get(&l->links, str_of(key));
  if (!first)
    map_put(&l->links, str_of(key), xstrdup(l->path));
  return first;
}

static enum tar_kind kind_of(const struct stat *st)
{
  return S_ISREG(st->st_mode)    ? TAR_FILE
         : S_ISDIR(st->st_mode)  ? TAR_DIR
         : S_ISLNK(st->st_mode)  ? TAR_SYMLINK
         : S_ISFIFO(st->st_mode) ? TAR_FIFO
                                 : TAR_DEVICE;
}

static int put_entry(struct layer *l, int dir, const struct tree_name *x)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct str xattrs[2 * XATTRS_MAX];
  char link[TAR_NAME_MAX];
  struct tar_entry e = {.kind = kind_of(&x->st),
                        .name = str_make(l->path, l->n),
                        .size = (uint64_t)x->st.st_size,
                        .mode = x->st.st_mode & 07777,
                        .uid = x->st.st_uid,
                        .gid = x->st.st_gid,
                        .mtime = x->st.st_mtime,
                        .xattrs = xattrs};
  if (e.kind == TAR_DEVICE) { /* and sockets */
    l->left_out++;
    return 0;
  }
  const char *first = e.kind == TAR_FILE && x->st.st_nlink > 1 ? earlier_link(l, &x->st) : NULL;
  if (first) {
    e.kind = TAR_HARDLINK;
    e.link = str_of(first);
  } else if (e.kind == TAR_SYMLINK) {
    ssize_t k = readlinkat(dir, x->name, link, sizeof(link));
    if (k <= 0)
      return err_errno(l->err, "reading the link %s", l->path);
    e.link = str_make(link, (size_t)k);
  } else {
    read_xattrs(l, dir, x->name, &a, xattrs, &e.nxattrs);
  }
  l->files++;
  int r = tar_write_header(&l->head, &e) ? err_set(l->err, -E2BIG, "%s can't be written to an archive", l->path)
                                         : put_head(l);
  return r || e.kind != TAR_FILE ? r : put_content(l, dir, x->name, e.size);
}

static int put_dir(struct layer *l, int dir, unsigned depth)
{
  cleanup_list struct tree_list list = {0};
  int r = tree_list(dir, &list) ? err_errno(l->err, "listing /%s", l->path) : 0;
  if (depth > DEPTH_MAX)
    return err_set(l->err, -ENAMETOOLONG, "/%s is nested too deep", l->path);
  size_t before = l->n;
  for (size_t i = 0; !r && i < list.v.n; i++) {
    const struct tree_name *x = &list.v.p[i];
    int k = snprintf(l->path + before, sizeof(l->path) - before, "%s%s", before ? "/" : "", x->name);
    if (k < 0 || (size_t)k >= sizeof(l->path) - before)
      return err_set(l->err, -ENAMETOOLONG, "/%s has too long names in it", l->path);
    l->n = before + (size_t)k;
    r = put_entry(l, dir, x);
    if (!r && S_ISDIR(x->st.st_mode)) {
      cleanup_fd int sub = openat(dir, x->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      r = sub < 0 ? err_errno(l->err, "opening /%s", l->path) : put_dir(l, sub, depth + 1);
    }
    l->n = before;
    l->path[before] = 0;
  }
  return r;
}

static void layer_close(struct layer *l)
{
  void *first;
  for (size_t i = 0; map_next(&l->links, &i, NULL, &first);)
    free(first);
  map_free(&l->links);
  buf_free(&l->head);
  pack_finish(l->pack);
}

/* ---- the layout ---- */

struct blob {
  char digest[65];
  uint64_t size;
};

static int hash_file(int at, const char *name, struct blob *out)
{
  cleanup_fd int fd = openat(at, name, O_RDONLY | O_CLOEXEC);
  cleanup_free char *piece = xmalloc(PIECE);
  struct sha256 sum;
  uint8_t digest[SHA256_LEN];
  ssize_t k = -1;
  sha256_init(&sum);
  out->size = 0;
  while (fd >= 0 && (k = read(fd, piece, PIECE)) > 0) {
    sha256_add(&sum, piece, (size_t)k);
    out->size += (uint64_t)k;
  }
  sha256_end(&sum, digest);
  hex_encode(digest, sizeof(digest), out->digest);
  return k < 0 ? -EIO : 0;
}

static int write_layer(int blobs, const char *layers, bool gzip, struct blob *out, char diff[65], struct err *err)
{
  __attribute__((cleanup(layer_close))) struct layer l = {.head = BUF_INIT(4 * TAR_META_MAX), .err = err};
  uint8_t digest[SHA256_LEN];
  cleanup_fd int root = tree_open(layers, err);
  if (root < 0)
    return root;
  int fd = openat(blobs, "layer", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  l.pack = fd < 0 ? NULL : pack_new(fd, gzip);
  if (!l.pack)
    return err_errno(err, "writing the layer");
  sha256_init(&l.plain);
  int r = put_dir(&l, root, 0);
  tar_write_end(&l.head);
  r = r ? r : put_head(&l);
  if (pack_finish(steal(&l.pack)) && !r)
    r = err_set(err, -EIO, "writing the layer: is the disk full?");
  sha256_end(&l.plain, digest);
  hex_encode(digest, sizeof(digest), diff);
  if (!r && (hash_file(blobs, "layer", out) || renameat(blobs, "layer", blobs, out->digest)))
    r = err_errno(err, "naming the layer");
  if (!r && l.left_out)
    fprintf(stderr, "cloche: %llu sockets or devices were left out\n", (unsigned long long)l.left_out);
  return r;
}

static int write_text(int at, const char *name, const struct buf *b, struct err *err)
{
  cleanup_fd int fd = openat(at, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  int r = fd < 0 ? -errno : buf_failed(b) ? buf_failed(b) : fd_write_all(fd, b->p, b->n);
  return r ? err_set(err, r, "writing %s: %s", name, strerrordesc_np(-r)) : 0;
}

static int write_blob(int blobs, const struct buf *b, struct blob *out, struct err *err)
{
  uint8_t digest[SHA256_LEN];
  sha256_of(b->p, b->n, digest);
  hex_encode(digest, sizeof(digest), out->digest);
  out->size = b->n;
  return write_text(blobs, out->digest, b, err);
}

/* ---- the image's JSON ---- */

/* The build's settings with the sizes of a sandbox beside them. */
static void put_label(struct buf *out, const struct tpl *t, const struct json *config)
{
  struct jw w = JW(out);
  jw_open(&w, '{');
  for (struct json *k = json_is(config, JSON_OBJECT) ? config->kids : NULL; k; k = k->next) {
    jw_keys(&w, k->key);
    jw_value(&w, k);
  }
  jw_key(&w, "cpu");
  jw_uint(&w, t->cpus);
  jw_key(&w, "memoryMB");
  jw_uint(&w, t->memory_mb);
  jw_key(&w, "diskMB");
  jw_uint(&w, t->disk_mb);
  jw_close(&w, '}');
}

static void put_run(struct jw *w, const struct tpl *t, const struct json *config)
{
  cleanup_buf struct buf label = BUF_INIT(IMAGE_JSON_MAX), line = BUF_INIT(IMAGE_JSON_MAX);
  struct json *env = json_get(config, "env");
  jw_open(w, '{');
  jw_key(w, "Env");
  jw_open(w, '[');
  for (struct json *k = json_is(env, JSON_OBJECT) ? env->kids : NULL; k; k = k->next) {
    buf_clear(&line);
    buf_addf(&line, STR_FMT "=" STR_FMT, STR_ARG(k->key), STR_ARG(json_text(k, STR(""))));
    jw_str(w, buf_str(&line));
  }
  jw_close(w, ']');
  jw_key(w, "User");
  jw_str(w, json_text(json_get(config, "user"), STR("")));
  jw_key(w, "WorkingDir");
  jw_str(w, json_text(json_get(config, "workdir"), STR("")));
  put_label(&label, t, config);
  jw_key(w, "Labels");
  jw_open(w, '{');
  jw_key(w, IMAGE_LABEL);
  jw_str(w, buf_str(&label));
  jw_close(w, '}');
  jw_close(w, '}');
}

static void put_config(struct buf *out, const struct tpl *t, const struct json *config, const char *diff)
{
  struct jw w = JW(out);
  jw_open(&w, '{');
  jw_key(&w, "architecture");
  jw_z(&w, IMAGE_ARCHITECTURE);
  jw_key(&w, "os");
  jw_z(&w, "linux");
  jw_key(&w, "config");
  put_run(&w, t, config);
  jw_key(&w, "rootfs");
  jw_open(&w, '{');
  jw_key(&w, "type");
  jw_z(&w, "layers");
  jw_key(&w, "diff_ids");
  jw_open(&w, '[');
  cleanup_free char *id = xasprintf("sha256:%s", diff);
  jw_z(&w, id);
  jw_close(&w, ']');
  jw_close(&w, '}');
  jw_close(&w, '}');
}

static void put_descriptor(struct jw *w, const char *type, const struct blob *b)
{
  cleanup_free char *digest = xasprintf("sha256:%s", b->digest);
  jw_key(w, "mediaType");
  jw_z(w, type);
  jw_key(w, "digest");
  jw_z(w, digest);
  jw_key(w, "size");
  jw_uint(w, b->size);
}

static void put_manifest(struct buf *out, const struct blob *config, const struct blob *layer, bool gzip)
{
  struct jw w = JW(out);
  jw_open(&w, '{');
  jw_key(&w, "schemaVersion");
  jw_int(&w, 2);
  jw_key(&w, "mediaType");
  jw_z(&w, "application/vnd.oci.image.manifest.v1+json");
  jw_key(&w, "config");
  jw_open(&w, '{');
  put_descriptor(&w, "application/vnd.oci.image.config.v1+json", config);
  jw_close(&w, '}');
  jw_key(&w, "layers");
  jw_open(&w, '[');
  jw_open(&w, '{');
  put_descriptor(
      &w, gzip ? "application/vnd.oci.image.layer.v1.tar+gzip" : "application/vnd.oci.image.layer.v1.tar+zstd", layer);
  jw_close(&w, '}');
  jw_close(&w, ']');
  jw_close(&w, '}');
}

static void put_index(struct buf *out, const struct blob *manifest, const char *name)
{
  struct jw w = JW(out);
  jw_open(&w, '{');
  jw_key(&w, "schemaVersion");
  jw_int(&w, 2);
  jw_key(&w, "manifests");
  jw_open(&w, '[');
  jw_open(&w, '{');
  put_descriptor(&w, "application/vnd.oci.image.manifest.v1+json", manifest);
  jw_key(&w, "annotations");
  jw_open(&w, '{');
  jw_key(&w, "org.opencontainers.image.ref.name");
  jw_z(&w, name);
  jw_close(&w, '}');
  jw_close(&w, '}');
  jw_close(&w, ']');
  jw_close(&w, '}');
}

static int write_layout(int top, const struct tpl *t, bool gzip, struct err *err)
{
  cleanup_buf struct buf config = BUF_INIT(IMAGE_JSON_MAX), manifest = BUF_INIT(IMAGE_JSON_MAX),
                         index = BUF_INIT(IMAGE_JSON_MAX), mark = BUF_INIT(256);
  cleanup_arena struct arena a = ARENA_INIT(8 * IMAGE_JSON_MAX);
  struct blob layer, settings, image;
  char diff[65];
  if (mkdirat(top, "blobs", 0755) || mkdirat(top, "blobs/sha256", 0755))
    return err_errno(err, "making the layout");
  cleanup_fd int blobs = openat(top, "blobs/sha256", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int r = blobs < 0 ? err_errno(err, "opening the layout") : write_layer(blobs, t->layers, gzip, &layer, diff, err);
  if (r)
    return r;
  put_config(&config, t, json_read(&a, str_of(t->config ? t->config : "{}"), 0, NULL), diff);
  r = write_blob(blobs, &config, &settings, err);
  put_manifest(&manifest, &settings, &layer, gzip);
  r = r ? r : write_blob(blobs, &manifest, &image, err);
  put_index(&index, &image, t->name);
  buf_addz(&mark, "{\"imageLayoutVersion\":\"1.0.0\"}");
  r = r ? r : write_text(top, "oci-layout", &mark, err);
  return r ? r : write_text(top, "index.json", &index, err);
}

/* ---- an archive of the layout ---- */

static int add_file(int out, int top, const char *name, struct err *err)
{
  cleanup_fd int fd = openat(top, name, O_RDONLY | O_CLOEXEC);
  cleanup_buf struct buf b = BUF_INIT(TAR_META_MAX);
  cleanup_free char *piece = xmalloc(PIECE);
  struct stat st;
  if (fd < 0 || fstat(fd, &st))
    return err_errno(err, "opening %s", name);
  struct tar_entry e = {
      .kind = TAR_FILE, .name = str_of(name), .size = (uint64_t)st.st_size, .mode = 0644, .mtime = st.st_mtime};
  tar_write_header(&b, &e);
  int r = fd_write_all(out, b.p, b.n);
  for (ssize_t k; !r && (k = read(fd, piece, PIECE)) != 0;)
    r = k < 0 ? -errno : fd_write_all(out, piece, (size_t)k);
  buf_clear(&b);
  tar_write_pad(&b, e.size);
  r = r ? r : fd_write_all(out, b.p, b.n);
  return r ? err_set(err, r, "writing the archive: %s", strerrordesc_np(-r)) : 0;
}

static int add_dir(int out, const char *name)
{
  cleanup_buf struct buf b = BUF_INIT(TAR_META_MAX);
  tar_write_header(&b, &(struct tar_entry){.kind = TAR_DIR, .name = str_of(name), .mode = 0755});
  return fd_write_all(out, b.p, b.n);
}

static int write_archive(int top, const char *path, struct err *err)
{
  cleanup_fd int out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  cleanup_fd int blobs = openat(top, "blobs/sha256", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  cleanup_list struct tree_list list = {0};
  cleanup_buf struct buf end = BUF_INIT(4096);
  if (out < 0 || blobs < 0 || tree_list(blobs, &list))
    return err_errno(err, "making %s", path);
  int r = add_file(out, top, "oci-layout", err);
  r = r ? r : add_file(out, top, "index.json", err);
  if (!r && (add_dir(out, "blobs/") || add_dir(out, "blobs/sha256/")))
    r = err_errno(err, "writing %s", path);
  for (size_t i = 0; !r && i < list.v.n; i++) {
    cleanup_free char *name = xasprintf("blobs/sha256/%s", list.v.p[i].name);
    r = add_file(out, top, name, err);
  }
  tar_write_end(&end);
  if (!r && (fd_write_all(out, end.p, end.n) || fsync(out)))
    r = err_errno(err, "writing %s", path);
  if (r)
    unlink(path);
  return r;
}

int tpl_export(const struct tpl *t, const char *path, bool gzip, struct err *err)
{
  cleanup_free char *temp = xasprintf("%s.partial-%d", path, getpid());
  if (access(path, F_OK) == 0)
    return err_set(err, -EEXIST, "%s already exists", path);
  if (mkdir(temp, 0755))
    return err_errno(err, "making %s", temp);
  cleanup_fd int top = open(temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int r = top < 0 ? err_errno(err, "opening %s", temp) : write_layout(top, t, gzip, err);
  bool archive = str_ends(str_of(path), STR(".tar"));
  if (!r && archive)
    r = write_archive(top, path, err);
  else if (!r && rename(temp, path))
    r = err_errno(err, "naming %s", path);
  if (r || archive)
    path_remove_tree(AT_FDCWD, temp);
  if (!r)
    printf("%s\n", path);
  return r;
}
