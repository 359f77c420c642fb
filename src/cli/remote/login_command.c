/* SPDX-License-Identifier: Apache-2.0 */
/* login_command.c - `cloche login`: asks for a server's address and an API key, tries them, and keeps them in a profile
 * (cli/remote/profile.h). From a terminal the key is read without echo. */
#include "cli/remote/commands.h"
#include "cli/remote/remote.h"

#include <stdio.h>
#include <termios.h>

#define LINE_MOST 2048

/* One line of standard input, without its end. Byte by byte: what follows is for the next question. */
static int read_line(char line[LINE_MOST])
{
  size_t n = 0;
  for (char c; n + 1 < LINE_MOST && read(0, &c, 1) == 1 && c != '\n';)
    line[n++] = c;
  while (n && (line[n - 1] == '\r' || line[n - 1] == ' '))
    n--;
  line[n] = 0;
  return n ? 0 : -EINVAL;
}

static int ask(const char *question, bool secret, char line[LINE_MOST])
{
  struct termios before;
  bool terminal = isatty(0) && !tcgetattr(0, &before);
  if (terminal) {
    struct termios quiet = before;
    quiet.c_lflag &= ~(tcflag_t)ECHO;
    if (secret)
      tcsetattr(0, TCSAFLUSH, &quiet);
    fprintf(stderr, "%s: ", question);
  }
  int r = read_line(line);
  if (terminal && secret) {
    tcsetattr(0, TCSAFLUSH, &before);
    fputc('\n', stderr);
  }
  return r ? complain("no %s was given", question) : 0;
}

static int check(const char *url, const char *key)
{
  struct remote r;
  struct cloche_box_list *list = NULL;
  int status = remote_open(&(struct args){.url = url, .key = key}, &r);
  if (status)
    return status;
  if (cloche_list(r.client, CLOCHE_WITH(cloche_list, .limit = 1), &list, NULL, &r.error))
    status = remote_failed(&r, url);
  cloche_free(list);
  remote_close(&r);
  return status;
}

static int login_run(struct args *args)
{
  char url[LINE_MOST], key[LINE_MOST];
  struct err err = ERR_NONE;
  const char *name = args->profile ? args->profile : "default";
  cleanup_free char *path = profile_path();
  if (args->key)
    return complain("the key is asked for: on a command line others see it"), EXIT_USAGE;
  if (!profile_name_ok(name))
    return complain("'%s' is no name of a profile: letters, digits, '.', '_' and '-'", name), EXIT_USAGE;
  if (!path)
    return complain("no HOME to keep a profile in");
  int status = args->url ? str_copyz(str_of(args->url), url, sizeof(url)) : ask("URL", false, url);
  status = status ? EXIT_USAGE : ask("API key", true, key);
  status = status ? status : check(url, key);
  if (!status && profile_store(path, name, url, key, &err))
    status = complain("%s", err.msg);
  explicit_bzero(key, sizeof(key));
  if (!status)
    fprintf(stderr, "cloche: profile '%s' is kept in %s\n", name, path);
  return status;
}

const struct command_spec login_spec = {
    .name = "login",
    .summary = "keep a server's address and API key in a profile",
    .usage = "",
    .text = "Asks for the address (unless --url has it) and the key, tries them and keeps them in\n"
            "~/.config/cloche/profiles, which only you may read. Commands use the profile 'default' where neither\n"
            "options nor the environment name a server; --profile makes and uses others.",
    .run = login_run,
};
