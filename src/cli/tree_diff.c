/* SPDX-License-Identifier: Apache-2.0 */
/* tree_diff.c - see tree_diff.h. */
#include "cli/tree_diff.h"

#include "cli/layer_tree.h"
#include "cli/packages.h"

#include <fcntl.h>
#include <stdio.h>

#define DEPTH_MAX 256
#define PIECE     ((size_t)64 << 10)
#define WHY_SIZE  200

struct walk {
  struct tree_diff *d;
  char path[PATH_MAX];
  size_t n;
};

/* ---- packages ---- */

void tree_diff_packages(struct tree_diff *d, int from, int to)
{
  struct packages a, b;
  packages_read(from, &a);
  packages_read(to, &b);
  size_t i = 0, k = 0;
  while (i < a.v.n || k < b.v.n) {
    const struct package *x = i < a.v.n ? &a.v.p[i] : NULL, *y = k < b.v.n ? &b.v.p[k] : NULL;
    int order = !x ? 1 : !y ? -1 : strcmp(x->name, y->name);
    if (order < 0)
      d->ops->package(d, x->name, x->version, "");
    else if (order > 0)
      d->ops->package(d, y->name, "", y->version);
    else if (strcmp(x->version, y->version))
      d->ops->package(d, x->name, x->version, y->version);
    i += order <= 0;
    k += order >= 0;
  }
  packages_free(&a);
  packages_free(&b);
}

/* ---- files ---- */

static bool over(struct tree_diff *d)
{
  if ((d->names_max && d->names > d->names_max) || (d->end_us && d->names % 64 == 0 && clock_mono_us() > d->end_us))
    d->cut = true;
  return d->cut;
}

static bool same_link(int a, int b, const char *name)
{
  char x[PATH_MAX], y[PATH_MAX];
  ssize_t n = readlinkat(a, name, x, sizeof(x)), m = readlinkat(b, name, y, sizeof(y));
  return n == m && n >= 0 && !memcmp(x, y, (size_t)n);
}

static bool same_content(struct tree_diff *d, int a, int b, const char *name)
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
    if (d->end_us && clock_mono_us() > d->end_us) {
      d->cut = true;
      return true;
    }
  }
  return false;
}

/* "" when nothing that matters differs. */
static void compare(struct tree_diff *d, int a, int b, const struct tree_name *x, const struct tree_name *y,
                    char why[WHY_SIZE])
{
  why[0] = 0;
  if ((x->st.st_mode & S_IFMT) != (y->st.st_mode & S_IFMT))
    snprintf(why, WHY_SIZE, "another kind of file");
  else if (x->st.st_mode != y->st.st_mode)
    snprintf(why, WHY_SIZE, "mode %o -> %o", x->st.st_mode & 07777, y->st.st_mode & 07777);
  else if (x->st.st_uid != y->st.st_uid || x->st.st_gid != y->st.st_gid)
    snprintf(why, WHY_SIZE, "owner %u:%u -> %u:%u", x->st.st_uid, x->st.st_gid, y->st.st_uid, y->st.st_gid);
  else if (S_ISLNK(x->st.st_mode) && !same_link(a, b, x->name))
    snprintf(why, WHY_SIZE, "another target");
  else if (S_ISREG(x->st.st_mode) && x->st.st_size != y->st.st_size)
    snprintf(why, WHY_SIZE, "%lld -> %lld bytes", (long long)x->st.st_size, (long long)y->st.st_size);
  else if (S_ISREG(x->st.st_mode) && memcmp(&x->st.st_mtim, &y->st.st_mtim, sizeof(x->st.st_mtim)) &&
           !same_content(d, a, b, x->name))
    snprintf(why, WHY_SIZE, "contents");
}

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

static int64_t size_of(const struct tree_name *n)
{
  return n && S_ISREG(n->st.st_mode) ? n->st.st_size : -1;
}

static void diff_dirs(struct walk *w, int a, int b, unsigned depth);

static void diff_name(struct walk *w, int a, int b, const struct tree_name *x, const struct tree_name *y,
                      unsigned depth)
{
  struct tree_diff *d = w->d;
  char why[WHY_SIZE] = "";
  if (x && y)
    compare(d, a, b, x, y, why);
  d->bytes_from += (uint64_t)MAX(size_of(x), 0);
  d->bytes_to += (uint64_t)MAX(size_of(y), 0);
  d->added += !x;
  d->removed += !y;
  d->changed += x && y && why[0];
  if (!x || !y || why[0])
    d->ops->file(d, x && y ? '~' : x ? '-' : '+', w->path, why, size_of(x), size_of(y));
  cleanup_fd int sub_a = open_sub(a, x), sub_b = open_sub(b, y);
  if (sub_a >= 0 || sub_b >= 0)
    diff_dirs(w, sub_a, sub_b, depth + 1);
}

static void diff_named(struct walk *w, const char *name, int a, int b, const struct tree_name *x,
                       const struct tree_name *y, unsigned depth)
{
  size_t before = w->n;
  int k = snprintf(w->path + w->n, sizeof(w->path) - w->n, "/%s", name);
  if (k > 0 && (size_t)k < sizeof(w->path) - w->n) {
    w->n += (size_t)k;
    if (!of_a_box(w->path))
      diff_name(w, a, b, x, y, depth);
  } else {
    w->d->cut = true;
  }
  w->n = before;
  w->path[before] = 0;
}

static void diff_dirs(struct walk *w, int a, int b, unsigned depth)
{
  cleanup_list struct tree_list x = {0}, y = {0};
  if (depth > DEPTH_MAX || (a >= 0 && tree_list(a, &x)) || (b >= 0 && tree_list(b, &y))) {
    w->d->cut = true;
    return;
  }
  size_t i = 0, k = 0;
  while ((i < x.v.n || k < y.v.n) && !over(w->d)) {
    const struct tree_name *p = i < x.v.n ? &x.v.p[i] : NULL, *q = k < y.v.n ? &y.v.p[k] : NULL;
    int order = !p ? 1 : !q ? -1 : strcmp(p->name, q->name);
    w->d->names++;
    diff_named(w, order <= 0 ? p->name : q->name, a, b, order <= 0 ? p : NULL, order >= 0 ? q : NULL, depth);
    i += order <= 0;
    k += order >= 0;
  }
}

void tree_diff_files(struct tree_diff *d, int from, int to)
{
  struct walk w = {.d = d};
  diff_dirs(&w, from, to, 0);
}
