/* SPDX-License-Identifier: Apache-2.0 */
/* copy_command.c - `cloche cp`: files and directories between this machine and a sandbox.
 *
 * A directory goes into a sandbox as a tar archive. Out of a sandbox it comes entry by entry: what an archive of a
 * sandbox holds is the sandbox's choice (links, devices, names), and so only plain files and directories are made here,
 * each relative to an open directory and never through a link. */
#include "cli/remote/commands.h"
#include "cli/remote/place.h"
#include "cli/remote/progress.h"
#include "cli/remote/remote.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define DEPTH_MOST 64

extern char **environ;

struct copy {
  struct remote remote;
  struct cloche_box *box;
  struct progress progress;
  size_t left_out; /* entries that are neither files nor directories */
};

static struct cloche_file transfer(struct copy *c, const char *path)
{
  progress_begin(&c->progress, path_last(path));
  return (struct cloche_file){.size = sizeof(struct cloche_file), .on_progress = progress_bytes, .user = &c->progress};
}

/* ---- into a sandbox ---- */

static bool is_directory(struct copy *c, const char *path)
{
  struct cloche_entry *e = NULL;
  bool directory = !cloche_stat(c->box, path, NULL, &e, NULL, NULL) && e->type == CLOCHE_ENTRY_DIRECTORY;
  cloche_free(e);
  return directory;
}

/* `to`, or where it is a directory (or ends with '/') the name of `from` in it. Owned by the caller. */
static char *target(const char *from, const char *to, bool directory)
{
  struct str name = path_last(from), dir = str_of(to);
  while (dir.n > 1 && dir.p[dir.n - 1] == '/')
    dir.n--;
  bool inside = (directory || (*to && to[strlen(to) - 1] == '/')) && name.n;
  return inside ? xasprintf(STR_FMT "/" STR_FMT, STR_ARG(dir), STR_ARG(name)) : xasprintf(STR_FMT, STR_ARG(dir));
}

static int send_fd(struct copy *c, int fd, const char *name, const char *to)
{
  struct cloche_file options = transfer(c, name);
  enum cloche_code code = cloche_write_fd(c->box, to, fd, &options, NULL, NULL, &c->remote.error);
  progress_end(&c->progress);
  return code ? remote_failed(&c->remote, to) : 0;
}

/* tar -C from -cf - . with its output in *fd. */
static int start_tar(const char *from, pid_t *pid, int *fd)
{
  int ends[2];
  posix_spawn_file_actions_t actions;
  char *const argv[] = {"tar", "-C", (char *)from, "-cf", "-", ".", NULL};
  if (pipe2(ends, O_CLOEXEC))
    return complain("pipe: %s", strerror(errno));
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  int r = posix_spawnp(pid, "tar", &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  *fd = ends[0];
  return r ? (close(ends[0]), complain("tar: %s", strerror(r))) : 0;
}

static int unpack_there(struct copy *c, const char *archive, const char *to)
{
  struct cloche_command_result *result = NULL;
  const struct cloche_pair envs[] = {{"CLOCHE_ARCHIVE", archive}, {"CLOCHE_TO", to}};
  enum cloche_code code = cloche_command(
      c->box, "mkdir -p -- \"$CLOCHE_TO\" && tar --no-same-owner -C \"$CLOCHE_TO\" -xf \"$CLOCHE_ARCHIVE\"",
      CLOCHE_WITH(cloche_command, .envs = envs, .env_count = ARRAY_LEN(envs)), &result,
      CLOCHE_WITH(cloche_call, .timeout_ms = -1), &c->remote.error);
  int status = code ? remote_failed(&c->remote, to) : 0;
  if (!status && result->exit_code)
    status = complain("%s: %s", to, result->err.len ? result->err.data : result->status);
  cloche_free(result);
  return status;
}

static int send_directory(struct copy *c, const char *from, const char *to)
{
  char archive[] = "/tmp/.cloche-cp-........................", *id = archive + sizeof("/tmp/.cloche-cp-") - 1;
  int fd = -1, how = 0;
  pid_t pid;
  random_id(id, 24);
  int status = start_tar(from, &pid, &fd);
  if (status)
    return status;
  status = send_fd(c, fd, from, archive);
  close(fd);
  waitpid(pid, &how, 0);
  if (!status && (!WIFEXITED(how) || WEXITSTATUS(how)))
    status = complain("%s: tar failed", from);
  status = status ? status : unpack_there(c, archive, to);
  cloche_remove(c->box, archive, NULL, NULL, NULL);
  return status;
}

static int copy_in(struct copy *c, const char *from, const struct place *to, bool recursive)
{
  struct stat st;
  cleanup_fd int fd = open(from, O_RDONLY | O_CLOEXEC);
  cleanup_free char *path = target(from, to->path, is_directory(c, to->path));
  if (fd < 0 || fstat(fd, &st))
    return complain("%s: %s", from, strerror(errno));
  if (S_ISDIR(st.st_mode) && !recursive)
    return complain("%s is a directory: -r copies it", from);
  return S_ISDIR(st.st_mode) ? send_directory(c, from, path) : send_fd(c, fd, from, path);
}

/* ---- out of a sandbox ---- */

static int fetch_file(struct copy *c, const char *from, int dir, const char *name, uint32_t mode)
{
  struct cloche_file options = transfer(c, from);
  mode_t wanted = mode & 0111 ? 0777 : 0666;
  cleanup_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, wanted);
  if (fd < 0)
    return complain("%s: %s", name, strerror(errno));
  enum cloche_code code = cloche_read_fd(c->box, from, fd, &options, NULL, NULL, &c->remote.error);
  progress_end(&c->progress);
  return code ? remote_failed(&c->remote, from) : 0;
}

