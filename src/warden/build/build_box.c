/* SPDX-License-Identifier: Apache-2.0 */
/* build_box.c - see build_box.h. */
#include "warden/build/build_box.h"

#include "jail/jail.h"
#include "warden/core/agent_reply.h"
#include "wire/boot_packet.h"
#include "wire/box_socket.h"
#include "warden/build/download_cache.h"
#include "wire/exec_packet.h"
#include "warden/core/box_spec.h"
#include "warden/warm/zygote.h"
#include "warden/core/context.h"
#include "wire/wire.h"
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#define RELEASE_MS 5000

static void put(struct buf *b, uint32_t tag, struct str value)
{
  buf_add(b, &(struct boot_field){tag, (uint32_t)value.n}, sizeof(struct boot_field));
  buf_adds(b, value);
}

/* ---- waiting ---- */

/* 0 when the box has said something; -ECANCELED, -ETIMEDOUT, or -EIO when it is gone. */
static int wait_word(struct build_box *b, int64_t until_us, struct err *err)
{
  struct build_run *run = b->run;
  for (;;) {
    int r = build_stopped(run, err);
    if (r)
      return r;
    struct pollfd p[] = {{.fd = b->talk, .events = POLLIN}, {.fd = run->wake, .events = POLLIN}};
    int64_t left = MIN(until_us, run->deadline_us) - clock_mono_us();
    if (left <= 0 && until_us < run->deadline_us)
      return err_set(err, -EAGAIN, "the box did not answer in time");
    int k = poll(p, 2, (int)MIN(left / 1000 + 1, (int64_t)60000));
    if (k < 0 && errno != EINTR)
      return err_errno(err, "poll");
    if (k > 0 && (p[0].revents & (POLLIN | POLLHUP)))
      return 0;
  }
}

/* ---- launch ---- */

/* nursery: the agent's end of the line to a fork of the template's Python, or -1. */
static int boot(struct build_box *b, const char *config, int fd, int nursery, struct err *err)
{
  cleanup_buf struct buf p = BUF_INIT(BOOT_MAX);
  put(&p, BOOT_BOX_ID, STR("build"));
  put(&p, BOOT_TEMPLATE_ID, str_of(b->run->template_id));
  put(&p, BOOT_BUILD_ID, str_of(b->run->id));
  put(&p, BOOT_SECRET, str_of(b->secret));
  put(&p, BOOT_TEMPLATE, str_of(config));
  put(&p, BOOT_BUILD, STR_NONE);
  if (nursery >= 0)
    put(&p, BOOT_NURSERY, STR("python"));
  if (buf_failed(&p))
    return err_set(err, -E2BIG, "the template's variables exceed %u bytes", BOOT_MAX);
  ssize_t k = fd_send(fd, p.p, p.n, &nursery, nursery >= 0 ? 1 : 0, 0);
  return k < 0 ? err_set(err, (int)k, "boot packet: %s", strerrordesc_np((int)-k)) : 0;
}

static int hear_ready(struct build_box *b, struct err *err)
{
  char word[AGENT_WORD_MAX];
  int r = wait_word(b, clock_mono_us() + warden_config(b->run->warden)->agent_s * 1000000LL, err);
  if (r)
    return r;
  ssize_t n = box_socket_recv(b->talk, word, sizeof(word));
  return agent_reply_ready(str_make(word, n > 0 ? (size_t)n : 0), err);
}

/* The last box of a build has a Python in it as sandboxes do, so that those of a ready template have it too. */
static void warm(struct build_box *b, int forks)
{
  struct err why = ERR_NONE;
  if (zygote_enter(b->run->zygote, &b->spec, &b->jail, false, forks, &why))
    build_say(b->run, LOG_WARN, "Python is not kept loaded with the running template: %s",
              why.msg); /* the agent sees its socket close */
}

