/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_command.c - `cloche mcp`: a session of the Model Context Protocol on standard input and output, for programs that
 * start their servers themselves. */
#include "cli/cli.h"
#include "mcp/lines.h"

#include <cloche.h>
#include <getopt.h>
#include <stdio.h>

static const char help[] =
    "Usage: cloche mcp [OPTION...]\n\n"
    "Serves sandboxes as tools of the Model Context Protocol (MCP), one JSON-RPC message per line on standard input "
    "and\n"
    "output: run_code, run_command, files, sandboxes, build_template. The first call of a tool makes the session's\n"
    "sandbox. The end of the input ends the session.\n\n"
    "  --url URL         address of the server           [CLOCHE_URL, E2B_API_URL]\n"
    "  --key KEY         API key; better by the variable [CLOCHE_KEY, E2B_API_KEY]\n"
    "  --name NAME       a later session of that name goes on in the same sandbox, which is paused meanwhile\n"
    "  --template NAME   what sandboxes are made from    [the server's default]\n"
    "  --end kill|pause  what happens to the sandbox at the session's end [kill; pause with --name]\n"
    "  --idle SECONDS    how long it waits for the next call              [900]\n"
    "  --boxes N         sandboxes that the session may make              [8]\n"
    "  --calls N         calls at once                                    [8]\n"
    "  --help\n";

struct flags {
  struct cloche_config config;
  struct mcp_options options;
};

static int take_number(const char *name, const char *text, uint64_t least, uint64_t most, unsigned *out)
{
  uint64_t v;
  if (str_u64(str_of(text), &v) || v < least || v > most)
    return usage_error("--%s must be from %llu to %llu, not '%s'", name, (unsigned long long)least,
                       (unsigned long long)most, text);
  *out = (unsigned)v;
  return 0;
}

static int take_end(const char *text, enum mcp_end *out)
{
  if (strcmp(text, "kill") != 0 && strcmp(text, "pause") != 0)
    return usage_error("--end must be kill or pause, not '%s'", text);
  *out = strcmp(text, "kill") ? MCP_END_PAUSE : MCP_END_KILL;
  return 0;
}

static int take_flag(struct flags *f, int flag)
{
  switch (flag) {
  case 'u':
    f->config.url = optarg;
    return 0;
  case 'k':
    f->config.key = optarg;
    return 0;
  case 'n':
    f->options.name = str_of(optarg);
    return 0;
  case 't':
    f->options.template_id = str_of(optarg);
    return 0;
  case 'e':
    return take_end(optarg, &f->options.end);
  case 'i':
    return take_number("idle", optarg, 30, 86400, &f->options.idle_s);
  case 'b':
    return take_number("boxes", optarg, 1, 1000, &f->options.limits.boxes);
  case 'c':
    return take_number("calls", optarg, 1, 1000, &f->options.limits.calls);
  default:
    return usage_error("'cloche mcp --help' lists the options");
  }
}

int mcp_command_main(int argc, char **argv)
{
  static const struct option options[] = {
      {"url", required_argument, NULL, 'u'},   {"key", required_argument, NULL, 'k'},
      {"name", required_argument, NULL, 'n'},  {"template", required_argument, NULL, 't'},
      {"end", required_argument, NULL, 'e'},   {"idle", required_argument, NULL, 'i'},
      {"boxes", required_argument, NULL, 'b'}, {"calls", required_argument, NULL, 'c'},
      {"help", no_argument, NULL, 'h'},        {0},
  };
  struct flags f = {.config = {.size = sizeof(f.config), .user_agent = "cloche-mcp", .max_answer = (size_t)64 << 20},
                    .options = {.idle_s = 900, .limits = mcp_limits_default}};
  char id[33];
  for (int flag, r; (flag = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    if (flag == 'h') {
      fputs(help, stdout);
      return 0;
    }
    if ((r = take_flag(&f, flag)))
      return r;
  }
  if (optind < argc)
    return usage_error("'%s' is not an option; 'cloche mcp --help' lists them", argv[optind]);
  random_id(id, sizeof(id) - 1);
  f.options.id = str_of(id);
  log_open("mcp", 2);
  return mcp_lines_run(&f.config, &f.options);
}
