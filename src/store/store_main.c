/* SPDX-License-Identifier: Apache-2.0 */
/* store_main.c - the program cloche-store: what `cloche` does with PostgreSQL, in a program that alone is linked with
 * libpq. `cloche store` runs it; its words are those of that command. */
#include "store/postgres_connect.h"
#include "store/store_move.h"
#include "store/store_postgres.h"
#include "store/store_role.h"

#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] =
    "cloche store - the server's rows, in SQLite or in PostgreSQL\n\n"
    "Usage: cloche store migrate --to URL       copy this machine's rows into an empty PostgreSQL database\n"
    "       cloche store migrate --from URL     and back, into a data directory that has none\n\n"
    "The server must not run. The source stays as it is; all rows arrive or none, and are compared with what was\n"
    "read. URL is postgres://USER@HOST:PORT/DATABASE?options, or '-' to use the environment's CLOCHE_STORE. A "
    "password\n"
    "comes from there, PGPASSFILE or ~/.pgpass, never from an argument, which every process of the machine can read.\n"
    "A server that is not on this machine must show a certificate (sslmode=verify-full unless the URL says "
    "otherwise).\n\n"
    "Options: --data DIR   the server's data directory [/var/lib/cloche]";

struct request {
  const char *data, *url;
  bool to;
};

static int complain(const char *text)
{
  fprintf(stderr, "cloche: %s\n", text);
  return 2;
}

static bool holds_password(const char *url)
{
  PQconninfoOption *all = PQconninfoParse(url, NULL);
  bool found = false;
  for (PQconninfoOption *o = all; o && o->keyword; o++)
    found |= !strcmp(o->keyword, "password") && o->val;
  PQconninfoFree(all);
  return found;
}

/* 0, or the exit status. */
static int read_request(int argc, char **argv, struct request *out)
{
  static const struct option options[] = {{"data", required_argument, NULL, 'd'},
                                          {"from", required_argument, NULL, 'f'},
                                          {"to", required_argument, NULL, 't'},
                                          {NULL, 0, NULL, 0}};
  int c, urls = 0;
  opterr = 0;
  while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
    if (c == 'd') {
      out->data = optarg;
      continue;
    }
    if (c != 'f' && c != 't')
      return complain("unknown option; see cloche store --help");
    out->url = optarg;
    out->to = c == 't';
    urls++;
  }
  if (urls != 1 || optind != argc)
    return complain("say either --to URL or --from URL; see cloche store --help");
  if (strcmp(out->url, "-"))
    return holds_password(out->url) ? complain("a password in an argument is visible to every process; leave it out "
                                               "and use PGPASSFILE, or put the URL into CLOCHE_STORE and say '-'")
                                    : 0;
  out->url = getenv("CLOCHE_STORE");
  return out->url ? 0 : complain("CLOCHE_STORE is not set");
}

/* The lock that `cloche serve` holds. */
static int lock_data(const char *data, struct err *err)
{
  cleanup_free char *path = xasprintf("%s/lock", data);
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600); /* open until the end */
  if (fd < 0)
    return err_errno(err, "%s", path);
  return flock(fd, LOCK_EX | LOCK_NB) ? err_set(err, -EBUSY, "a server runs in %s; stop it first", data) : 0;
}

static int open_local(const struct request *q, struct store **out, struct err *err)
{
  cleanup_free char *path = xasprintf("%s/cloche.db", q->data);
  struct stat st;
  int r = lock_data(q->data, err);
  if (!r && q->to && stat(path, &st))
    return err_set(err, -ENOENT, "%s is not there; --data names the server's data directory", path);
  umask(0077);
  return r ? r : store_open(path, out, err);
}

static int migrate(const struct request *q, struct err *err)
{
  struct store *local = NULL, *remote = NULL;
  struct store_moved moved = {0};
  int r = open_local(q, &local, err);
  r = r ? r : store_open_postgres(q->url, &remote, err);
  r = r ? r : store_move(q->to ? local : remote, q->to ? remote : local, &moved, err);
  if (!r && !q->to)
    store_checkpoint(local);
  store_close(local);
  store_close(remote);
  if (!r)
    printf("%llu rows in %llu tables, compared\n", (unsigned long long)moved.rows, (unsigned long long)moved.tables);
  return r;
}

int main(int argc, char **argv)
{
  struct request q = {.data = "/var/lib/cloche"};
  struct err err = ERR_NONE;
  if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "help"))
    return puts(help) < 0 || argc < 2 ? 2 : 0;
  if (!strcmp(argv[1], "role") && argc == 2)
    return store_role_main();
  if (strcmp(argv[1], "migrate"))
    return complain("cloche store knows 'migrate'; see cloche store --help");
  int status = read_request(argc - 1, argv + 1, &q);
  if (status)
    return status;
  if (!postgres_url(q.url))
    return complain("the URL must begin with postgres:// or postgresql://");
  if (!migrate(&q, &err))
    return 0;
  fprintf(stderr, "cloche: %s\n", err.msg);
  return 1;
}
