/* SPDX-License-Identifier: Apache-2.0 */
/* rpc.c - see rpc.h. */
#include "warden/rpc/rpc.h"

#include "warden/rpc/authority.h"
#include "warden/rpc/handlers.h"
#include "warden/core/context.h"

/* One row per type of request; root may send all of them. A type without a row is refused. */
static const struct handler {
  enum wire_type type;
  unsigned may; /* enum authority */
  void (*handle)(struct request *q);
} handlers[] = {
    {WIRE_AUTH, BY_ANYONE, handle_auth},
    {WIRE_STATUS, BY_ANYONE, handle_status},
    {WIRE_METRICS, BY_ANYONE, handle_metrics}, /* anyone: as many as the operator wants told */
    {WIRE_BOX_GET, BY_ANYONE | BY_KEY, handle_box_get},
    {WIRE_BOX_CONNECT, BY_ANYONE | BY_KEY, handle_box_connect}, /* anyone: only what traffic may resume */
    {WIRE_BOX_DIAL, BY_ANYONE, handle_box_dial},
    {WIRE_BOX_VOUCH, BY_ANYONE, handle_box_vouch},
    {WIRE_SIGNED_FIND, BY_ANYONE, handle_signed_find},
    {WIRE_BOX_CREATE, BY_KEY, handle_box_create},
    {WIRE_BOX_LIST, BY_KEY, handle_box_list},
    {WIRE_BOX_KILL, BY_KEY, handle_box_kill},
    {WIRE_BOX_TIMEOUT, BY_KEY, handle_box_timeout},
    {WIRE_BOX_PAUSE, BY_KEY, handle_box_pause},
    {WIRE_BOX_CONFIG, BY_KEY, handle_box_config},
    {WIRE_BOX_LOG, BY_KEY, handle_box_log},
    {WIRE_BOX_NET_LOG, BY_KEY, handle_box_net_log},
    {WIRE_BOX_USAGE, BY_KEY, handle_box_usage},
    {WIRE_BOX_FORK, BY_KEY, handle_box_fork},
    {WIRE_USAGE_LATEST, BY_KEY, handle_usage_latest},
    {WIRE_EVENT_LIST, BY_KEY, handle_event_list},
    {WIRE_SNAPSHOT, BY_KEY, handle_snapshot},
    {WIRE_SNAPSHOT_LIST, BY_KEY, handle_snapshot_list},
    {WIRE_TEMPLATE_LIST, BY_KEY, handle_template_list},
    {WIRE_TEMPLATE_FIND, BY_KEY, handle_template_find},
    {WIRE_TEMPLATE_TAGS, BY_KEY, handle_template_tags},
    {WIRE_TAG_HISTORY, BY_KEY, handle_tag_history},
    {WIRE_TEMPLATE_BUILDS, BY_KEY, handle_template_builds},
    {WIRE_TEMPLATE_CHANGE, BY_KEY, handle_template_change},
    {WIRE_TEMPLATE_DELETE, BY_KEY, handle_template_delete},
    {WIRE_TAG_PUT, BY_KEY, handle_tag_put},
    {WIRE_TAG_DELETE, BY_KEY, handle_tag_delete},
    {WIRE_BUILD_REQUEST, BY_KEY, handle_build_request},
    {WIRE_BUILD_START, BY_KEY, handle_build_start},
    {WIRE_BUILD_GET, BY_KEY, handle_build_get},
    {WIRE_BUILD_CANCEL, BY_KEY | BY_ADMIN, handle_build_cancel},
    {WIRE_BUILD_DIFF, BY_KEY, handle_build_diff},
    {WIRE_FILE_LOOK, BY_KEY, handle_file_look},
    {WIRE_FILE_OPEN, BY_LINK, handle_file_open},
    {WIRE_FILE_CLOSE, BY_LINK, handle_file_close},
    {WIRE_KEY_CREATE, BY_KEY | BY_ADMIN, handle_key_create},
    {WIRE_KEY_LIST, BY_KEY | BY_ADMIN, handle_key_list},
    {WIRE_KEY_RENAME, BY_KEY | BY_ADMIN, handle_key_rename},
    {WIRE_KEY_DELETE, BY_KEY | BY_ADMIN, handle_key_delete},
    {WIRE_LOGIN, BY_ANYONE, handle_login},        /* anyone: who has a code that was made for a team */
    {WIRE_LOGIN_CODE, BY_KEY, handle_login_code}, /* who has a key can make more of them anyway */
    {WIRE_TEAM_USAGE, BY_KEY, handle_team_usage},
    {WIRE_WEBHOOK_CREATE, BY_KEY, handle_webhook_create},
    {WIRE_WEBHOOK_LIST, BY_KEY, handle_webhook_list},
    {WIRE_WEBHOOK_GET, BY_KEY, handle_webhook_get},
    {WIRE_WEBHOOK_CHANGE, BY_KEY, handle_webhook_change},
    {WIRE_WEBHOOK_DELETE, BY_KEY, handle_webhook_delete},
    {WIRE_WEBHOOK_DELIVERIES, BY_KEY, handle_webhook_deliveries},
    {WIRE_WEBHOOK_STATS, BY_KEY, handle_webhook_stats},
    {WIRE_IDENTITY_KEYS, BY_ANYONE, handle_identity_keys},
    {WIRE_SECRET_CREATE, BY_KEY, handle_secret_create},
    {WIRE_SECRET_LIST, BY_KEY, handle_secret_list},
    {WIRE_SECRET_GET, BY_KEY, handle_secret_get},
    {WIRE_SECRET_CHANGE, BY_KEY, handle_secret_change},
    {WIRE_SECRET_DELETE, BY_KEY, handle_secret_delete},
    {WIRE_VOLUME_CREATE, BY_KEY, handle_volume_create},
    {WIRE_VOLUME_LIST, BY_KEY, handle_volume_list},
    {WIRE_VOLUME_GET, BY_KEY, handle_volume_get},
    {WIRE_VOLUME_DELETE, BY_KEY, handle_volume_delete},
    {WIRE_CONTENT, BY_ANYONE, handle_content}, /* anyone: who has the volume's token */
    {WIRE_TEAM_LIST, BY_ADMIN, handle_team_list},
    {WIRE_TEAM_KILL, BY_ADMIN, handle_team_kill},
    {WIRE_TEAM_PUT, BY_ADMIN, handle_team_put},
    {WIRE_DOCTOR, BY_ADMIN, handle_doctor},
    {WIRE_NODE_CHANGE, BY_ADMIN, handle_node_change},
    {WIRE_TEMPLATE_IMPORT, BY_ROOT, handle_template_import},
    {WIRE_TEMPLATE_STORE, BY_ROOT, handle_template_store},
    {WIRE_BUILD_SHOW, BY_ROOT, handle_build_show},
    {WIRE_BOX_TOKEN, BY_ROOT, handle_box_token},
    {WIRE_GC, BY_ROOT, handle_gc},
    {WIRE_VOLUME_USAGE, BY_ROOT, handle_volume_usage},
    {WIRE_VOLUME_OPEN, BY_ROOT, handle_volume_open},
    {WIRE_VOLUME_ATTACH, BY_ROOT, handle_volume_attach},
    {WIRE_SECRET_ROTATE, BY_ROOT, handle_secret_rotate},
    {WIRE_SECRET_CHECK, BY_ROOT, handle_secret_check},
    {WIRE_IDENTITY_ROTATE, BY_ROOT, handle_identity_rotate},
    {WIRE_IDENTITY_TOKEN, BY_ROOT, handle_identity_token},
};

