/* SPDX-License-Identifier: Apache-2.0 */
/* fs_rpc.c - filesystem.Filesystem without the watchers. Single files are looked at on the loop; listings and
 * deletions, which may be long, on a worker thread that holds the call. */
#include "agent/envd/entry.h"
#include "agent/envd/resolve.h"
#include "agent/envd/service.h"
#include "agent/thread_pool.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define PATH_BUF ((size_t)64 << 10)

static const struct msg_empty empty;

/* PyPI e2b up to 1.5.0 refuses an answer with a field that it does not know. It and all up to 1.5.6 call themselves by
 * this name and show no more of an entry than name, type and path. */
static bool peer_is_strict(const struct rpc_call *c)
{
  return str_is(rpc_header(c, "User-Agent"), "connect-python");
}

static void entry_strip(struct msg_entry *e)
{
  *e = (struct msg_entry){.name = e->name, .type = e->type, .path = e->path};
}

static void entries_strip(struct rpc_list *entries)
{
  struct msg_entry **each = entries->p;
  for (size_t i = 0; i < entries->n; i++)
    entry_strip(each[i]);
}

static void reply_entry(struct rpc_call *c, const char *path)
{
  cleanup_userdb struct userdb db;
  struct msg_entry entry;
  struct msg_entry_response msg = {&entry};
  userdb_load(&db);
  int rc = entry_fill(path, &db, rpc_arena(c), &entry);
  if (rc == 0 && peer_is_strict(c))
    entry_strip(&entry);
  if (rc == 0)
    rpc_reply(c, &msg);
  else if (rc == -ENOENT || rc == -ENOTDIR)
    rpc_fail(c, RPC_NOT_FOUND, "file not found: %s", path);
  else
    rpc_fail(c, RPC_INTERNAL, "error getting file info of %s: %s", path, strerror(-rc));
}

static void stat_path(struct rpc_call *c, const void *request)
{
  const struct msg_path *req = request;
  struct user user;
  cleanup_buf struct buf path = BUF_INIT(PATH_BUF);
  if (service_user(c, &user) == 0 && service_path(c, req->path, &user, &path) == 0)
    reply_entry(c, buf_z(&path));
}

static void make_dir(struct rpc_call *c, const void *request)
{
  const struct msg_path *req = request;
  struct user user;
  struct stat st;
  cleanup_buf struct buf path = BUF_INIT(PATH_BUF);
  if (service_user(c, &user) < 0 || service_path(c, req->path, &user, &path) < 0)
    return;
  const char *dir = buf_z(&path);
  if (stat(dir, &st) == 0) {
    if (S_ISDIR(st.st_mode))
      rpc_fail(c, RPC_ALREADY_EXISTS, "directory already exists: %s", dir);
    else
      rpc_fail(c, RPC_INVALID_ARGUMENT, "path already exists but it is not a directory: %s", dir);
    return;
  }
  int rc = errno == ENOENT ? resolve_mkdirs(dir, &user) : -errno;
  if (rc < 0)
    rpc_fail(c, RPC_INTERNAL, "error creating directory %s: %s", dir, strerror(-rc));
  else
    reply_entry(c, dir);
}

static void move(struct rpc_call *c, const void *request)
{
  const struct msg_move *req = request;
  struct user user;
  struct stat st;
  cleanup_buf struct buf from = BUF_INIT(PATH_BUF), to = BUF_INIT(PATH_BUF);
  if (service_user(c, &user) < 0 || service_path(c, req->source, &user, &from) < 0 ||
      service_path(c, req->destination, &user, &to) < 0)
    return;
  const char *source = buf_z(&from), *destination = buf_z(&to);
  if (lstat(source, &st) < 0 && (errno == ENOENT || errno == ENOTDIR)) {
    rpc_fail(c, RPC_NOT_FOUND, "source file not found: %s", source);
    return;
  }
  int rc = resolve_parents(destination, &user);
  if (rc < 0)
    rpc_fail(c, RPC_INTERNAL, "error creating parents of %s: %s", destination, strerror(-rc));
  else if (rename(source, destination) < 0)
    rpc_fail(c, errno == ENOENT ? RPC_NOT_FOUND : RPC_INTERNAL, "error moving %s to %s: %s", source, destination,
             strerror(errno));
  else
    reply_entry(c, destination);
}

/* ---- on a worker ---- */

struct job {
  struct work work;
  struct rpc_call *call;
  char *path;
  uint32_t depth;
  int code;
  struct msg_entries found;
};

