/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_main.c - cloche-unpack: archives become a directory, in a box of its own. See unpack.h.
 *
 *   unpack                 first process of a box: takes a request over fd 3
 *   unpack tar DIRECTORY   inside a build's box: an archive (plain, gzip or zstd) from standard input
 *
 * Every blob is hashed while it is read and must be what its digest says, packed and unpacked. */
#include "unpack/oci_image.h"
#include "unpack/extract.h"
#include "unpack/decompress.h"
#include "unpack/unpack.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define LINE  3 /* descriptor of the line to the host */
#define PIECE ((size_t)256 << 10)

/* ---- one archive ---- */

struct archive {
  struct stream *stream;
  struct tar *tar;
  struct sha256 unpacked;
  struct err *err;
};

static int unpacked_piece(void *arg, struct str piece)
{
  struct archive *a = arg;
  sha256_add(&a->unpacked, piece.p, piece.n);
  return tar_feed(a->tar, piece, a->err);
}

static void archive_close(struct archive *a)
{
  stream_free(a->stream);
  tar_free(a->tar);
}

static bool digest_is(struct sha256 *s, const char *hex)
{
  uint8_t sum[SHA256_LEN];
  char text[2 * SHA256_LEN + 1];
  sha256_end(s, sum);
  hex_encode(sum, sizeof(sum), text);
  return !strcmp(text, hex);
}

/* packed and diff: what the bytes must hash to before and after decompression; NULL: nobody knows. */
static int unpack_fd(int fd, struct extract *p, const char *packed, const char *diff, struct err *err)
{
  __attribute__((cleanup(archive_close))) struct archive a = {.err = err};
  a.stream = stream_new(unpacked_piece, &a);
  a.tar = tar_new(&extract_ops, p);
  sha256_init(&a.unpacked);
  struct sha256 sum;
  sha256_init(&sum);
  cleanup_free char *piece = xmalloc(PIECE);
  int r = 0;
  for (ssize_t k; !r && (k = read(fd, piece, PIECE)) != 0;) {
    if (k < 0 && errno == EINTR)
      continue;
    if (k < 0)
      return err_errno(err, "reading an archive");
    sha256_add(&sum, piece, (size_t)k);
    r = stream_feed(a.stream, str_make(piece, (size_t)k), err);
  }
  r = r ? r : stream_finish(a.stream, err);
  r = r ? r : tar_finish(a.tar, err);
  if (!r && packed && !digest_is(&sum, packed))
    r = err_set(err, -EBADMSG, "a layer does not match its digest sha256:%s", packed);
  if (!r && diff && !digest_is(&a.unpacked, diff))
    r = err_set(err, -EBADMSG, "an unpacked layer does not match its digest sha256:%s", diff);
  return r;
}

/* ---- the line to the host ---- */