static int fetch_directory(struct copy *c, const char *from, int parent, const char *name, unsigned depth);

static int fetch_entry(struct copy *c, const char *from, int dir, const struct cloche_entry *e, unsigned depth)
{
  cleanup_free char *path = xasprintf("%s/%s", from, e->name);
  if (!name_is_plain(e->name) || e->is_symlink || e->type == CLOCHE_ENTRY_OTHER) {
    c->left_out++;
    return 0;
  }
  return e->type == CLOCHE_ENTRY_DIRECTORY ? fetch_directory(c, path, dir, e->name, depth + 1)
                                           : fetch_file(c, path, dir, e->name, e->mode);
}

static int fetch_directory(struct copy *c, const char *from, int parent, const char *name, unsigned depth)
{
  struct cloche_entry_list *list = NULL;
  int status = 0;
  if (depth > DEPTH_MOST)
    return complain("%s: more than %d directories deep", from, DEPTH_MOST);
  if (mkdirat(parent, name, 0777) && errno != EEXIST)
    return complain("%s: %s", name, strerror(errno));
  /* The outermost name is the user's and may be a link of his own. */
  cleanup_fd int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (depth ? O_NOFOLLOW : 0));
  if (dir < 0)
    return complain("%s: %s", name, strerror(errno));
  if (cloche_list_dir(c->box, from, 1, NULL, &list, NULL, &c->remote.error))
    return remote_failed(&c->remote, from);
  for (size_t i = 0; !status && i < list->count; i++)
    status = fetch_entry(c, from, dir, &list->items[i], depth);
  cloche_free(list);
  return status;
}

/* The name comes from the command line, so a link in its place is followed as cp does. */
static int fetch_one(struct copy *c, const char *from, const char *to)
{
  struct cloche_file options = transfer(c, from);
  cleanup_fd int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0)
    return complain("%s: %s", to, strerror(errno));
  enum cloche_code code = cloche_read_fd(c->box, from, fd, &options, NULL, NULL, &c->remote.error);
  progress_end(&c->progress);
  return code ? remote_failed(&c->remote, from) : 0;
}

static int copy_out(struct copy *c, const struct place *from, const char *to, bool recursive)
{
  struct stat st;
  struct cloche_entry *e = NULL;
  bool directory = !stat(to, &st) && S_ISDIR(st.st_mode);
  cleanup_free char *path = target(from->path, to, directory);
  if (cloche_stat(c->box, from->path, NULL, &e, NULL, &c->remote.error))
    return remote_failed(&c->remote, from->path);
  bool tree = e->type == CLOCHE_ENTRY_DIRECTORY;
  cloche_free(e);
  if (tree && !recursive)
    return complain("%s is a directory: -r copies it", from->path);
  int status = tree ? fetch_directory(c, from->path, AT_FDCWD, path, 0) : fetch_one(c, from->path, path);
  if (c->left_out)
    complain("%zu entries that are neither files nor directories were left out", c->left_out);
  return status;
}

/* ---- the command ---- */

static int copy_run(struct args *args)
{
  struct copy c = {0};
  struct place from, to;
  place_parse(args->words[0], &from);
  place_parse(args->words[1], &to);
  if (!*from.id == !*to.id)
    return complain("one of both must be ID:PATH, the other one local (./NAME where a name has a colon)"), EXIT_USAGE;
  int status = remote_open(args, &c.remote);
  if (status)
    return status;
  if (!(status = remote_box(&c.remote, *from.id ? from.id : to.id, &c.box))) {
    status = *to.id ? copy_in(&c, from.path, &to, args->recursive) : copy_out(&c, &from, to.path, args->recursive);
    cloche_box_free(c.box);
  }
  remote_close(&c.remote);
  return status;
}

static const struct option_spec copy_options[] = {
    {"recursive", 'r', NULL, "directories with all they hold", OPTION_FLAG, offsetof(struct args, recursive), 0, 0},
};

const struct command_spec copy_spec = {
    .name = "cp",
    .summary = "copy files into a sandbox and out of it",
    .usage = "SOURCE TARGET",
    .text = "One of both is ID:PATH, a path in a sandbox; relative ones begin at its user's home directory. Where the\n"
            "target is a directory the copy is made in it. Out of a sandbox come plain files and directories; links\n"
            "and devices are left out and counted. Long transfers show their progress on a terminal.",
    .options = copy_options,
    .option_count = ARRAY_LEN(copy_options),
    .least_words = 2,
    .most_words = 2,
    .run = copy_run,
};
