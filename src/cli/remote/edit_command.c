/* SPDX-License-Identifier: Apache-2.0 */
/* edit_command.c - `cloche edit`: a file of a sandbox in the editor of this machine. It is written back when it was
 * changed here and not meanwhile in the sandbox; else the changed copy stays where the message says. */
#include "cli/remote/commands.h"
#include "cli/remote/place.h"
#include "cli/remote/remote.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>

#define EDIT_MAX ((size_t)16 << 20)

struct edit {
  struct remote remote;
  struct cloche_box *box;
  const char *path; /* in the sandbox */
  char *dir, *copy;
};

static int fetch(struct edit *e, struct buf *out)
{
  struct cloche_text *content = NULL;
  if (cloche_read(e->box, e->path, NULL, &content, NULL, &e->remote.error))
    return remote_failed(&e->remote, e->path);
  buf_add(out, content->data, content->len);
  cloche_free(content);
  return buf_failed(out) ? complain("%s is longer than %zu MiB", e->path, EDIT_MAX >> 20) : 0;
}

/* The ending of a name tells editors the language; other parts of it are the sandbox's choice and not needed. */
static const char *ending_of(const char *path)
{
  const char *dot = strrchr(path, '.');
  size_t n = dot ? strspn(dot + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") : 0;
  return n && n < 16 && !dot[1 + n] ? dot : "";
}

static int make_copy(struct edit *e, const struct buf *content)
{
  const char *tmp = getenv("TMPDIR");
  e->dir = xasprintf("%s/cloche-edit.XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (!mkdtemp(e->dir))
    return complain("%s: %s", e->dir, strerror(errno));
  e->copy = xasprintf("%s/file%s", e->dir, ending_of(e->path));
  int r = file_write_atomic(e->copy, content->p, content->n, 0600);
  return r ? complain("%s: %s", e->copy, strerror(-r)) : 0;
}

/* $VISUAL or $EDITOR, which may have arguments: a shell splits them, the file is its own word. */
static int run_editor(const char *copy)
{
  const char *editor = getenv("VISUAL");
  editor = editor && *editor ? editor : getenv("EDITOR");
  cleanup_free char *line = xasprintf("%s \"$1\"", editor && *editor ? editor : "vi");
  int how = 0;
  pid_t pid = fork();
  if (!pid) {
    execl("/bin/sh", "sh", "-c", line, "sh", copy, (char *)NULL);
    _exit(127);
  }
  while (pid > 0 && waitpid(pid, &how, 0) < 0 && errno == EINTR)
    ;
  return pid > 0 && WIFEXITED(how) && !WEXITSTATUS(how) ? 0 : complain("the editor failed; %s stays", copy);
}

static int write_back(struct edit *e, const struct buf *before)
{
  cleanup_buf struct buf after = BUF_INIT(EDIT_MAX), now = BUF_INIT(EDIT_MAX);
  int r = file_read(e->copy, &after);
  if (r)
    return complain("%s: %s", e->copy, strerror(-r));
  if (str_eq(buf_str(&after), buf_str(before))) {
    fputs("cloche: nothing was changed\n", stderr);
    return 0;
  }
  if (fetch(e, &now))
    return complain("your copy is %s", e->copy);
  if (!str_eq(buf_str(&now), buf_str(before)))
    return complain("%s was changed in the sandbox meanwhile; your copy is %s", e->path, e->copy);
  if (cloche_write(e->box, e->path, after.p ? after.p : "", after.n, NULL, NULL, NULL, &e->remote.error)) {
    remote_failed(&e->remote, e->path);
    return complain("your copy is %s", e->copy);
  }
  return 0;
}

static int edit_file(struct edit *e)
{
  cleanup_buf struct buf before = BUF_INIT(EDIT_MAX);
  int status = fetch(e, &before);
  status = status ? status : make_copy(e, &before);
  status = status ? status : run_editor(e->copy);
  status = status ? status : write_back(e, &before);
  if (!status) {
    unlink(e->copy);
    rmdir(e->dir);
  }
  free(e->copy);
  free(e->dir);
  return status;
}

static int edit_run(struct args *args)
{
  struct edit e = {0};
  struct place at;
  place_parse(args->words[0], &at);
  if (!*at.id)
    return complain("'%s' names no sandbox: write ID:PATH", args->words[0]), EXIT_USAGE;
  int status = remote_open(args, &e.remote);
  if (status)
    return status;
  e.path = at.path;
  if (!(status = remote_box(&e.remote, at.id, &e.box))) {
    status = edit_file(&e);
    cloche_box_free(e.box);
  }
  remote_close(&e.remote);
  return status;
}

const struct command_spec edit_spec = {
    .name = "edit",
    .summary = "edit a file of a sandbox",
    .usage = "ID:PATH",
    .text = "Opens a copy in $VISUAL, $EDITOR or vi and writes it back when it was changed. When the file was changed\n"
            "in the sandbox meanwhile it is left alone, and the copy stays where the message says.",
    .least_words = 1,
    .most_words = 1,
    .run = edit_run,
};