static void say(char what, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(char what, const char *fmt, ...)
{
  char text[600];
  va_list ap;
  text[0] = what;
  va_start(ap, fmt);
  vsnprintf(text + 1, sizeof(text) - 1, fmt, ap);
  va_end(ap);
  if (send(LINE, text, strlen(text), MSG_NOSIGNAL) < 0)
    _exit(1);
}

static int want(const char *which, struct err *err)
{
  char msg;
  int fd = -1;
  size_t n = 1;
  say(UNPACK_WANT, "%s", which);
  if (fd_recv(LINE, &msg, 1, &fd, &n, 0) != 1)
    _exit(1);
  if (msg == UNPACK_HERE && n == 1)
    return fd;
  return err_set(err, -ENOENT, "the image lacks the blob sha256:%s", which);
}

static int want_text(const char *which, bool check, struct buf *out, struct err *err)
{
  cleanup_fd int fd = want(which, err);
  if (fd < 0)
    return fd;
  if (fd_read_all(fd, out))
    return err_set(err, -E2BIG, "the image's blob %s can't be read or exceeds %zu bytes", which, IMAGE_JSON_MAX);
  struct sha256 sum;
  sha256_init(&sum);
  sha256_add(&sum, out->p, out->n);
  return !check || digest_is(&sum, which)
             ? 0
             : err_set(err, -EBADMSG, "the blob sha256:%s does not match its digest", which);
}

/* ---- an image ---- */

static bool shall_go(const struct image_manifest *m, char (*diffs)[UNPACK_DIGEST])
{
  char msg;
  for (size_t i = 0; i < m->n; i++)
    say(UNPACK_PART_IS, "%s%s", m->layers[i], diffs[i]);
  say(UNPACK_IS, "%s", m->config);
  if (recv(LINE, &msg, 1, 0) != 1)
    _exit(1);
  return msg == UNPACK_GO;
}

static int unpack_layers(const struct image_manifest *m, char (*diffs)[UNPACK_DIGEST], struct extract *p,
                         struct err *err)
{
  int r = 0;
  for (size_t i = 0; i < m->n && !r; i++) {
    cleanup_fd int fd = want(m->layers[i], err);
    if (fd < 0)
      return fd;
    say(UNPACK_NOTE, "unpacking layer %zu of %zu (sha256:%.12s)", i + 1, m->n, m->layers[i]);
    extract_layer(p, true);
    r = unpack_fd(fd, p, m->layers[i], diffs[i], err);
    if (r)
      err_wrap(err, "layer sha256:%.12s", m->layers[i]);
  }
  return r;
}

static int unpack_image(struct extract *p, struct buf *result, struct err *err)
{
  cleanup_buf struct buf index = BUF_INIT(IMAGE_JSON_MAX), text = BUF_INIT(IMAGE_JSON_MAX),
                         config = BUF_INIT(IMAGE_JSON_MAX);
  cleanup_arena struct arena a = ARENA_INIT(16 * IMAGE_JSON_MAX);
  struct image_manifest m = {0};
  char digest[UNPACK_DIGEST], (*diffs)[UNPACK_DIGEST] = NULL;
  size_t n = 0;
  int r = want_text(UNPACK_INDEX, false, &index, err);
  r = r ? r : image_index(buf_str(&index), digest, err);
  r = r ? r : want_text(digest, true, &text, err);
  r = r ? r : image_manifest(&a, buf_str(&text), &m, err);
  r = r ? r : want_text(m.config, true, &config, err);
  r = r ? r : image_config(&a, buf_str(&config), result, &diffs, &n, err);
  if (!r && n != m.n)
    r = err_set(err, -EBADMSG, "the image has %zu layers but describes %zu", m.n, n);
  return r || !shall_go(&m, diffs) ? r : unpack_layers(&m, diffs, p, err);
}

static int unpack_tar(struct extract *p, struct buf *result, struct err *err)
{
  cleanup_fd int fd = want(UNPACK_INDEX, err);
  buf_addz(result, "{\"env\":{},\"user\":\"\",\"workdir\":\"\",\"cmd\":[],\"entrypoint\":[]}");
  return fd < 0 ? fd : unpack_fd(fd, p, NULL, NULL, err);
}

/* Layers below it are the box's own root: what is removed or changed of them becomes whiteouts and copies there. */
static int unpack_part(struct unpack_request *o, struct extract *p, struct buf *result, struct err *err)
{
  o->packed[64] = o->diff[64] = 0;
  cleanup_fd int fd = want(o->packed, err);
  if (fd < 0)
    return fd;
  extract_layer(p, true);
  extract_used(p, o->used);
  int r = unpack_fd(fd, p, o->packed, o->diff, err);
  buf_addf(result, "%llu", (unsigned long long)(extract_bytes(p) - o->used));
  return r;
}

/* The overlay marks a directory made in its own root; the mark means nothing in a layer. */
static int open_image_root(bool upon, struct err *err)
{
  const char *path = upon ? "/" : UNPACK_ROOT;
  if (!upon && mkdir(path, 0755))
    return err_errno(err, "making %s", path);
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return fd < 0 ? err_errno(err, "opening %s", path) : fd;
}

static int unpack_what(struct unpack_request *o, struct extract *p, struct buf *result, struct err *err)
{
  if (o->what == UNPACK_PART)
    return unpack_part(o, p, result, err);
  return o->what == UNPACK_TAR ? unpack_tar(p, result, err) : unpack_image(p, result, err);
}

static int obey(struct unpack_request *o, struct buf *result, struct err *err)
{
  struct extract_limits limits = {o->bytes, o->entries};
  bool upon = o->what == UNPACK_PART && !o->lowest;
  cleanup_fd int root = open_image_root(upon, err);
  if (root < 0)
    return root;
  struct extract *p = extract_new(root, &limits, err);
  extract_guard(p, upon);
  int r = unpack_what(o, p, result, err);
  r = r ? r : extract_finish(p);
  if (!r && extract_left_out(p))
    say(UNPACK_NOTE, "%llu device files were left out", (unsigned long long)extract_left_out(p));
  extract_free(p);
  return r;
}

static int serve_line(void)
{
  struct unpack_request o;
  struct err err = ERR_NONE;
  cleanup_buf struct buf result = BUF_INIT(IMAGE_RESULT_MAX);
  buf_addc(&result, UNPACK_RESULT);
  if (recv(LINE, &o, sizeof(o), 0) != (ssize_t)sizeof(o))
    return 1;
  umask(0);
  if (obey(&o, &result, &err)) {
    say(UNPACK_FAILED, "%s", err.msg);
    return 1;
  }
  return send(LINE, result.p, result.n, MSG_NOSIGNAL) == (ssize_t)result.n ? 0 : 1;
}

static int unpack_here(const char *dir)
{
  struct err err = ERR_NONE;
  struct extract_limits limits = {UINT64_MAX, UINT64_MAX}; /* a box has a disk limit of its own */
  cleanup_fd int root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  umask(0);
  if (root < 0) {
    fprintf(stderr, "unpack: %s: %s\n", dir, strerrordesc_np(errno));
    return 1;
  }
  struct extract *p = extract_new(root, &limits, &err);
  int r = unpack_fd(0, p, NULL, NULL, &err);
  r = r ? r : extract_finish(p);
  extract_free(p);
  if (r)
    fprintf(stderr, "unpack: %s\n", err.msg);
  return r ? 1 : 0;
}

int main(int argc, char **argv)
{
  if (argc == 3 && !strcmp(argv[1], "tar"))
    return unpack_here(argv[2]);
  if (argc == 1)
    return serve_line();
  fputs("usage: unpack tar DIRECTORY < ARCHIVE\n", stderr);
  return 2;
}
