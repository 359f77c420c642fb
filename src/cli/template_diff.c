/* SPDX-License-Identifier: Apache-2.0 */
/* template_diff.c - `cloche template diff`: what a second build has that a first one has not, and the other way round.
 *
 * Both trees are walked side by side. A file counts as the same when kind, mode, owner, size and time agree, or when
 * only the time differs and the contents agree. Names were chosen by strangers: control characters are shown as
 * escapes. */
#include "cli/packages.h"
#include "cli/template.h"
#include "cli/layer_tree.h"

#include <fcntl.h>
#include <stdio.h>

#define DEPTH_MAX 256
#define PIECE     ((size_t)64 << 10)

struct walk {
  char path[PATH_MAX];
  size_t n, added, removed, changed;
};

static void print_name(const char *name)
{
  for (const char *p = name; *p; p++)
    if ((unsigned char)*p < 32 || *p == 127)
      printf("\\x%02x", (unsigned char)*p);
    else
      putchar(*p);
}

/* ---- packages ---- */

static void print_package(char mark, const char *name, const char *from, const char *to)
{
  printf("  %c ", mark);
  print_name(name);
  putchar(' ');
  print_name(from);
  if (*from && *to)
    fputs(" -> ", stdout);
  print_name(to);
  putchar('\n');
}

static void diff_packages(const struct packages *a, const struct packages *b)
{
  size_t i = 0, k = 0;
  while (i < a->v.n || k < b->v.n) {
    const struct package *x = i < a->v.n ? &a->v.p[i] : NULL, *y = k < b->v.n ? &b->v.p[k] : NULL;
    int d = !x ? 1 : !y ? -1 : strcmp(x->name, y->name);
    if (d < 0)
      print_package('-', x->name, x->version, "");
    else if (d > 0)
      print_package('+', y->name, "", y->version);
    else if (strcmp(x->version, y->version))
      print_package('~', x->name, x->version, y->version);
    i += d <= 0;
    k += d >= 0;
  }
}

/* ---- files ---- */

static void print_path(const struct walk *w, char mark, const char *why)
{
  printf("  %c ", mark);
  print_name(w->path);
  if (why[0])
    printf("  (%s)", why);
  putchar('\n');
}

static bool same_link(int a, int b, const char *name)
{
  char x[PATH_MAX], y[PATH_MAX];
  ssize_t n = readlinkat(a, name, x, sizeof(x)), m = readlinkat(b, name, y, sizeof(y));
  return n == m && n >= 0 && !memcmp(x, y, (size_t)n);
}

static bool same_content(int a, int b, const char *name)
{
  cleanup_fd int x = openat(a, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC),
                 y = openat(b, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  cleanup_free char *p = xmalloc(PIECE), *q = xmalloc(PIECE);
  for (ssize_t n, m; x >= 0 && y >= 0;) {
    n = read(x, p, PIECE);
    m = read(y, q, PIECE);
    if (n != m || n < 0 || (n > 0 && memcmp(p, q, (size_t)n)))
      return false;
    if (n == 0)
      return true;
  }
  return false;
}

/* "" when nothing that matters differs. */
static void compare(int a, int b, const struct tree_name *x, const struct tree_name *y, char why[200])
{
  why[0] = 0;
  if ((x->st.st_mode & S_IFMT) != (y->st.st_mode & S_IFMT))
    snprintf(why, 200, "another kind of file");
  else if (x->st.st_mode != y->st.st_mode)
    snprintf(why, 200, "mode %o -> %o", x->st.st_mode & 07777, y->st.st_mode & 07777);
  else if (x->st.st_uid != y->st.st_uid || x->st.st_gid != y->st.st_gid)
    snprintf(why, 200, "owner %u:%u -> %u:%u", x->st.st_uid, x->st.st_gid, y->st.st_uid, y->st.st_gid);
  else if (S_ISLNK(x->st.st_mode) && !same_link(a, b, x->name))
    snprintf(why, 200, "another target");
  else if (S_ISREG(x->st.st_mode) && x->st.st_size != y->st.st_size)
    snprintf(why, 200, "%lld -> %lld bytes", (long long)x->st.st_size, (long long)y->st.st_size);
  else if (S_ISREG(x->st.st_mode) && memcmp(&x->st.st_mtim, &y->st.st_mtim, sizeof(x->st.st_mtim)) &&
           !same_content(a, b, x->name))
    snprintf(why, 200, "contents");
}

static void diff_dirs(struct walk *w, int a, int b, unsigned depth);

static int open_sub(int dir, const struct tree_name *n)
{
  return dir >= 0 && n && S_ISDIR(n->st.st_mode) ? openat(dir, n->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                                                 : -1;
}

/* Written anew at every launch, so of no build, though steps leave their own. */
static bool of_a_box(const char *path)
{
  static const char *const own[] = {"/etc/hostname", "/etc/hosts", "/etc/resolv.conf"};
  for (size_t i = 0; i < ARRAY_LEN(own); i++)
    if (!strcmp(path, own[i]))
      return true;
  return false;
}

static void diff_name(struct walk *w, const char *name, int a, int b, const struct tree_name *x,
                      const struct tree_name *y, unsigned depth)
{
  char why[200] = "";
  size_t before = w->n;
  int k = snprintf(w->path + w->n, sizeof(w->path) - w->n, "/%s", name);
  if (k < 0 || (size_t)k >= sizeof(w->path) - w->n) {
    w->path[before] = 0;
    return;
  }
  w->n += (size_t)k;
  if (of_a_box(w->path)) {
    w->n = before;
    w->path[before] = 0;
    return;
  }
  if (x && y)
    compare(a, b, x, y, why);
  if (!x || !y || why[0])
    print_path(w, x && y ? '~' : x ? '-' : '+', why);
  w->added += !x;
  w->removed += !y;
  w->changed += x && y && why[0];
  cleanup_fd int sub_a = open_sub(a, x), sub_b = open_sub(b, y);
  if (sub_a >= 0 || sub_b >= 0)
    diff_dirs(w, sub_a, sub_b, depth + 1);
  w->n = before;
  w->path[before] = 0;
}

static void diff_dirs(struct walk *w, int a, int b, unsigned depth)
{
  cleanup_list struct tree_list x = {0}, y = {0};
  if (depth > DEPTH_MAX || (a >= 0 && tree_list(a, &x)) || (b >= 0 && tree_list(b, &y)))
    return;
  size_t i = 0, k = 0;
  while (i < x.v.n || k < y.v.n) {
    const struct tree_name *p = i < x.v.n ? &x.v.p[i] : NULL, *q = k < y.v.n ? &y.v.p[k] : NULL;
    int d = !p ? 1 : !q ? -1 : strcmp(p->name, q->name);
    diff_name(w, d <= 0 ? p->name : q->name, a, b, d <= 0 ? p : NULL, d >= 0 ? q : NULL, depth);
    i += d <= 0;
    k += d >= 0;
  }
}

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
  struct walk w = {.n = 0};
  struct packages p, q;
  diff_settings(a, b);
  if (!strcmp(a->layers, b->layers)) {
    puts("the two builds have the same files");
    return 0;
  }
  cleanup_fd int x = tree_open(a->layers, err);
  cleanup_fd int y = x < 0 ? x : tree_open(b->layers, err);
  if (y < 0)
    return y;
  packages_read(x, &p);
  packages_read(y, &q);
  puts("packages");
  diff_packages(&p, &q);
  packages_free(&p);
  packages_free(&q);
  puts("files");
  diff_dirs(&w, x, y, 0);
  printf("%zu added, %zu removed, %zu changed\n", w.added, w.removed, w.changed);
  return 0;
}
