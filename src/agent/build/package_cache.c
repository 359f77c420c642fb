/* SPDX-License-Identifier: Apache-2.0 */
/* package_cache.c - see package_cache.h.
 *
 * pip, npm and uv keep caches that several processes may use at once, but each user has one of its own: they stumble
 * over files that belong to somebody else. apt locks its directory of archives for the whole run, so every box has its
 * own, with links to the packages of a common pool, and new packages are linked back. `pip` is a shell function that
 * goes through uv where it is there (installers/pip), so is `sudo` for the sake of pip behind it, and pip itself asks
 * our program where another one calls it. */
#include "agent/build/package_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define TOP  "/dev/cloche"
#define POOL TOP "/apt"
#define OURS "/usr/lib/cloche/installers"

/* Functions that bash takes from its environment: a PATH would be lost in a login shell's profile, and kept in a
 * template's variables. */
static const struct {
  const char *name, *value;
} installers[] = {{"BASH_FUNC_pip%%", "() { " OURS "/pip pip \"$@\"\n}"},
                  {"BASH_FUNC_pip3%%", "() { " OURS "/pip pip3 \"$@\"\n}"},
                  {"BASH_FUNC_sudo%%", "() { " OURS "/sudo \"$@\"\n}"}};

static char archives[80]; /* this box's; "" = not made yet */

static bool there(void)
{
  struct stat dev, top;
  return !stat("/dev", &dev) && !stat(TOP, &top) && S_ISDIR(top.st_mode) && dev.st_dev != top.st_dev;
}

static bool package(const char *name)
{
  return str_ends(str_of(name), STR(".deb"));
}

/* Links every package of one directory into another; those that are there stay. */
static void link_packages(const char *from, const char *to)
{
  cleanup_fd int target = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *d = target < 0 ? NULL : opendir(from);
  for (struct dirent *e; d && (e = readdir(d));)
    if (package(e->d_name) && linkat(dirfd(d), e->d_name, target, e->d_name, 0) && errno != EEXIST)
      break;
  if (d)
    closedir(d);
}

/* Directories of boxes that ended hold links only. */
static void clear_ended(void)
{
  DIR *d = opendir(POOL);
  for (struct dirent *e; d && (e = readdir(d));) {
    struct stat st;
    if (!strncmp(e->d_name, "box-", 4) && !fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
        clock_wall_us() / 1000000 - st.st_mtime > 86400)
      path_remove_tree(dirfd(d), e->d_name);
  }
  if (d)
    closedir(d);
}

static void prepare_apt(void)
{
  char mark[20], partial[100], text[400];
  random_id(mark, 12);
  snprintf(archives, sizeof(archives), POOL "/box-%s", mark);
  snprintf(partial, sizeof(partial), "%s/partial", archives);
  if ((mkdir(POOL, 0755) && errno != EEXIST) || mkdir(archives, 0755) || mkdir(partial, 0755))
    return;
  clear_ended();
  link_packages(POOL, archives);
  int n = snprintf(text, sizeof(text),
                   "Dir::Cache::Archives \"%s\";\nAPT::Keep-Downloaded-Packages \"true\";\n"
                   "Binary::apt::APT::Keep-Downloaded-Packages \"true\";\n",
                   archives);
  snprintf(partial, sizeof(partial), "%s/apt.conf", archives);
  file_write_atomic(partial, text, (size_t)n, 0644);
}

void package_cache_harvest(void)
{
  if (archives[0])
    link_packages(archives, POOL);
}

static void set(struct env *env, const char *name, const char *dir, const char *below)
{
  char value[200];
  snprintf(value, sizeof(value), "%s%s", dir, below);
  if (!env_get(env, name))
    env_set(env, str_of(name), str_of(value));
}

static bool program(const char *name)
{
  static const char *const places[] = {"/usr/local/bin", "/usr/bin", "/bin"};
  char path[100];
  for (size_t i = 0; i < ARRAY_LEN(places); i++) {
    snprintf(path, sizeof(path), "%s/%s", places[i], name);
    if (!access(path, X_OK))
      return true;
  }
  return false;
}

/* A name that is no program here must not look like one. */
static void set_installers(struct env *env)
{
  size_t n = program("uv") && program("sudo") ? 3 : 2;
  for (size_t i = 0; i < n; i++)
    env_set(env, str_of(installers[i].name), str_of(installers[i].value));
  if (program("uv"))
    set(env, "PIP_PYTHON", OURS, "/python");
}

void package_cache_env(const struct user *u, struct env *env)
{
  char own[64];
  if (!there())
    return;
  snprintf(own, sizeof(own), TOP "/%u", u->uid);
  if (mkdir(own, 0755) && errno != EEXIST)
    return;
  if (chown(own, u->uid, u->gid))
    return;
  set(env, "PIP_CACHE_DIR", own, "/pip");
  set(env, "UV_CACHE_DIR", own, "/uv");
  set(env, "npm_config_cache", own, "/npm");
  env_set(env, STR("PIP_NO_CACHE_DIR"), STR("")); /* templates set it so that boxes stay small; nothing of this stays */
  set_installers(env);
  if (u->uid)
    return;
  if (!archives[0])
    prepare_apt();
  set(env, "APT_CONFIG", archives, "/apt.conf");
}