int build_box_open(struct build_box *b, struct build_run *run, const char *layers, const char *config, struct err *err)
{
  struct warden *w = run->warden;
  int pair[2], size = (int)BOOT_MAX * 2;
  *b = (struct build_box){.run = run, .talk = -1, .jail = JAIL_NONE, .layers = layers, .arena = ARENA_INIT(1 << 20)};
  snprintf(b->name, sizeof(b->name), "build-");
  random_id(b->name + 6, 16);
  uint8_t secret[SHA256_LEN];
  random_bytes(secret, sizeof(secret));
  hex_encode(secret, sizeof(secret), b->secret);
  snprintf(b->dir, sizeof(b->dir), "%s/boxes/%s", warden_config(w)->data, b->name);
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
    return err_errno(err, "socketpair");
  b->talk = pair[0];
  box_socket_guard(b->talk);
  cleanup_fd int theirs = pair[1];
  for (int i = 0; i < 2; i++)
    setsockopt(pair[i], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
  struct build plan = {
      .row = {.layers = (char *)layers, .cpus = run->cpus, .memory_mb = run->memory_mb, .disk_mb = run->disk_mb}};
  struct box_spec box_spec = {.build = &plan,
                              .runtime = warden_runtime(w),
                              .name = b->name,
                              .dir = b->dir,
                              .slot = run->slot,
                              .flags = BOX_INTERNET,
                              .mounts = strcmp(run->step, "finalize") ? run->mounts : NULL};
  box_jail_spec(w, &box_spec, &b->arena, &b->spec, &b->net);
  b->spec.boot_fd = theirs;
  int nursery[2] = {-1, -1};
  if (strcmp(run->step,
             "finalize")) /* what is started then may be written to disk, and must hold nothing that is not its own */
    b->spec.cache = download_cache_open(w, run->team);
  else if (run->zygote && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, nursery))
    return err_errno(err, "socketpair");
  cleanup_boxsock int agents = nursery[0], forks = nursery[1];
  b->spec.owner = forks >= 0 ? zygote_user(run->zygote) : 0;
  int r = boot(b, config, b->talk, agents, err);
  r = r ? r : jail_spawn(&b->spec, &b->jail, err);
  if (r)
    return r;
  close(steal_fd(&theirs));
  if (forks >= 0)
    warm(b, forks);
  return hear_ready(b, err);
}

/* ---- commands ---- */

static void put_env(struct buf *p, const struct build_envs *env)
{
  put(p, EXEC_ENV, STR("")); /* even when there is none */
  for (size_t i = 0; i < env->n; i++) {
    cleanup_free char *pair = xasprintf("%s=%s", env->p[i].name, env->p[i].value);
    put(p, EXEC_ENV, str_of(pair));
  }
}

int build_box_begin(struct build_box *b, struct build_cmd *o, struct err *err)
{
  char number[16];
  cleanup_buf struct buf p = BUF_INIT(BOOT_MAX);
  build_cmd_begin(o, ++b->commands);
  snprintf(number, sizeof(number), "%u", o->number);
  put(&p, EXEC_NUMBER, str_of(number));
  if (o->user)
    put(&p, EXEC_USER, str_of(o->user));
  if (o->cwd)
    put(&p, EXEC_CWD, str_of(o->cwd));
  if (o->env)
    put_env(&p, o->env);
  for (const char *const *a = o->argv; *a; a++)
    put(&p, EXEC_ARG, str_of(*a));
  if (buf_failed(&p))
    return err_set(err, -E2BIG, "the step exceeds %u bytes", BOOT_MAX);
  ssize_t k = fd_send(b->talk, p.p, p.n, &o->input, o->input >= 0 ? 1 : 0, MSG_DONTWAIT);
  return k < 0 ? err_set(err, (int)k, "the build's box does not accept commands: %s", strerrordesc_np((int)-k)) : 0;
}

static void tell_line(void *arg, const struct build_cmd *o, bool errors, struct str line)
{
  build_say(arg, errors ? LOG_WARN : LOG_INFO, "%s [%s]: " STR_FMT, o->prefix, errors ? "stderr" : "stdout",
            STR_ARG(line));
}

