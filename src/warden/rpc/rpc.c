/* SPDX-License-Identifier: Apache-2.0 */
/* rpc.c - see rpc.h. */
#include "warden/rpc/rpc.h"

#include "warden/rpc/authority.h"
#include "warden/rpc/handlers.h"
#include "warden/rpc/root_audit.h"
#include "warden/core/context.h"

#define CHANGES(name) handle_##name, #name, true
#define READS(name)   handle_##name, #name, false

/* One row per type of request; root may send all of them. A type without a row is refused. What only READS and hands
 * out no right is left out of the audit log by default. */
static const struct handler {
  enum wire_type type;
  unsigned may; /* enum authority */
  void (*handle)(struct request *q);
  const char *name; /* as the audit log has it */
  bool changes;
} handlers[] = {
    {WIRE_AUTH, BY_ANYONE, READS(auth)},
    {WIRE_STATUS, BY_ANYONE, READS(status)},
    {WIRE_METRICS, BY_ANYONE, READS(metrics)}, /* anyone: as many as the operator wants told */
    {WIRE_BOX_GET, BY_ANYONE | BY_KEY, READS(box_get)},
    {WIRE_BOX_CONNECT, BY_ANYONE | BY_KEY, CHANGES(box_connect)}, /* anyone: only what traffic may resume */
    {WIRE_BOX_DIAL, BY_ANYONE, CHANGES(box_dial)},
    {WIRE_BOX_VOUCH, BY_ANYONE, READS(box_vouch)},
    {WIRE_SIGNED_FIND, BY_ANYONE, READS(signed_find)},
    {WIRE_BOX_CREATE, BY_KEY, CHANGES(box_create)},
    {WIRE_BOX_LIST, BY_KEY, READS(box_list)},
    {WIRE_BOX_KILL, BY_KEY, CHANGES(box_kill)},
    {WIRE_BOX_TIMEOUT, BY_KEY, CHANGES(box_timeout)},
    {WIRE_BOX_PAUSE, BY_KEY, CHANGES(box_pause)},
    {WIRE_BOX_CONFIG, BY_KEY, CHANGES(box_config)},
    {WIRE_BOX_LOG, BY_KEY, READS(box_log)},
    {WIRE_BOX_NET_LOG, BY_KEY, READS(box_net_log)},
    {WIRE_BOX_USAGE, BY_KEY, READS(box_usage)},
    {WIRE_BOX_FORK, BY_KEY, CHANGES(box_fork)},
    {WIRE_USAGE_LATEST, BY_KEY, READS(usage_latest)},
    {WIRE_EVENT_LIST, BY_KEY, READS(event_list)},
    {WIRE_SNAPSHOT, BY_KEY, CHANGES(snapshot)},
    {WIRE_SNAPSHOT_LIST, BY_KEY, READS(snapshot_list)},
    {WIRE_TEMPLATE_LIST, BY_KEY, READS(template_list)},
    {WIRE_TEMPLATE_FIND, BY_KEY, READS(template_find)},
    {WIRE_TEMPLATE_TAGS, BY_KEY, READS(template_tags)},
    {WIRE_TAG_HISTORY, BY_KEY, READS(tag_history)},
    {WIRE_TEMPLATE_BUILDS, BY_KEY, READS(template_builds)},
    {WIRE_TEMPLATE_CHANGE, BY_KEY, CHANGES(template_change)},
    {WIRE_TEMPLATE_DELETE, BY_KEY, CHANGES(template_delete)},
    {WIRE_TAG_PUT, BY_KEY, CHANGES(tag_put)},
    {WIRE_TAG_DELETE, BY_KEY, CHANGES(tag_delete)},
    {WIRE_BUILD_REQUEST, BY_KEY, CHANGES(build_request)},
    {WIRE_BUILD_START, BY_KEY, CHANGES(build_start)},
    {WIRE_BUILD_GET, BY_KEY, READS(build_get)},
    {WIRE_BUILD_CANCEL, BY_KEY | BY_ADMIN, CHANGES(build_cancel)},
    {WIRE_BUILD_DIFF, BY_KEY, READS(build_diff)},
    {WIRE_FILE_LOOK, BY_KEY, READS(file_look)},
    {WIRE_FILE_OPEN, BY_LINK, CHANGES(file_open)},
    {WIRE_FILE_CLOSE, BY_LINK, CHANGES(file_close)},
    {WIRE_KEY_CREATE, BY_KEY | BY_ADMIN, CHANGES(key_create)},
    {WIRE_KEY_LIST, BY_KEY | BY_ADMIN, READS(key_list)},
    {WIRE_KEY_RENAME, BY_KEY | BY_ADMIN, CHANGES(key_rename)},
    {WIRE_KEY_DELETE, BY_KEY | BY_ADMIN, CHANGES(key_delete)},
    {WIRE_LOGIN, BY_ANYONE, CHANGES(login)},        /* anyone: who has a code that was made for a team */
    {WIRE_LOGIN_CODE, BY_KEY, CHANGES(login_code)}, /* who has a key can make more of them anyway */
    {WIRE_TEAM_USAGE, BY_KEY, READS(team_usage)},
    {WIRE_WEBHOOK_CREATE, BY_KEY, CHANGES(webhook_create)},
    {WIRE_WEBHOOK_LIST, BY_KEY, READS(webhook_list)},
    {WIRE_WEBHOOK_GET, BY_KEY, READS(webhook_get)},
    {WIRE_WEBHOOK_CHANGE, BY_KEY, CHANGES(webhook_change)},
    {WIRE_WEBHOOK_DELETE, BY_KEY, CHANGES(webhook_delete)},
    {WIRE_WEBHOOK_DELIVERIES, BY_KEY, READS(webhook_deliveries)},
    {WIRE_WEBHOOK_STATS, BY_KEY, READS(webhook_stats)},
    {WIRE_IDENTITY_KEYS, BY_ANYONE, READS(identity_keys)},
    {WIRE_SECRET_CREATE, BY_KEY, CHANGES(secret_create)},
    {WIRE_SECRET_LIST, BY_KEY, READS(secret_list)},
    {WIRE_SECRET_GET, BY_KEY, READS(secret_get)},
    {WIRE_SECRET_CHANGE, BY_KEY, CHANGES(secret_change)},
    {WIRE_SECRET_DELETE, BY_KEY, CHANGES(secret_delete)},
    {WIRE_VOLUME_CREATE, BY_KEY, CHANGES(volume_create)},
    {WIRE_VOLUME_LIST, BY_KEY, READS(volume_list)},
    {WIRE_VOLUME_GET, BY_KEY, READS(volume_get)},
    {WIRE_VOLUME_DELETE, BY_KEY, CHANGES(volume_delete)},
    {WIRE_CONTENT, BY_ANYONE, CHANGES(content)}, /* anyone: who has the volume's token */
    {WIRE_TEAM_LIST, BY_ADMIN, READS(team_list)},
    {WIRE_TEAM_KILL, BY_ADMIN, CHANGES(team_kill)},
    {WIRE_TEAM_PUT, BY_ADMIN, CHANGES(team_put)},
    {WIRE_DOCTOR, BY_ADMIN, READS(doctor)},
    {WIRE_NODE_CHANGE, BY_ADMIN, CHANGES(node_change)},
    {WIRE_NODE_LIST, BY_ADMIN, READS(node_list)},
    {WIRE_TEMPLATE_IMPORT, BY_ROOT, CHANGES(template_import)},
    {WIRE_TEMPLATE_STORE, BY_ROOT, CHANGES(template_store)},
    {WIRE_BUILD_SHOW, BY_ROOT, READS(build_show)},
    {WIRE_BOX_TOKEN, BY_ROOT, CHANGES(box_token)},
    {WIRE_GC, BY_ROOT, CHANGES(gc)},
    {WIRE_VOLUME_USAGE, BY_ROOT, READS(volume_usage)},
    {WIRE_VOLUME_OPEN, BY_ROOT, CHANGES(volume_open)},
    {WIRE_VOLUME_ATTACH, BY_ROOT, CHANGES(volume_attach)},
    {WIRE_SECRET_ROTATE, BY_ROOT, CHANGES(secret_rotate)},
    {WIRE_SECRET_CHECK, BY_ROOT, READS(secret_check)},
    {WIRE_IDENTITY_ROTATE, BY_ROOT, CHANGES(identity_rotate)},
    {WIRE_IDENTITY_TOKEN, BY_ROOT, CHANGES(identity_token)},
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
    if (h && peer->kind == PEER_ROOT)
      root_audit_asked(&q, h->name, h->changes);
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
  root_audit_gone(l);
  reply_link_remove(w, l);
  box_list_drop(p);
  ipc_free(l);
  free(p);
}

static const struct ipc_ops rpc_ops = {on_packet, on_closed};

struct ipc *rpc_accept(struct warden *w, int fd, enum peer_kind kind)
{
  struct peer *p = xcalloc(1, sizeof(*p));
  char who[ROOT_WHO_SIZE] = "";
  if (kind == PEER_ROOT)
    root_audit_who(fd, who);
  struct ipc *l = ipc_new(warden_loop(w), fd, &rpc_ops, p);
  *p = (struct peer){.warden = w, .ipc = l, .kind = kind};
  memcpy(p->who, who, sizeof(who));
  ipc_pace(l);
  ipc_guard(l);
  ipc_on_drain(l, box_list_continue);
  reply_link_add(w, l);
  return l;
}
