/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_command.c - `cloche doctor`: what this machine gives to a server, and what to do where it gives less. */
#include "cli/cli.h"
#include "cli/config.h"
#include "doctor/doctor.h"

#include <stdio.h>

static void usage(void)
{
  puts("cloche doctor - what this machine gives to a server\n\nUsage: cloche doctor [--json] [--SETTING VALUE...]\n\n"
       "Tries each thing out and removes every trace. Settings are those of cloche serve (--data, --config, ...). "
       "Lines\n"
       "that begin with 'less' cost something and boxes work without them; 'NO' means that no box can be made; a line\n"
       "with an arrow is the remedy. The last line tells for about how many boxes there is room. --json prints the "
       "same\n"
       "as one JSON object (docs/doctor.md). The exit status is 1 when there is a line with 'NO'.");
}

/* Not made yet: its filesystem is that of the nearest parent. */
static void nearest_directory(const char *data, char place[PATH_MAX])
{
  snprintf(place, PATH_MAX, "%s", data);
  while (access(place, F_OK) && strcmp(place, "/")) {
    struct str up = path_dir(str_of(place));
    place[up.n] = 0;
    if (up.p != place)
      snprintf(place, PATH_MAX, "/");
  }
}

static int write_json(const struct doctor_report *r)
{
  cleanup_buf struct buf b = BUF_INIT(DOCTOR_JSON_MAX);
  doctor_put_json(r, &b);
  return fwrite(b.p, 1, b.n, stdout) == b.n && putchar('\n') != EOF ? 0 : -1;
}

int doctor_main(int argc, char **argv)
{
  static struct config c;
  static struct doctor_report report;
  char place[PATH_MAX];
  struct err err = ERR_NONE;
  bool json = false;
  int n = 0;
  for (int i = 0; i < argc; i++) /* what is left are settings */
    if (i > 0 && !strcmp(argv[i], "--json"))
      json = true;
    else
      argv[n++] = argv[i];
  if (config_read(&c, n, argv, &err))
    return usage_error("%s; see cloche doctor --help", err.msg);
  if (c.help) {
    usage();
    return 0;
  }
  if (geteuid() != 0)
    return usage_error("doctor needs root, as the server does");
  nearest_directory(c.warden.data, place);
  doctor_examine(&(struct doctor_place){.data = place,
                                        .criu = c.warden.criu,
                                        .microvm = c.warden.microvm,
                                        .microvm_wanted = c.warden.isolation_microvm,
                                        .runtime = c.warden.runtime,
                                        .net_pool = c.warden.net_pool,
                                        .id_base = c.warden.id_base,
                                        .reserve_mb = c.warden.disk_creates_mb,
                                        .boxes_max = c.warden.boxes_max,
                                        .internet = c.warden.internet},
                 &report);
  if (!json)
    doctor_print(&report);
  else if (write_json(&report))
    return usage_error("standard output can't be written");
  return doctor_health(&report) == JAIL_BROKEN ? 1 : 0;
}
