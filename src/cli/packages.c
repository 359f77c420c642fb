/* SPDX-License-Identifier: Apache-2.0 */
/* packages.c - see packages.h. */
#include "cli/packages.h"

#include "cli/layer_tree.h"
#include "wire/sizes.h"
#include <fcntl.h>
#include <stdio.h>

#define STATUS_MAX   ((size_t)64 << 20)
#define MANIFEST_MAX ((size_t)1 << 20)

static void add(struct packages *p, const char *kind, struct str name, struct str version)
{
  if (!name.n)
    return;
  struct package one = {.name = xasprintf("%s " STR_FMT, kind, STR_ARG(str_sub(name, 0, 200))),
                        .version = xstrndup(version.n ? version.p : "", MIN(version.n, (size_t)100))};
  vec_push(&p->v, one);
}

static int read_in(int root, const char *path, struct buf *out)
{
  cleanup_fd int fd = path_open_in(root, path, O_RDONLY | O_NONBLOCK, 0);
  struct stat st;
  if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
    return -ENOENT;
  return fd_read_all(fd, out);
}

/* Paragraphs of "Key: value" lines; what was removed but left its settings is not installed. */
static void read_dpkg(int root, struct packages *p)
{
  cleanup_buf struct buf b = BUF_INIT(STATUS_MAX);
  struct str line, name = STR_NONE, version = STR_NONE, key, value;
  bool installed = false;
  if (read_in(root, "var/lib/dpkg/status", &b))
    return;
  buf_addz(&b, "\n\n");
  for (struct str rest = buf_str(&b); rest.n;) {
    str_cut(rest, '\n', &line, &rest);
    if (!line.n) {
      if (installed)
        add(p, "dpkg", name, version);
      name = version = STR_NONE;
      installed = false;
    }
    if (!str_cut(line, ':', &key, &value))
      continue;
    value = str_trim(value);
    if (str_is(key, "Package"))
      name = value;
    else if (str_is(key, "Version"))
      version = value;
    else if (str_is(key, "Status"))
      installed = str_ends(value, STR(" installed"));
  }
}

/* NAME-VERSION.dist-info */
static void read_python(int root, const char *where, struct packages *p)
{
  static const char suffix[] = ".dist-info";
  cleanup_fd int dir = path_open_in(root, where, O_RDONLY | O_DIRECTORY, 0);
  cleanup_list struct tree_list l = {0};
  if (dir < 0 || tree_list(dir, &l))
    return;
  for (size_t i = 0; i < l.v.n; i++) {
    struct str name = str_of(l.v.p[i].name), head, version;
    if (!str_ends(name, STR(suffix)))
      continue;
    name.n -= sizeof(suffix) - 1;
    if (str_cut(name, '-', &head, &version))
      add(p, "python", head, version);
  }
}

/* lib/python3.11, lib/python3, ... below a directory */
static void read_pythons(int root, const char *lib, struct packages *p)
{
  static const char *const kinds[] = {"site-packages", "dist-packages"};
  cleanup_fd int dir = path_open_in(root, lib, O_RDONLY | O_DIRECTORY, 0);
  cleanup_list struct tree_list l = {0};
  if (dir < 0 || tree_list(dir, &l))
    return;
  for (size_t i = 0; i < l.v.n; i++)
    for (size_t k = 0; str_starts(str_of(l.v.p[i].name), STR("python3")) && k < ARRAY_LEN(kinds); k++) {
      char path[DATA_PATH_SIZE];
      snprintf(path, sizeof(path), "%s/%.100s/%s", lib, l.v.p[i].name, kinds[k]);
      read_python(root, path, p);
    }
}

static void read_node(int root, const char *where, struct packages *p)
{
  cleanup_fd int dir = path_open_in(root, where, O_RDONLY | O_DIRECTORY, 0);
  cleanup_list struct tree_list l = {0};
  if (dir < 0 || tree_list(dir, &l))
    return;
  for (size_t i = 0; i < l.v.n; i++) {
    cleanup_buf struct buf b = BUF_INIT(MANIFEST_MAX);
    cleanup_arena struct arena a = ARENA_INIT(8 * MANIFEST_MAX);
    char path[DATA_PATH_SIZE];
    snprintf(path, sizeof(path), "%s/%.200s/package.json", where, l.v.p[i].name);
    struct json *j = read_in(root, path, &b) ? NULL : json_read(&a, buf_str(&b), JSON_REPAIR_UTF8, NULL);
    if (j)
      add(p, "npm", json_text(json_get(j, "name"), str_of(l.v.p[i].name)), json_text(json_get(j, "version"), STR("")));
  }
}

static int by_name(const void *a, const void *b)
{
  const struct package *x = a, *y = b;
  int d = strcmp(x->name, y->name);
  return d ? d : strcmp(x->version, y->version);
}

void packages_read(int root, struct packages *out)
{
  static const char *const libs[] = {"usr/lib", "usr/local/lib", "home/user/.local/lib", "root/.local/lib"};
  static const char *const nodes[] = {"usr/lib/node_modules", "usr/local/lib/node_modules"};
  *out = (struct packages){0};
  read_dpkg(root, out);
  for (size_t i = 0; i < ARRAY_LEN(libs); i++)
    read_pythons(root, libs[i], out);
  for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
    read_node(root, nodes[i], out);
  if (out->v.n)
    qsort(out->v.p, out->v.n, sizeof(*out->v.p), by_name);
}

void packages_free(struct packages *p)
{
  for (size_t i = 0; i < p->v.n; i++) {
    free(p->v.p[i].name);
    free(p->v.p[i].version);
  }
  vec_free(&p->v);
}
