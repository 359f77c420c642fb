/* SPDX-License-Identifier: Apache-2.0 */
/* role_exec.c - see role_exec.h. */
#include "cli/role_exec.h"

#include "cli/reload.h"
#include "cli/store_program.h"
#include "wire/control.h"
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>

/* The administrator's token is the warden's to know: no other role gets the flag or the variable. */
static bool withheld(const char *role, char **argv, int left, int *words)
{
  static const char *const names[] = {"--admin-token", "--admin_token"};
  *words = 1;
  for (size_t i = 0; i < ARRAY_LEN(names); i++) {
    size_t n = strlen(names[i]);
    if (!strcmp(role, "warden") || strncmp(argv[0], names[i], n) != 0 || (argv[0][n] && argv[0][n] != '='))
      continue;
    *words = argv[0][n] || left < 2 ? 1 : 2;
    return true;
  }
  return false;
}

/* In the child: the control socket on fd 3, its settings on fd 4, nothing else but the standard three. */
static void give_descriptors(int control, int settings)
{
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  setsid(); /* Ctrl-C is the supervisor's to hear */
  _Static_assert(CONTROL_SETTINGS_FD == 4, "the argument of exec_role");
  if (control == CONTROL_SETTINGS_FD)
    control = dup(control);
  if (settings == CONTROL_FD)
    settings = dup(settings);
  dup2(control, CONTROL_FD);
  fcntl(CONTROL_FD, F_SETFD, 0);
  dup2(settings, CONTROL_SETTINGS_FD);
  fcntl(CONTROL_SETTINGS_FD, F_SETFD, 0);
  syscall(SYS_close_range, CONTROL_SETTINGS_FD + 1, ~0u, 0);
}

/* The store process is a program of its own, which gets its URL and nothing of the others' settings. */
void exec_store(const struct config *c, int control)
{
  static char *const argv[] = {(char *)"cloche-store", (char *)"role", NULL}, *const none[] = {NULL};
  char path[PATH_MAX];
  struct err err = ERR_NONE;
  int about = store_description(c, &err);
  if (about < 0 || store_program(path, sizeof(path), &err)) {
    char word[600];
    int n = snprintf(word, sizeof(word), "%c%s", CONTROL_FAILED, err.msg);
    fd_send(control, word, (size_t)MIN(n, (int)sizeof(word) - 1), NULL, 0, 0);
    _exit(1);
  }
  give_descriptors(control, about);
  execve(path, argv, none);
  _exit(127);
}

/* In the child: the same program again. The flags are for those who look at it in ps. */
void exec_role(const struct config *c, int argc, char **args, const char *name, int control)
{
  char **argv = xcalloc((size_t)argc + 6, sizeof(*argv));
  int settings = settings_for_role(c, name);
  int n = 0;
  argv[n++] = (char *)"cloche";
  argv[n++] = (char *)"serve";
  argv[n++] = (char *)"--role";
  argv[n++] = (char *)name;
  argv[n++] = (char *)"--settings-fd";
  argv[n++] = (char *)"4";
  for (int i = 1, words; i < argc; i += words) {
    if (withheld(name, args + i, argc - i, &words))
      continue;
    argv[n++] = args[i];
  }
  if (strcmp(name, "warden") != 0)
    unsetenv("CLOCHE_ADMIN_TOKEN"), unsetenv("CLOCHE_SECRETS_KEY");
  give_descriptors(control, settings);
  execv("/proc/self/exe", argv);
  _exit(127);
}
