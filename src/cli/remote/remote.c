/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/remote.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>

#define MESSAGE_MAX ((size_t)1 << 20)

int complain(const char *fmt, ...)
{
  cleanup_buf struct buf raw = BUF_INIT(MESSAGE_MAX), clean = BUF_INIT(MESSAGE_MAX);
  va_list ap;
  va_start(ap, fmt);
  buf_vaddf(&raw, fmt, ap);
  va_end(ap);
  text_clean(&clean, buf_str(&raw), CLEAN_LINES);
  fprintf(stderr, "cloche: " STR_FMT "\n", STR_ARG(buf_str(&clean)));
  return EXIT_FAILED;
}

int print_out(struct buf *out)
{
  int r = buf_failed(out) ? -ENOBUFS : fd_write_all(1, out->p, out->n);
  return r ? complain("standard output: %s", strerror(-r)) : 0;
}

int remote_failed(struct remote *r, const char *what)
{
  const char *message = r->error.message ? r->error.message : cloche_code_name(r->error.code);
  const char *cause = r->error.cause;
  complain("%s%s%s%s%s%s", what ? what : "", what ? ": " : "", message, cause ? " (" : "", cause ? cause : "",
           cause ? ")" : "");
  cloche_error_clear(&r->error);
  return EXIT_FAILED;
}

bool environment_has_key(void)
{
  static const char *const names[] = {"CLOCHE_KEY", "E2B_API_KEY"};
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    if (getenv(names[i]) && *getenv(names[i]))
      return true;
  return false;
}

/* --profile, or the profile "default" where neither an option nor the environment has a key. */
static int use_profile(const struct args *args, struct remote *r, struct cloche_config *config)
{
  struct err err = ERR_NONE;
  const char *name = args->profile ? args->profile : "default";
  cleanup_free char *path = profile_path();
  if (!args->profile && (args->key || environment_has_key()))
    return 0;
  if (!profile_name_ok(name))
    return complain("'%s' is no name of a profile: letters, digits, '.', '_' and '-'", name), EXIT_USAGE;
  if (!path)
    return complain("no HOME to look for profiles in"), EXIT_FAILED;
  int code = profile_load(path, name, &r->profile, &err);
  if (code == -ENOENT && !args->profile)
    return complain("which server? 'cloche login' keeps one, or set CLOCHE_URL and CLOCHE_KEY"), EXIT_USAGE;
  if (code)
    return complain("%s", err.msg);
  /* A key goes to the server that it was given for and to no other. */
  if (args->url && strcmp(args->url, r->profile.url) != 0)
    return complain("profile '%s' is of %s, not of %s: give a key for that", name, r->profile.url, args->url),
           EXIT_USAGE;
  config->url = r->profile.url;
  config->key = args->key ? args->key : r->profile.key;
  return 0;
}

int remote_open(const struct args *args, struct remote *r)
{
  struct cloche_config config = {
      .size = sizeof(config), .url = args->url, .key = args->key, .user_agent = "cloche-cli", .max_answer = PRINT_MAX};
  *r = (struct remote){.signals = -1};
  signal(SIGPIPE, SIG_IGN);
  int status = use_profile(args, r, &config);
  if (!status && cloche_open(&config, &r->client, &r->error))
    status = remote_failed(r, NULL);
  if (status)
    profile_free(&r->profile);
  return status;
}

void remote_close(struct remote *r)
{
  cloche_close(r->client);
  cloche_error_clear(&r->error);
  profile_free(&r->profile);
  if (r->signals >= 0)
    close(r->signals);
}

int remote_box(struct remote *r, const char *id, struct cloche_box **box)
{
  return cloche_connect(r->client, id, NULL, box, NULL, &r->error) ? remote_failed(r, id) : 0;
}

int remote_signals(struct remote *r)
{
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGWINCH);
  sigprocmask(SIG_BLOCK, &set, NULL);
  r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  return r->signals < 0 ? complain("signalfd: %s", strerror(errno)) : 0;
}

int remote_poll(struct remote *r, int fd, bool *readable)
{
  struct signalfd_siginfo info;
  struct pollfd p[] = {{.fd = cloche_fd(r->client), .events = POLLIN},
                       {.fd = r->signals, .events = POLLIN},
                       {.fd = fd, .events = POLLIN}};
  poll(p, ARRAY_LEN(p), cloche_timeout(r->client));
  if (readable)
    *readable = p[2].revents != 0;
  cloche_drive(r->client);
  bool told = p[1].revents && read(r->signals, &info, sizeof(info)) == sizeof(info);
  return told ? (int)info.ssi_signo : 0;
}

enum cloche_code remote_finish(struct remote *r, struct cloche_op *op, remote_signal_fn *fn, void *user)
{
  while (!cloche_op_done(op)) {
    int signal = remote_poll(r, -1, NULL);
    if (signal && fn)
      fn(r, op, signal, user);
  }
  return cloche_op_wait(op, &r->error);
}

int remote_main(const struct command_spec *spec, int argc, char **argv)
{
  struct args args = {0};
  struct err err = ERR_NONE;
  const struct verb_spec *verb;
  int r = spec_parse(spec, argc, argv, &args, &verb, &err);
  int status = r < 0 ? (complain("%s", err.msg), EXIT_USAGE) : 0;
  if (r > 0) {
    cleanup_buf struct buf text = BUF_INIT(MESSAGE_MAX);
    spec_help(spec, &text);
    status = print_out(&text);
  } else if (!r) {
    status = verb ? verb->run(&args) : spec->run(&args);
  }
  vec_free(&args.given);
  return status;
}
