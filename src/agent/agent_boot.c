/* SPDX-License-Identifier: Apache-2.0 */
/* agent_boot.c - see agent_boot.h. */
#include "agent/agent_boot.h"
#include "agent/box_identity.h"
#include "agent/envd/init.h"
#include "agent/interpreter/interp.h"
#include "agent/machine_id.h"
#include "agent/build/build_exec.h"
#include "agent/build/start_command.h"
#include "agent/trust.h"
#include "agent/user.h"
#include "wire/boot_packet.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define BOOT_FD 3

static bool boot_socket(void)
{
  int type = 0;
  socklen_t len = sizeof(type);
  return getsockopt(BOOT_FD, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET;
}

static void text_take(char **slot, struct str value)
{
  free(*slot);
  *slot = xstrndup(value.p ? value.p : "", value.n);
}

/* A template that works in its user's home has no working directory of its own: another user starts in theirs. */
static bool is_home(const char *name, struct str dir)
{
  struct user user;
  return user_find(str_of(name), &user) == 0 && str_is(dir, user.home);
}

static int template_take(struct agent *a, struct str text, struct err *err)
{
  cleanup_arena struct arena arena = ARENA_INIT(8u * BOOT_MAX);
  struct json_error why = {0};
  struct json *v = json_read(&arena, text, 0, &why);
  if (!v)
    return err_set(err, -EINVAL, "template: syntax error at offset %zu", why.offset);
  struct str user = json_text(json_get(v, "user"), STR("")), workdir = json_text(json_get(v, "workdir"), STR(""));
  env_merge_json(&a->template_env, json_get(v, "env"));
  if (user.n)
    text_take(&a->default_user, user);
  if (workdir.n && !is_home(a->default_user, workdir))
    text_take(&a->default_workdir, workdir);
  start_command_set(json_text(json_get(v, "start"), STR_NONE), json_text(json_get(v, "ready"), STR_NONE));
  start_command_context(json_get(v, "startContext"));
  return 0;
}

static bool waiting, builds, nursed;
static bool naming;         /* the second packet of a warm box: marker files are written after the reply */
static int nursery_fd = -1; /* came with the packet being read */

static void nursery_take(struct str language)
{
  char name[KERNEL_LANGUAGE_SIZE];
  int fd = steal_fd(&nursery_fd);
  if (fd < 0)
    return;
  if (str_copyz(language, name, sizeof(name)) || interp_adopt(name, (const int[]){fd, -1, -1}, 0, true)) {
    log_warn("the first kernel of " STR_FMT " is not needed, closing it", STR_ARG(language));
    close(fd);
    return;
  }
  nursed = true;
}

static int field_take(struct agent *a, uint32_t tag, struct str value, struct err *err)
{
  switch ((enum boot_tag)tag) {
  case BOOT_BOX_ID:
    return text_take(&a->box_id, value), 0;
  case BOOT_TEMPLATE_ID:
    return text_take(&a->template_id, value), 0;
  case BOOT_BUILD_ID:
    return text_take(&a->build_id, value), 0;
  case BOOT_SECRET:
    return text_take(&a->secret, value), 0;
  case BOOT_TEMPLATE:
    return template_take(a, value, err);
  case BOOT_INIT:
    return init_apply(a, value, true, err) == INIT_BAD ? err_wrap(err, "init") : 0;
  case BOOT_AUTHORITY:
    return trust_install(a, value, err);
  case BOOT_WAIT:
    waiting = true;
    return 0;
  case BOOT_BUILD:
    builds = true;
    return 0;
  case BOOT_NURSERY:
    nursery_take(value);
    return 0;
  }
  return 0; /* a newer warden may say more */
}

static int packet_take(struct agent *a, struct str packet, struct err *err)
{
  while (packet.n) {
    struct boot_field field;
    if (packet.n < sizeof(field))
      return err_set(err, -EPROTO, "boot packet: %zu stray bytes", packet.n);
    memcpy(&field, packet.p, sizeof(field));
    packet = str_skip(packet, sizeof(field));
    if (field.len > packet.n)
      return err_set(err, -EPROTO, "boot packet: field %u is cut", field.tag);
    int rc = field_take(a, field.tag, str_sub(packet, 0, field.len), err);
    if (rc < 0)
      return rc;
    packet = str_skip(packet, field.len);
  }
  return 0;
}

int boot_receive(struct agent *a, struct err *err)
{
  if (!boot_socket())
    return BOOT_BY_HAND;
  fcntl(BOOT_FD, F_SETFD, FD_CLOEXEC); /* what the box runs before the answer must not keep the socket open */
  /* Mapped, not allocated: the pages go back to the system at once. */
  char *packet = mmap(NULL, BOOT_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (packet == MAP_FAILED)
    return err_errno(err, "boot packet");
  size_t nfds = 1;
  waiting = false;
  ssize_t n = fd_recv(BOOT_FD, packet, BOOT_MAX, &nursery_fd, &nfds, MSG_TRUNC);
  int rc = 0;
  if (n < 0)
    rc = err_set(err, (int)n, "boot packet: %s", strerror((int)-n));
  else if (n == 0 || n > (ssize_t)BOOT_MAX)
    rc = err_set(err, -EPROTO, "boot packet of %zd bytes", n);
  else
    rc = packet_take(a, str_make(packet, (size_t)n), err);
  munmap(packet, BOOT_MAX);
  if (nursery_fd >= 0)
    close(steal_fd(&nursery_fd));
  if (rc < 0)
    return rc;
  if (waiting)
    return BOOT_WAITING;
  if (builds) /* it leaves no mark of its own in the template */
    return BOOT_BUILDS;
  if (naming)
    identity_variables(a);
  else
    identity_publish(a);
  return BOOT_DONE;
}

/* ---- a warm box ---- */

static void say_ready(void)
{
  boot_answer(NULL);
}

static void waiting_closed(uv_handle_t *h)
{
  free(h);
}

static void on_packet(uv_poll_t *poll, int status, int events)
{
  struct agent *a = poll->data;
  struct err err = ERR_NONE;
  (void)status, (void)events;
  uv_poll_stop(poll);
  uv_close((uv_handle_t *)poll, waiting_closed);
  naming = true;
  if (boot_receive(a, &err) < 0) {
    boot_answer(err.msg);
    exit(1); /* pid 1 ends, and the box with it */
  }
  start_command_wait(a, say_ready);
  /* While the reply is on its way; nobody is served before this callback ends. */
  identity_markers(a);
  interp_named();
}

void boot_wait(struct agent *a)
{
  uv_poll_t *poll = xcalloc(1, sizeof(*poll));
  uv_poll_init(a->loop, poll, BOOT_FD);
  poll->data = a;
  uv_poll_start(poll, UV_READABLE | UV_DISCONNECT, on_packet);
  interp_warm("python");
  machine_id_write(false);
  start_command_begin(a);
}

/* Number 3 stays taken: in every child it is spoken for. */
static void let_go(void)
{
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null >= 0) {
    dup3(null, BOOT_FD, O_CLOEXEC);
    close(null);
  } else {
    close(BOOT_FD);
  }
}

void boot_build(struct agent *a)
{
  char ready = BOOT_READY;
  int fd = fcntl(BOOT_FD, F_DUPFD_CLOEXEC, BOOT_FD + 1);
  if (fd < 0 || send(fd, &ready, 1, MSG_NOSIGNAL) < 0) {
    log_error("boot socket for build commands: %s", strerror(errno));
    exit(1);
  }
  let_go();
  if (nursed)
    interp_warm("python");
  exec_serve(a, fd);
}

void boot_finish(struct agent *a)
{
  if (nursed) /* it is on its way, and nothing of outside may stay open */
    interp_warm("python");
  start_command_begin(a);
  start_command_wait(a, say_ready);
}

/* Nothing of the box holds the socket once the warden has read the answer and then its end: number 3 is let go before,
 * and the duplicate is closed right behind it. */
void boot_answer(const char *failure)
{
  char text[600];
  if (!boot_socket())
    return;
  int n = failure ? snprintf(text, sizeof(text), "%c%s", BOOT_FAILED, failure)
                  : snprintf(text, sizeof(text), "%c", BOOT_READY);
  int fd = fcntl(BOOT_FD, F_DUPFD_CLOEXEC, BOOT_FD + 1);
  if (fd >= 0)
    let_go();
  if (send(fd >= 0 ? fd : BOOT_FD, text, MIN((size_t)n, sizeof(text) - 1), MSG_NOSIGNAL) < 0)
    log_warn("the warden closed the boot socket before the reply: %s", strerror(errno));
  if (fd >= 0)
    close(fd);
  else
    let_go();
}
