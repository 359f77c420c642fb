/* SPDX-License-Identifier: Apache-2.0 */
/* open_command.c - `cloche open`: a link that signs a browser in to the console, once. */
#include "cli/admin_client.h"
#include "cli/cli.h"

#include <stdio.h>

static const char help[] =
    "cloche open - a link that signs a browser in to the web console\n\n"
    "Usage: cloche open      print the link; it works once, for minutes (console_code_seconds)\n\n"
    "Options: --data DIR   the server's data directory [/var/lib/cloche]\n"
    "         --team ID    another team than the first one\n"
    "         --url URL    where the browser reaches the server [where it listens]";

/* Takes `--url URL` off the arguments. */
static void take_url(int *argc, char **argv, const char **url)
{
  int n = 1;
  for (int i = 1; i < *argc; i++) {
    if (!strcmp(argv[i], "--url") && i + 1 < *argc)
      *url = argv[++i];
    else
      argv[n++] = argv[i];
  }
  *argc = n;
}

static int server_url(const struct line *l, struct buf *out, struct err *err)
{
  char path[DATA_PATH_SIZE];
  snprintf(path, sizeof(path), "%s/url", l->data);
  int r = file_read(path, out);
  return r ? err_set(err, r, "%s: %s; name the server with --url", path, strerrordesc_np(-r)) : 0;
}

static int run(struct line *l, const char *team, const char *url, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX), where = BUF_INIT(4096);
  int r = url ? buf_addz(&where, url) : server_url(l, &where, err);
  wire_begin(&b, WIRE_LOGIN_CODE, 1, 0);
  if (team[0])
    wire_putz(&b, W_TEAM, team);
  r = r ? r : admin_call(l, &b, NULL, NULL, err);
  if (r)
    return r;
  struct str base = str_trim(buf_str(&where));
  while (base.n && base.p[base.n - 1] == '/')
    base.n--;
  printf(STR_FMT "/#login=" STR_FMT "\n", STR_ARG(base), STR_ARG(wire_get(buf_str(&b), W_SECRET)));
  return 0;
}

int open_main(int argc, char **argv)
{
  struct line l;
  struct err err = ERR_NONE;
  char team[UUID_SIZE] = "";
  const char *url = NULL;
  if (argc > 1 && !strcmp(argv[1], "--help")) {
    puts(help);
    return 0;
  }
  take_url(&argc, argv, &url);
  admin_take_team(&argc, argv, team);
  int r = admin_open(&l, &argc, argv, &err);
  if (!r && argc > 1)
    r = err_set(&err, -EINVAL, "unexpected '%s'; see cloche open --help", argv[1]);
  r = r ? r : run(&l, team, url, &err);
  admin_close(&l);
  return r ? usage_error("%s", err.msg), 1 : 0;
}
