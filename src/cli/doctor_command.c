/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_command.c - `cloche doctor`: what this host can and can't do, and what that costs. */
#include "cli/cli.h"
#include "cli/config.h"
#include "jail/jail_doctor.h"

#include <stdio.h>

int doctor_main(int argc, char **argv)
{
  static const char *const words[] = {[JAIL_FINE] = "ok", [JAIL_WORSE] = "less", [JAIL_BROKEN] = "NO"};
  const char *data = "/var/lib/cloche";
  struct jail_check checks[JAIL_CHECKS_MAX];
  if (argc == 2 && !strcmp(argv[1], "--help")) {
    puts("cloche doctor - what this host can and can't do\n\nUsage: cloche doctor [--data DIR]\n\n"
         "Tries each thing out and removes every trace. Lines that begin with 'less' cost something and boxes work "
         "without\n"
         "them; 'NO' means that no box can be made. The exit status is 1 when there is such a line.");
    return 0;
  }
  if (argc == 3 && !strcmp(argv[1], "--data"))
    data = argv[2];
  else if (argc > 1)
    return usage_error("unexpected word '%s'; see cloche doctor --help", argv[1]);
  if (geteuid() != 0)
    return usage_error("doctor needs root, as the server does");
  char place[PATH_MAX];
  snprintf(place, sizeof(place), "%s", data);
  while (access(place, F_OK) && strcmp(place, "/")) { /* not made yet: its filesystem is that of the nearest parent */
    struct str up = path_dir(str_of(place));
    place[up.n] = 0;
    if (up.p != place)
      snprintf(place, sizeof(place), "/");
  }
  static struct config c;
  struct err err = ERR_NONE;
  if (config_read(&c, 1, argv, &err))
    return usage_error("%s", err.msg);
  size_t n =
      jail_doctor(&(struct jail_place){.data = place, .criu = c.warden.criu, .runtime = c.warden.runtime}, checks);
  bool broken = false;
  for (size_t i = 0; i < n; i++) {
    printf("%-5s %-18s %s\n", words[checks[i].health], checks[i].name, checks[i].detail);
    broken |= checks[i].health == JAIL_BROKEN;
  }
  return broken ? 1 : 0;
}