static void job_free(struct job *job)
{
  rpc_release(job->call);
  free(job->path);
  free(job);
}

static void job_start(struct rpc_call *c, const char *path, uint32_t depth, void (*run)(struct work *),
                      void (*done)(struct work *))
{
  struct job *job = xcalloc(1, sizeof(*job));
  job->work = (struct work){.run = run, .done = done, .data = job};
  job->call = c;
  job->path = xstrdup(path);
  job->depth = depth;
  rpc_hold(c);
  if (work_queue(&job->work) == 0)
    return;
  run(&job->work); /* no thread to be had: better slowly here than not at all */
  done(&job->work);
}

static void remove_work(struct work *work)
{
  struct job *job = work->data;
  struct stat st;
  if (lstat(job->path, &st) < 0)
    job->code = -errno;
  else
    job->code = path_remove_tree(AT_FDCWD, job->path);
}

static void remove_done(struct work *work)
{
  struct job *job = work->data;
  if (job->code < 0 && job->code != -ENOENT && job->code != -ENOTDIR)
    rpc_fail(job->call, RPC_INTERNAL, "error removing %s: %s", job->path, strerror(-job->code));
  else
    rpc_reply(job->call, &empty);
  job_free(job);
}

static void remove_path(struct rpc_call *c, const void *request)
{
  const struct msg_path *req = request;
  struct user user;
  struct stat st;
  cleanup_buf struct buf buf = BUF_INIT(PATH_BUF);
  if (service_user(c, &user) < 0 || service_path(c, req->path, &user, &buf) < 0)
    return;
  const char *path = buf_z(&buf);
  if (lstat(path, &st) == 0 && !S_ISDIR(st.st_mode) && unlink(path) == 0)
    rpc_reply(c, &empty);
  else
    job_start(c, path, 0, remove_work, remove_done);
}

static void list_work(struct work *work)
{
  struct job *job = work->data;
  struct stat st;
  if (stat(job->path, &st) < 0) {
    job->code = -errno;
    return;
  }
  if (!S_ISDIR(st.st_mode)) {
    job->code = -ENOTDIR;
    return;
  }
  cleanup_userdb struct userdb db;
  userdb_load(&db);
  job->code = entry_walk(job->path, job->depth, &db, rpc_arena(job->call), &job->found.entries);
}

static void list_done(struct work *work)
{
  struct job *job = work->data;
  struct rpc_call *c = job->call;
  const char *path = job->path;
  switch (job->code) {
  case 0:
    if (peer_is_strict(c))
      entries_strip(&job->found.entries);
    rpc_reply(c, &job->found);
    break;
  case -ENOENT:
    rpc_fail(c, RPC_NOT_FOUND, "directory not found: %s", path);
    break;
  case -ENOTDIR:
    rpc_fail(c, RPC_INVALID_ARGUMENT, "path is not a directory: %s", path);
    break;
  case -ELOOP:
    rpc_fail(c, RPC_FAILED_PRECONDITION, "cyclic symlink or chain of more than 255 links at %s", path);
    break;
  case -ENOMEM:
    rpc_fail(c, RPC_RESOURCE_EXHAUSTED, "the listing of %s is too large", path);
    break;
  default:
    rpc_fail(c, RPC_INTERNAL, "error reading directory %s: %s", path, strerror(-job->code));
  }
  job_free(job);
}

static void list_dir(struct rpc_call *c, const void *request)
{
  const struct msg_list *req = request;
  struct user user;
  cleanup_buf struct buf path = BUF_INIT(PATH_BUF);
  if (service_user(c, &user) < 0 || service_path(c, req->path, &user, &path) < 0)
    return;
  job_start(c, buf_z(&path), req->depth ? req->depth : 1, list_work, list_done);
}

const struct rpc_method fs_methods[] = {
    {"/filesystem.Filesystem/Stat", RPC_UNARY, &schema_path, &schema_entry_response, stat_path, NULL},
    {"/filesystem.Filesystem/MakeDir", RPC_UNARY, &schema_path, &schema_entry_response, make_dir, NULL},
    {"/filesystem.Filesystem/Move", RPC_UNARY, &schema_move, &schema_entry_response, move, NULL},
    {"/filesystem.Filesystem/ListDir", RPC_UNARY, &schema_list, &schema_entries, list_dir, NULL},
    {"/filesystem.Filesystem/Remove", RPC_UNARY, &schema_path, &schema_empty, remove_path, NULL},
    {0},
};