/* A box that ends by itself has most often run out of memory. */
static int box_gone(struct build_box *b, struct err *err)
{
  struct jail_stats st = {0};
  if (!jail_stat(warden_instance(b->run->warden), b->name, b->dir, &st, NULL) && st.oom_kills)
    return err_set(err, -ENOMEM, "out of memory: the step used all of the build's %u MB", b->run->memory_mb);
  return err_set(err, -EIO, "the build's box ended unexpectedly");
}

static int hear_word(struct build_box *b, struct build_cmd *o, struct build_cmd *beside, struct err *err)
{
  char packet[sizeof(struct exec_event) + EXEC_CHUNK];
  const struct build_output ear = {.line = tell_line, .arg = b->run};
  ssize_t n = box_socket_recv(b->talk, packet, sizeof(packet));
  if (n == -EAGAIN)
    return 0;
  return n <= 0 ? box_gone(b, err) : build_reply_take(&ear, o, beside, str_make(packet, (size_t)n), err);
}

int build_box_wait(struct build_box *b, struct build_cmd *o, struct build_cmd *beside, struct err *err)
{
  bool running = beside && !beside->over;
  while (!o->over) {
    int r = wait_word(b, INT64_MAX, err);
    r = r ? r : hear_word(b, o, beside, err);
    if (r)
      return r;
    if (running && beside->over)
      return 0;
  }
  return 0;
}

int build_box_listen(struct build_box *b, struct build_cmd *beside, int64_t until_us, struct err *err)
{
  while (!(beside && beside->over) && clock_mono_us() < until_us) {
    int r = wait_word(b, until_us, err);
    if (r == -EAGAIN) {
      *err = ERR_NONE;
      return 0;
    }
    r = r ? r : hear_word(b, NULL, beside, err);
    if (r)
      return r;
  }
  return 0;
}

int build_box_run(struct build_box *b, struct build_cmd *o, struct err *err)
{
  int r = build_box_begin(b, o, err);
  return r ? r : build_box_wait(b, o, NULL, err);
}

/* ---- end ---- */

int build_box_release(struct build_box *b, struct err *err)
{
  char rest[sizeof(struct exec_event) + EXEC_CHUNK];
  int64_t until = clock_mono_us() + RELEASE_MS * 1000LL;
  shutdown(b->talk, SHUT_WR);
  for (;;) { /* the agent closes its end when it sees ours; what is on the way is not wanted any more */
    int r = wait_word(b, until, err);
    if (r)
      return r;
    ssize_t n = box_socket_recv(b->talk, rest, sizeof(rest));
    if (n <= 0 && n != -EAGAIN)
      break;
  }
  box_socket_close(steal_fd(&b->talk));
  return 0;
}

int build_box_stop(struct build_box *b, struct err *err)
{
  struct warden *w = b->run->warden;
  int status;
  if (b->talk >= 0)
    box_socket_close(steal_fd(&b->talk));
  if (b->jail.pidfd < 0)
    return 0;
  int r = jail_kill(warden_instance(w), b->name, &b->jail, err);
  jail_wait(&b->jail, 5000, &status);
  jail_close(&b->jail);
  b->jail = JAIL_NONE;
  return r ? r : jail_remove(warden_instance(w), b->name, NULL, err);
}

void build_box_remove(struct build_box *b)
{
  struct err err = ERR_NONE;
  if (b->given) {
    arena_free(&b->arena);
    return;
  }
  build_box_stop(b, &err);
  if (jail_remove(warden_instance(b->run->warden), b->name, b->dir, &err)) {
    log_warn("build box %s: %s", b->name, err.msg);
    snprintf(b->run->left_name, sizeof(b->run->left_name), "%s", b->name); /* the loop reclaims it, ids and all */
    snprintf(b->run->left_dir, sizeof(b->run->left_dir), "%s", b->dir);
  }
  arena_free(&b->arena);
}
