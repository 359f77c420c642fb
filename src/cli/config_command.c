/* SPDX-License-Identifier: Apache-2.0 */
/* config_command.c - `cloche config`: what is wrong with the settings, and where each of them comes from. */
#include "cli/cli.h"
#include "cli/config.h"
#include "cli/config_table.h"

#include <stdio.h>
#include <sys/stat.h>

static const char help[] =
    "cloche config - check and show the server's settings\n\n"
    "Usage: cloche config check [FILE]\n"
    "       cloche config show [--changed] [--config FILE] [--SETTING VALUE...]\n\n"
    "check reads FILE (or " CONFIG_FILE ", where there is one), its drop-ins FILE.d/*.conf and the environment as\n"
    "'cloche serve' would, and tells each mistake with its file, line, value and remedy. The exit status is 0 without\n"
    "mistakes, 1 with some.\n\n"
    "show prints all settings with the source of each value: default, file:line, environment or flag. --changed "
    "leaves\n"
    "out the defaults. The output can be used as a config file, but for the administrator's token, which isn't "
    "shown.\n\n"
    "A running server reads its files again at SIGHUP ('systemctl reload cloche'); docs/settings.md tells which\n"
    "settings that changes.";

static void tell(const char *text, void *arg)
{
  fprintf(stderr, "%s\n", text);
}

/* A token that everybody can read is no secret. */
static void look_at_mode(const struct config *c)
{
  const struct setting *s = setting_find(STR("admin_token"));
  const char *from = c->from[setting_place(s)];
  ptrdiff_t colon = str_rfind(str_of(from), ':');
  char path[DATA_PATH_SIZE];
  struct stat st;
  if (from[0] == '/' && colon > 0 && !str_copyz(str_sub(str_of(from), 0, (size_t)colon), path, sizeof(path)) &&
      !stat(path, &st) && (st.st_mode & 0004))
    printf("warning: %s: everybody can read the administrator's token; chmod 640 %s\n", from, path);
}

static int check(int argc, char **argv)
{
  struct config c;
  char *words[] = {argv[0], (char *)"--config", argc > 1 ? argv[1] : NULL};
  if (argc > 2)
    return usage_error("unexpected word '%s'; see cloche config --help", argv[2]);
  size_t n = config_check(&c, argc > 1 ? 3 : 1, words, tell, NULL);
  if (!n)
    look_at_mode(&c);
  if (n)
    fprintf(stderr, "%zu mistake%s\n", n, n == 1 ? "" : "s");
  else
    printf("settings are valid (%s)\n", c.config_file);
  config_free(&c);
  return n ? 1 : 0;
}

static int show(int argc, char **argv)
{
  struct config c;
  struct err err = ERR_NONE;
  bool changed = false;
  int to = 1;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--changed"))
      changed = true;
    else
      argv[to++] = argv[i];
  }
  int r = config_read(&c, to, argv, &err);
  if (!r)
    config_print(&c, changed);
  config_free(&c);
  return r ? usage_error("%s", err.msg) : 0;
}

int config_main(int argc, char **argv)
{
  if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
    puts(help);
    return 0;
  }
  if (argc >= 2 && !strcmp(argv[1], "check"))
    return check(argc - 1, argv + 1);
  if (argc >= 2 && !strcmp(argv[1], "show"))
    return show(argc - 1, argv + 1);
  return argc >= 2 ? usage_error("no 'config %s'; 'config check' and 'config show' are there", argv[1])
                   : usage_error("which? see cloche config --help");
}
