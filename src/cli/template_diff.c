/* SPDX-License-Identifier: Apache-2.0 */
/* template_diff.c - two builds side by side: `cloche template diff` for people, and what the warden runs for the API
 * (build_diff.h), which reads the layers of both on its standard input and prints JSON. Names were chosen by strangers:
 * to people control characters are shown as escapes; the JSON is bounded in rows, names looked at and time, and the
 * process that reads the trees keeps of root's rights the one to read. */
#include "cli/layer_tree.h"
#include "cli/template.h"
#include "cli/tree_diff.h"
#include "warden/build/build_diff.h"

#include <linux/capability.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define INPUT_MAX     ((size_t)1 << 20)
#define PACKAGES_MOST 1000 /* rows of an answer; what is beyond is counted */
#define FILES_MOST    2000
#define NAMES_MOST    2000000
#define LOOK_SECONDS  30
#define MEMORY_MOST   ((rlim_t)2 << 30)

static void print_name(const char *name)
{
  for (const char *p = name; *p; p++)
    if ((unsigned char)*p < 32 || *p == 127)
      printf("\\x%02x", (unsigned char)*p);
    else
      putchar(*p);
}

/* ---- for people ---- */

static void print_package(struct tree_diff *d, const char *name, const char *from, const char *to)
{
  printf("  %c ", !*from ? '+' : !*to ? '-' : '~');
  print_name(name);
  putchar(' ');
  print_name(from);
  if (*from && *to)
    fputs(" -> ", stdout);
  print_name(to);
  putchar('\n');
}

static void print_file(struct tree_diff *d, char mark, const char *path, const char *why, int64_t from, int64_t to)
{
  printf("  %c ", mark);
  print_name(path);
  if (why[0])
    printf("  (%s)", why);
  putchar('\n');
}

static const struct tree_diff_ops print_ops = {print_package, print_file};

static void diff_settings(const struct tpl *a, const struct tpl *b)
{
  if (strcmp(a->config ? a->config : "", b->config ? b->config : ""))
    printf("settings\n  - %s\n  + %s\n", a->config ? a->config : "", b->config ? b->config : "");
  if (a->cpus != b->cpus || a->memory_mb != b->memory_mb || a->disk_mb != b->disk_mb)
    printf("sandbox\n  - %u cpu, %u MiB memory, %u MiB disk\n  + %u cpu, %u MiB memory, %u MiB disk\n", a->cpus,
           a->memory_mb, a->disk_mb, b->cpus, b->memory_mb, b->disk_mb);
}

int tpl_diff(const struct tpl *a, const struct tpl *b, struct err *err)
{
  struct tree_diff d = {.ops = &print_ops};
  diff_settings(a, b);
  if (!strcmp(a->layers, b->layers)) {
    puts("the two builds have the same files");
    return 0;
  }
  cleanup_fd int x = tree_open(a->layers, err);
  cleanup_fd int y = x < 0 ? x : tree_open(b->layers, err);
  if (y < 0)
    return y;
  puts("packages");
  tree_diff_packages(&d, x, y);
  puts("files");
  tree_diff_files(&d, x, y);
  printf("%zu added, %zu removed, %zu changed%s\n", d.added, d.removed, d.changed,
         d.cut ? "; some directories could not be read" : "");
  return 0;
}

/* ---- for the API ---- */

struct rows {
  struct buf packages, files;
  struct jw pw, fw;
  size_t npackages, nfiles;
};

static void put_text(struct jw *w, const char *name, const char *text)
{
  jw_key(w, name);
  jw_z(w, text);
}

static void put_number(struct jw *w, const char *name, uint64_t v)
{
  jw_key(w, name);
  jw_uint(w, v);
}

static void package_row(struct tree_diff *d, const char *name, const char *from, const char *to)
{
  struct rows *r = d->arg;
  struct str kind, rest;
  if (r->npackages++ >= PACKAGES_MOST)
    return;
  str_cut(str_of(name), ' ', &kind, &rest); /* "dpkg curl" */
  jw_open(&r->pw, '{');
  jw_key(&r->pw, "manager");
  jw_str(&r->pw, kind);
  jw_key(&r->pw, "name");
  jw_str(&r->pw, rest);
  if (*from)
    put_text(&r->pw, "from", from);
  if (*to)
    put_text(&r->pw, "to", to);
  jw_close(&r->pw, '}');
}

