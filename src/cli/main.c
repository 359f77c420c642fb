/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - finds the sub-command. */
#include "cli/admin_client.h"
#include "cli/cli.h"
#include "cli/completion.h"
#include "cli/remote/commands.h"
#include "warden/build/build_diff.h"
#include "warden/build/registry_auth.h"

#include <stdarg.h>
#include <stdio.h>

static int completion_main(int argc, char **argv);
static int man_main(int argc, char **argv);

static const struct command commands[] = {
    {"serve", "run the server", serve_main},
    {"config", "check and show the server's settings", config_main},
    {"key", "make, list and delete API keys", key_main},
    {"team", "teams and their limits", team_main},
    {"secret", "values for requests of boxes, and their master key", secret_main},
    {"volume", "volumes: make, list, copy, measure, back up", volume_main},
    {"template", "templates: build, tags, history, diff, export, gc", template_main},
    {"ps", "list the boxes of this machine", ps_main},
    {"kill", "end a box", kill_main},
    {"pause", "pause a box", pause_main},
    {"resume", "resume a box", resume_main},
    {"fork", "copy a running box", fork_main},
    {"logs", "show what a box printed", logs_main},
    {"net", "show where a box connected", net_main},
    {"events", "show what happened to boxes, and what happens", events_main},
    {"backup", "copy all that must survive, while the server runs", backup_main},
    {"restore", "make a data directory of such a copy", restore_main},
    {"audit", "show who asked the API for what", audit_command_main},
    {"shell", "a terminal in a box, or one command there", shell_main},
    {"open", "a link that signs a browser in to the web console", open_main},
    {"doctor", "check what this host supports", doctor_main},
    {"bench", "measure a server as a client sees it", bench_main},
    {"mcp", "sandboxes as tools of the Model Context Protocol, on standard input and output", mcp_command_main},
    {"node", "this machine: list, drain before maintenance, ready again", node_main},
    {"store", "move the server's rows between SQLite and PostgreSQL", store_main},
    {"tls", "make a private certificate authority and a certificate for https", tls_main},
    {"completion", "completions for bash, zsh or fish", completion_main},
    {"man", "write the manual pages into a directory", man_main},
    {"version", "print the version", version_main},
};

/* Commands for a server that is reached by its URL. Of a name that is in both tables this one is meant when the command
 * line names a server (--url, --key, --profile), when the user isn't root, or when no server runs here and the
 * environment names one. */
static const struct command_spec *const remote_commands[] = {
    &run_spec,      &exec_spec, &new_spec,    &copy_spec,  &list_spec,  &cat_spec,      &edit_spec,
    &login_spec,    &ps_spec,   &top_spec,    &kill_spec,  &pause_spec, &resume_spec,   &fork_spec,
    &snapshot_spec, &logs_spec, &events_spec, &shell_spec, &port_spec,  &template_spec, &volume_spec,
    &secret_spec,   &key_spec,  &team_spec,   &node_spec,  &open_spec,
};

static const struct command_tables tables = {commands, ARRAY_LEN(commands), remote_commands,
                                             ARRAY_LEN(remote_commands)};

static int completion_main(int argc, char **argv)
{
  return completion_run(&tables, argc, argv);
}

static int man_main(int argc, char **argv)
{
  return manual_run(&tables, argc, argv);
}

/* A message may name files of sandboxes: whatever could move a terminal's cursor is shown as a question mark. */
int usage_error(const char *fmt, ...)
{
  cleanup_buf struct buf text = BUF_INIT(1 << 20);
  va_list ap;
  va_start(ap, fmt);
  buf_vaddf(&text, fmt, ap);
  va_end(ap);
  fputs("cloche: ", stderr);
  for (size_t i = 0; i < text.n; i++) {
    unsigned char c = (unsigned char)text.p[i];
    fputc(c == '\n' || c == '\t' || (c >= 0x20 && c != 0x7f) ? c : '?', stderr);
  }
  fputc('\n', stderr);
  return 2;
}

int version_main(int argc, char **argv)
{
  puts("cloche " CLOCHE_VERSION);
  return 0;
}

static void help(FILE *to)
{
  fputs("cloche - run AI-generated code under glass\n\n"
        "Usage: cloche COMMAND [OPTION...]\n\nCommands:\n",
        to);
  for (size_t i = 0; i < ARRAY_LEN(remote_commands); i++)
    if (!local_of(&tables, remote_commands[i]->name))
      fprintf(to, "  %-10s %s\n", remote_commands[i]->name, remote_commands[i]->summary);
  for (size_t i = 0; i < ARRAY_LEN(commands); i++)
    fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].summary);
  fputs("\n'cloche COMMAND --help' tells more about one.\n", to);
}

static int unknown(const char *word)
{
  const char *names[ARRAY_LEN(commands) + ARRAY_LEN(remote_commands)];
  size_t n = 0;
  for (size_t i = 0; i < ARRAY_LEN(commands); i++)
    names[n++] = commands[i].name;
  for (size_t i = 0; i < ARRAY_LEN(remote_commands); i++)
    names[n++] = remote_commands[i]->name;
  const char *near = did_you_mean(word, names, n);
  return near ? usage_error("no command '%s'; did you mean '%s'?", word, near)
              : usage_error("no command '%s'; 'cloche --help' lists them", word);
}

static bool set(const char *name)
{
  return getenv(name) && *getenv(name);
}

/* Whether a server may run here: its socket is there, or the command line names its directory. */
static bool server_here(int argc, char **argv)
{
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "--data") || !strncmp(argv[i], "--data=", 7))
      return true;
  return admin_server_there();
}

static bool elsewhere(const struct command_spec *spec, int argc, char **argv)
{
  if (geteuid() != 0 || spec_names_server(spec, argc, argv))
    return true;
  return (set("CLOCHE_KEY") || set("E2B_API_KEY") || set("CLOCHE_ADMIN_TOKEN")) && !server_here(argc, argv);
}

static int help_of_both(const struct command *local, const struct command_spec *remote)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20), text = BUF_INIT(1 << 20);
  spec_help(remote, &out);
  buf_addz(&out, "\nFor root on the server itself, without --url, --key and --profile:\n\n");
  if (!local_help(local, &text))
    buf_adds(&out, buf_str(&text));
  return fd_write_all(1, out.p, out.n) ? 1 : 0;
}

int main(int argc, char **argv)
{
  if (argc < 2) {
    help(stderr);
    return 2;
  }
  if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
    help(stdout);
    return 0;
  }
  if (!strcmp(argv[1], "--version"))
    return version_main(argc, argv);
  if (!strcmp(argv[1], REGISTRY_AUTH_COMMAND)) /* the warden's own, not for people */
    return registry_auth_main(argc - 1, argv + 1);
  if (!strcmp(argv[1], BUILD_DIFF_COMMAND))
    return build_diff_main();
  const struct command *local = local_of(&tables, argv[1]);
  const struct command_spec *remote = spec_of(&tables, argv[1]);
  if (local && remote && argc > 2 && (!strcmp(argv[2], "--help") || !strcmp(argv[2], "-h")))
    return help_of_both(local, remote);
  if (remote && (!local || elsewhere(remote, argc - 1, argv + 1)))
    return remote_main(remote, argc - 1, argv + 1);
  return local ? local->run(argc - 1, argv + 1) : unknown(argv[1]);
}