static const struct handler *handler_of(enum wire_type type)
{
  for (size_t i = 0; i < ARRAY_LEN(handlers); i++)
    if (handlers[i].type == type)
      return &handlers[i];
  return NULL;
}

static void on_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  if (fd >= 0)
    close(fd);
  if (wire_check(packet)) {
    log_error("malformed packet of %zu bytes", packet.n);
    return;
  }
  struct peer *peer = arg;
  static _Alignas(8) char copy[WIRE_MAX]; /* a handler may re-enter the connection's buffer */
  memcpy(copy, packet.p, packet.n);
  explicit_bzero((char *)packet.p, packet.n); /* of neither buffer stays what may be a secret's value */
  cleanup_buf struct buf out = BUF_INIT(WIRE_MAX);
  struct request q = {.warden = peer->warden, .peer = peer, .ipc = l, .packet = {copy, packet.n}, .out = &out};
  q.id = wire_head(q.packet)->id;
  enum wire_type type = (enum wire_type)wire_head(q.packet)->type;
  const struct handler *h = handler_of(type);
  if (!authority_admit(&q, type, h ? h->may : 0)) {
    if (h)
      h->handle(&q);
    else
      reply_error(&q, -ENOSYS, "the warden does not know this request");
  }
  explicit_bzero(copy, packet.n);
}

static void on_closed(struct ipc *l, void *arg)
{
  struct peer *p = arg;
  struct warden *w = p->warden;
  reply_link_remove(w, l);
  box_list_drop(p);
  ipc_free(l);
  free(p);
}

static const struct ipc_ops rpc_ops = {on_packet, on_closed};

struct ipc *rpc_accept(struct warden *w, int fd, enum peer_kind kind)
{
  struct peer *p = xcalloc(1, sizeof(*p));
  struct ipc *l = ipc_new(warden_loop(w), fd, &rpc_ops, p);
  *p = (struct peer){.warden = w, .ipc = l, .kind = kind};
  ipc_pace(l);
  ipc_guard(l);
  ipc_on_drain(l, box_list_continue);
  reply_link_add(w, l);
  return l;
}
