/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h - the command line: one file per sub-command, each a function that returns the exit status. */
#ifndef CLOCHE_CLI_H
#define CLOCHE_CLI_H

#include "base/base.h"
#include "cli/remote/suggest.h"

struct command {
  const char *name, *summary;
  int (*run)(int argc, char **argv); /* argv[0] is the sub-command */
};

int serve_main(int argc, char **argv);
int config_main(int argc, char **argv);
int key_main(int argc, char **argv);
int volume_main(int argc, char **argv);
int team_main(int argc, char **argv);
int secret_main(int argc, char **argv);
int template_main(int argc, char **argv);
int ps_main(int argc, char **argv);
int kill_main(int argc, char **argv);
int pause_main(int argc, char **argv);
int resume_main(int argc, char **argv);
int fork_main(int argc, char **argv);
int logs_main(int argc, char **argv);
int net_main(int argc, char **argv);
int audit_command_main(int argc, char **argv);
int backup_main(int argc, char **argv);
int restore_main(int argc, char **argv);
int events_main(int argc, char **argv);
int shell_main(int argc, char **argv);
int open_main(int argc, char **argv);
int doctor_main(int argc, char **argv);
int bench_main(int argc, char **argv);
int mcp_command_main(int argc, char **argv);
int tls_main(int argc, char **argv);
int store_main(int argc, char **argv);
int node_main(int argc, char **argv);
int version_main(int argc, char **argv);

/* Says what is wrong on standard error and returns 2. */
int usage_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
