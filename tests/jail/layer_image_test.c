/* SPDX-License-Identifier: Apache-2.0 */
/* layer_image_test.c - images of layers that a tenant wrote: whole, and made by a program that can do nothing else even
 * where a layer has taken it over. Needs root. */
#include "box.h"
#include "jail/fs/layer_image.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define SUPERBLOCK     1024 /* has the time and a random number */
#define SUPERBLOCK_END 1152
#define IMAGE_BYTES    ((size_t)64 << 20)

static char top[] = "/tmp/cloche-layer-image.XXXXXX";
static char attacker[200];

static void shell(const char *fmt, ...)
{
  char text[1000];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof(text), fmt, ap);
  va_end(ap);
  if (system(text))
    fail_msg("failed: %s", text);
}

static const char *in_top(const char *name)
{
  static char paths[4][200];
  static unsigned next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof(paths[0]), "%s/%s", top, name);
  return path;
}

/* The root of the maker as scripts/microvm makes it, with the real program or the attacker. */
static void make_parts(const char *name, const char *program)
{
  shell("mkdir -p %s/%s/mkfs/layer %s/%s/mkfs/tmp && : > %s/%s/mkfs/image && cp -L %s %s/%s/mkfs/mkfs.erofs", top, name,
        top, name, top, name, program, top, name);
  shell("ldd %s 2>/dev/null | grep -o '/[^ ]*' | while read -r f; do"
        " install -D \"$f\" \"%s/%s/mkfs$f\"; done",
        program, top, name);
}

static void mark(const char *path, const char *name, const char *value)
{
  if (setxattr(in_top(path), name, value, strlen(value), 0))
    fail_msg("%s of %s: %s", name, path, strerror(errno));
}

/* Everything that an overlay or a tenant puts into a layer. */
static void make_layer(const char *name)
{
  char path[64];
  shell("cd %s && mkdir -p %s/opaque neighbour && cd %s && echo s > secret && chmod 600 secret && chown 5:6 secret &&"
        " cp /bin/true program && chmod 4755 program && ln secret twin && ln -s /etc/shadow link && mkfifo fifo &&"
        " truncate -s 30M sparse && mknod gone c 0 0 && mknod device c 1 3 && echo n > ../neighbour/secret",
        top, name, name);
  snprintf(path, sizeof(path), "%s/opaque", name);
  mark(path, "trusted.overlay.opaque", "y");
  snprintf(path, sizeof(path), "%s/secret", name);
  mark(path, "user.note", "kept");
}

static char *load(const char *path, size_t *n)
{
  cleanup_buf struct buf b = BUF_INIT(IMAGE_BYTES);
  if (file_read(path, &b))
    fail_msg("reading %s: %s", path, strerror(errno));
  *n = b.n;
  char *copy = malloc(b.n + 1);
  assert_non_null(copy);
  memcpy(copy, b.p, b.n);
  copy[b.n] = 0;
  return copy;
}

static void the_image_is_what_mkfs_makes_with_all_rights(void **state)
{
  struct err err = ERR_NONE;
  size_t n, plain_n;
  make_parts("real", "\"$(command -v mkfs.erofs)\"");
  make_layer("a");
  int fd = layer_image_open(in_top("real"), in_top("a"), &err);
  if (fd < 0)
    fail_msg("%s", err.msg);
  close(fd);
  shell("mkfs.erofs -zlz4 --quiet %s/plain %s/a > /dev/null", top, top);
  char *made = load(in_top("a.erofs"), &n), *plain = load(in_top("plain"), &plain_n);
  assert_int_equal(n, plain_n);
  memset(made + SUPERBLOCK, 0, SUPERBLOCK_END - SUPERBLOCK);
  memset(plain + SUPERBLOCK, 0, SUPERBLOCK_END - SUPERBLOCK);
  assert_memory_equal(made, plain, n);
  assert_non_null(memmem(made, n, "overlay.opaque", 14));
  free(made);
  free(plain);
  struct stat st;
  assert_int_equal(stat(in_top("a.erofs"), &st), 0);
  assert_int_equal(st.st_uid, 0);
  assert_int_equal(st.st_mode & 07777, 0400);
}

static void a_maker_that_was_taken_over_reaches_nothing(void **state)
{
  struct err err = ERR_NONE;
  size_t n, attempts = 0;
  make_parts("false", attacker);
  make_layer("b");
  int fd = layer_image_open(in_top("false"), in_top("b"), &err);
  if (fd < 0)
    fail_msg("%s", err.msg);
  close(fd);
  char *told = load(in_top("b.erofs"), &n), *rest = NULL;
  for (char *line = strtok_r(told, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), attempts++) {
    bool may = !strncmp(line, "MAY ", 4), ok = strlen(line) > 3 && !strcmp(line + strlen(line) - 3, " ok");
    if (may != ok)
      fail_msg("%s", line);
    if (!may && !strstr("EPERM ENOENT EROFS EACCES ELOOP ENOSYS", strrchr(line, ' ') + 1))
      fail_msg("not a refusal: %s", line);
  }
  free(told);
  assert_true(attempts > 50);
}

static void a_maker_that_fails_leaves_nothing(void **state)
{
  struct err err = ERR_NONE;
  make_parts("fails", attacker);
  make_layer("c");
  shell("touch %s/c/fail", top);
  assert_int_equal(layer_image_open(in_top("fails"), in_top("c"), &err), -EIO);
  assert_non_null(strstr(err.msg, "ended with status 7"));
  shell("! ls %s | grep -q '^c[.]'", top);
}

static void without_a_maker_the_remedy_is_named(void **state)
{
  struct err err = ERR_NONE;
  make_layer("d");
  assert_int_equal(layer_image_open(in_top("nothing"), in_top("d"), &err), -ENOENT);
  assert_non_null(strstr(err.msg, "scripts/microvm"));
}

static int remove_top(void **state)
{
  shell("rm -rf %s", top);
  return 0;
}

int main(int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_image_is_what_mkfs_makes_with_all_rights),
      cmocka_unit_test(a_maker_that_was_taken_over_reaches_nothing),
      cmocka_unit_test(a_maker_that_fails_leaves_nothing),
      cmocka_unit_test(without_a_maker_the_remedy_is_named),
  };
  if (argc < 2 || !mkdtemp(top))
    return 2;
  snprintf(attacker, sizeof(attacker), "%s", argv[1]);
  cmocka_set_test_filter(getenv("CLOCHE_TEST_ONLY"));
  return cmocka_run_group_tests_name("layer_image", tests, NULL, remove_top);
}
