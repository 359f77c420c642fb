/* SPDX-License-Identifier: Apache-2.0 */
/* zygote_key.c - see zygote_key.h. In doubt a layer counts: a Python too many costs memory, a wrong one costs trust. */
#include "warden/warm/zygote_key.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <stdio.h>

#define ENV_MAX ((size_t)1 << 20)

/* ---- layers ---- */

/* A directory and the names in it that count: by their beginnings, or all but some. */
struct watch {
  const char *dir;
  const char *const *names;
  bool others; /* the names are those that do not count */
};

static const char *const top_names[] = {"lib", "bin", NULL};
static const char *const usr_names[] = {"pyvenv", "lib32", "lib64", "libx32", NULL};
static const char *const bin_names[] = {"python", "pyvenv", NULL};
static const char *const lib_but[] = {"node_modules", NULL};
static const char *const etc_names[] = {"ld.so",  "python",  "matplotlib", "ipython", "jupyter", "alternatives",
                                        "locale", "default", "localtime",  "fonts",   "ssl",     NULL};
static const char *const root_names[] = {".local", ".config", ".ipython", ".jupyter", ".matplotlib", ".py", NULL};
static const char *const share_names[] = {"matplotlib", "fonts", "fontconfig", "zoneinfo", "python", "jupyter", NULL};
static const struct watch watches[] = {
    {".", top_names, false},    {"usr", usr_names, false},       {"usr/bin", bin_names, false},
    {"usr/lib", lib_but, true}, {"usr/local", usr_names, false}, {"usr/local/lib", lib_but, true},
    {"etc", etc_names, false},  {"root", root_names, false},     {"usr/share", share_names, false}};

static bool counts(const struct watch *w, const char *name)
{
  if (!strcmp(name, ".") || !strcmp(name, ".."))
    return false;
  for (const char *const *n = w->names; *n; n++)
    if (w->others ? !strcmp(name, *n) : str_starts(str_of(name), str_of(*n)))
      return !w->others;
  return w->others;
}

/* A directory that hides or replaces what is below it. */
static bool covers(int fd)
{
  char value[4];
  ssize_t n = fgetxattr(fd, "trusted.overlay.opaque", value, sizeof(value));
  return n > 0 || fgetxattr(fd, "trusted.overlay.redirect", value, 0) >= 0;
}

static bool touched_here(int top, const struct watch *w)
{
  struct stat st;
  cleanup_fd int fd = openat(top, w->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0)
    return !fstatat(top, w->dir, &st, AT_SYMLINK_NOFOLLOW); /* a link, a file or a mark that it is gone */
  if (strcmp(w->dir, ".") && covers(fd))
    return true;
  DIR *d = fdopendir(fd);
  if (!d)
    return true;
  steal_fd(&fd);
  bool found = false;
  for (struct dirent *e; !found && (e = readdir(d));)
    found = counts(w, e->d_name);
  closedir(d);
  return found;
}

bool zygote_key_touched(const char *layer)
{
  cleanup_fd int top = open(layer, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool found = top < 0;
  for (size_t i = 0; !found && i < ARRAY_LEN(watches); i++)
    found = touched_here(top, &watches[i]);
  return found;
}

static void find_layers(struct zygote_key *f, struct str layers)
{
  char path[PATH_MAX];
  struct str rest = layers, line, below;
  for (; rest.n; rest = below) {
    str_cut(rest, '\n', &line, &below);
    if (!below.n || str_copyz(line, path, sizeof(path)) || zygote_key_touched(path))
      break;
  }
  buf_adds(&f->layers, rest);
}

/* ---- variables ---- */

static bool read_early(struct str name)
{
  static const char *const first[] = {"PYTHON",  "LD_",  "MPL",    "MATPLOTLIB", "OMP_", "KMP_",   "OPENBLAS", "MKL_",
                                      "BLAS",    "GOTO", "VECLIB", "NUM",        "NPY_", "PANDAS", "IPYTHON",  "XDG_",
                                      "JUPYTER", "LC_",  "LANG",   "TZ",         "HOME", "MALLOC", "GLIBC_",   "TMP",
                                      "TEMP",    "FONT", "ARROW_", "CUDA",       "QT_",  "SSL_",   "DISPLAY"};
  for (size_t i = 0; i < ARRAY_LEN(first); i++)
    if (str_starts(name, str_of(first[i])))
      return true;
  return false;
}

static int by_name(const void *a, const void *b)
{
  const struct json *const *x = a, *const *y = b;
  size_t n = MIN((*x)->key.n, (*y)->key.n);
  int order = memcmp((*x)->key.p, (*y)->key.p, n);
  return order ? order : ((*x)->key.n > (*y)->key.n) - ((*x)->key.n < (*y)->key.n);
}

static void find_env(struct zygote_key *f, struct str config)
{
  cleanup_arena struct arena a = ARENA_INIT(8 << 20);
  struct json *env = json_get(json_read(&a, config, 0, NULL), "env");
  VEC(const struct json *) list = {0};
  for (const struct json *k = json_is(env, JSON_OBJECT) ? env->kids : NULL; k; k = k->next)
    if (k->type == JSON_STRING && read_early(k->key))
      vec_push(&list, k);
  if (list.n)
    qsort(list.p, list.n, sizeof(*list.p), by_name);
  for (size_t i = 0; i < list.n; i++) {
    buf_addf(&f->env, STR_FMT "=" STR_FMT, STR_ARG(list.p[i]->key), STR_ARG(list.p[i]->text));
    buf_addc(&f->env, 0);
  }
  vec_free(&list);
}

/* ---- both ---- */

void zygote_key_find(struct zygote_key *f, struct str layers, struct str config)
{
  buf_init(&f->layers, (size_t)2 << 20);
  buf_init(&f->env, ENV_MAX);
  find_layers(f, layers);
  find_env(f, config);
}

void zygote_key_hash(const struct zygote_key *f, char key[2 * SHA256_LEN + 1])
{
  struct sha256 sum;
  uint8_t digest[SHA256_LEN];
  uint64_t n = f->layers.n;
  sha256_init(&sum);
  sha256_add(&sum, &n, sizeof(n));
  sha256_add(&sum, f->layers.p, f->layers.n);
  sha256_add(&sum, f->env.p, f->env.n);
  sha256_end(&sum, digest);
  hex_encode(digest, sizeof(digest), key);
}

void zygote_key_free(struct zygote_key *f)
{
  buf_free(&f->layers);
  buf_free(&f->env);
}