static void file_row(struct tree_diff *d, char mark, const char *path, const char *why, int64_t from, int64_t to)
{
  struct rows *r = d->arg;
  if (r->nfiles++ >= FILES_MOST)
    return;
  jw_open(&r->fw, '{');
  put_text(&r->fw, "path", path);
  put_text(&r->fw, "change", mark == '+' ? "added" : mark == '-' ? "removed" : "changed");
  if (why[0])
    put_text(&r->fw, "detail", why);
  if (from >= 0)
    put_number(&r->fw, "sizeFrom", (uint64_t)from);
  if (to >= 0)
    put_number(&r->fw, "sizeTo", (uint64_t)to);
  jw_close(&r->fw, '}');
}

static const struct tree_diff_ops row_ops = {package_row, file_row};

/* The trees are open: what is left to do is reading. */
static int keep_only_reading(struct err *err)
{
  struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2] = {{0}};
  struct rlimit memory = {MEMORY_MOST, MEMORY_MOST}, none = {0, 0};
  data[0].effective = data[0].permitted = 1u << CAP_DAC_READ_SEARCH;
#ifdef __SANITIZE_ADDRESS__ /* whose shadow takes more than there is */
  memory.rlim_cur = memory.rlim_max = RLIM_INFINITY;
#endif
  if (setrlimit(RLIMIT_AS, &memory) || setrlimit(RLIMIT_NPROC, &none) || setrlimit(RLIMIT_FSIZE, &none) ||
      prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_capset, &head, data))
    return err_errno(err, "giving up rights");
  return 0;
}

static void put_answer(struct tree_diff *d, struct rows *r, struct buf *out)
{
  struct jw w = JW(out);
  jw_close(&r->pw, ']');
  jw_close(&r->fw, ']');
  jw_open(&w, '{');
  put_number(&w, "added", d->added);
  put_number(&w, "removed", d->removed);
  put_number(&w, "changed", d->changed);
  put_number(&w, "bytesFrom", d->bytes_from);
  put_number(&w, "bytesTo", d->bytes_to);
  jw_key(&w, "complete");
  jw_bool(&w, !d->cut);
  put_number(&w, "packagesTotal", r->npackages);
  jw_key(&w, "packages");
  jw_raw(&w, buf_str(&r->packages));
  jw_key(&w, "files");
  jw_raw(&w, buf_str(&r->files));
  jw_close(&w, '}');
}

/* Standard input: the layers of one build, an empty line, those of the other. */
static int compare(struct buf *out, struct err *err)
{
  cleanup_buf struct buf in = BUF_INIT(INPUT_MAX);
  struct tree_diff d = {.ops = &row_ops, .names_max = NAMES_MOST, .end_us = clock_mono_us() + LOOK_SECONDS * 1000000ll};
  struct rows r = {.packages = BUF_INIT(BUILD_DIFF_MAX), .files = BUF_INIT(BUILD_DIFF_MAX)};
  int e = fd_read_all(0, &in);
  ptrdiff_t at = e ? -1 : str_search(buf_str(&in), STR("\n\n"));
  if (at < 0)
    return err_set(err, -EINVAL, "no two builds were named");
  cleanup_free char *from = xstrndup(in.p, (size_t)at), *to = xstrndup(in.p + at + 2, in.n - (size_t)at - 2);
  cleanup_fd int x = tree_open(from, err);
  cleanup_fd int y = x < 0 ? x : tree_open(to, err);
  if (y < 0 || keep_only_reading(err))
    return err->code;
  d.arg = &r;
  r.pw = (struct jw)JW(&r.packages);
  r.fw = (struct jw)JW(&r.files);
  jw_open(&r.pw, '[');
  jw_open(&r.fw, '[');
  tree_diff_packages(&d, x, y);
  tree_diff_files(&d, x, y);
  put_answer(&d, &r, out);
  buf_free(&r.packages);
  buf_free(&r.files);
  return buf_failed(out) ? err_set(err, -E2BIG, "the differences exceed %zu bytes", BUILD_DIFF_MAX) : 0;
}

int build_diff_main(void)
{
  struct err err = ERR_NONE;
  cleanup_buf struct buf out = BUF_INIT(BUILD_DIFF_MAX);
  if (compare(&out, &err)) {
    puts(err.msg);
    return 1;
  }
  fwrite(out.p, 1, out.n, stdout);
  return fflush(stdout) ? 1 : 0;
}
