/* SPDX-License-Identifier: Apache-2.0 */
/* sender.c - see sender.h: the loop, the supervisor's words and the warden's. */
#include "sender/sender.h"

#include "sender/post.h"
#include "sender/sender_role.h"
#include "wire/box_socket.h"
#include "wire/control.h"
#include <malloc.h>
#include <stdio.h>
#include <sys/prctl.h>

struct sender {
  struct posts posts;
  struct ipc *control;
  bool ruled; /* the warden has said where the boxes are */
};

/* ---- the warden ---- */

static void warden_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  struct sender *s = arg;
  if (fd >= 0)
    close(fd);
  if (wire_check(packet)) {
    log_error("malformed packet of %zu bytes from the warden", packet.n);
    return;
  }
  enum wire_type type = (enum wire_type)wire_head(packet)->type;
  if (type == WIRE_SENDER_HELLO) {
    s->posts.rules.boxes = (uint32_t)wire_u64(packet, W_FROM, 0);
    s->ruled = true;
  } else if (type == WIRE_SEND && s->ruled) {
    post_start(&s->posts, packet);
  }
}

static void warden_closed(struct ipc *l, void *arg)
{
  struct sender *s = arg;
  if (s->posts.link == l)
    posts_abandon(&s->posts);
  ipc_free(l);
}

static const struct ipc_ops warden_ops = {warden_packet, warden_closed};

/* ---- the supervisor ---- */

static void take_link(struct sender *s, int fd)
{
  if (s->posts.link)
    posts_abandon(&s->posts);
  s->ruled = false;
  s->posts.link = ipc_new(s->posts.loop, fd, &warden_ops, s);
}

static void control_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  struct sender *s = arg;
  if (packet.p[0] == CONTROL_LINK && fd >= 0)
    take_link(s, fd);
  else if (fd >= 0)
    close(fd);
  control_settings(packet);
  if (packet.p[0] == CONTROL_OWN)
    receiver_own(&s->posts.rules, str_skip(packet, 1));
  if (packet.p[0] == CONTROL_STOP)
    uv_stop(s->posts.loop);
}

static void control_closed(struct ipc *l, void *arg)
{
  struct sender *s = arg;
  uv_stop(s->posts.loop);
}

static const struct ipc_ops control_ops = {control_packet, control_closed};

/* ---- start ---- */

/* What the environment says about proxies, certificates and names is not for this process. */
static void clean_environment(void)
{
  clearenv();
  setenv("RES_OPTIONS", "timeout:2 attempts:2", 1);
}

int sender_main(const struct sender_config *config)
{
  static uv_loop_t loop;
  static struct sender s; /* to the process's end: what it still holds then was not lost */
  struct err err = ERR_NONE;
  prctl(PR_SET_NAME, "cloche-sender");
  clean_environment();
  mallopt(M_ARENA_MAX, 2);
  uv_loop_init(&loop);
  s.posts = (struct posts){.config = config, .loop = &loop};
  s.control = ipc_new(&loop, CONTROL_FD, &control_ops, &s);
  int confined = posts_open(&s.posts, &err);
  confined = confined ? confined : confine_rights(&sender_role, config->uid, &err);
  confined = confined ? confined : lookups_open(&s.posts.lookups, &loop, config->team_lookups, &err);
  if (confined || confine_filter(&sender_role, config->uid, &err))
    return control_failed(s.control, &err);
  ipc_send(s.control, (struct str){(char[]){CONTROL_READY}, 1}, -1);
  uv_run(&loop, UV_RUN_DEFAULT);
  return 0;
}
