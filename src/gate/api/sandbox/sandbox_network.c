/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox_network.c - PUT /sandboxes/{id}/network: what goes out is replaced, what comes in stays. */
#include "gate/api/api.h"
#include "gate/api/sandbox/network.h"

static void updated(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  if (!sandbox_refused(r, reply))
    api_empty(r, 204);
}

static void put_config(struct buf *b, const struct json *old, const struct network *n)
{
  struct jw w = JW(b);
  jw_open(&w, '{');
  for (const struct json *k = old ? old->kids : NULL; k; k = k->next) {
    if (str_is(k->key, "network") || str_is(k->key, "allowInternetAccess"))
      continue;
    jw_keys(&w, k->key);
    jw_value(&w, k);
  }
  if (n->internet) {
    jw_key(&w, "allowInternetAccess");
    jw_value(&w, n->internet);
  }
  if (network_said(n)) {
    jw_key(&w, "network");
    network_put_open(&w, n);
  }
  jw_close(&w, '}');
}

static void found(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct network *n = r->state;
  if (sandbox_refused(r, reply))
    return;
  struct box_view v;
  box_view(reply->packet, &v);
  const struct json *old = json_read(r->arena, v.config, 0, NULL);
  network_keep_ingress(n, json_get(old, "network"));
  unsigned flags = v.flags & ~(unsigned)BOX_INTERNET;
  flags |= !n->internet || n->internet->flag ? BOX_INTERNET : 0;
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX), config = BUF_INIT(WIRE_MAX), allow = BUF_INIT(WIRE_MAX),
                         deny = BUF_INIT(WIRE_MAX);
  put_config(&config, old, n);
  wire_begin(&b, WIRE_BOX_CONFIG, 0, 0);
  wire_put(&b, W_ID, v.id);
  wire_putz(&b, W_TEAM, r->team.id);
  wire_put(&b, W_CONFIG, buf_str(&config));
  wire_put_u64(&b, W_FLAGS, flags);
  network_allow_lines(&allow, n);
  network_lines(&deny, n->deny_out);
  wire_put(&b, W_ALLOW, buf_str(&allow));
  wire_put(&b, W_DENY, buf_str(&deny));
  if (!sandbox_put_egress(r, n, &b))
    return;
  if (buf_failed(&config))
    b.failed = buf_failed(&config);
  api_call_warden(r, &b, NULL, updated);
}

void sandbox_network(struct req *r)
{
  struct err err = ERR_NONE;
  struct network *n = arena_alloc(r->arena, sizeof(*n));
  struct str id;
  int e = network_read(r->json, json_get(r->json, "allow_internet_access"), GATE_NETWORK_FEATURES, n, &err);
  if (e) {
    api_error(r, e == -EPERM ? 403 : 400, "%s", err.msg);
    return;
  }
  if (!api_box_id(r, &id))
    return;
  r->state = n;
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, WIRE_BOX_GET, 0, 0);
  wire_put(&b, W_ID, id);
  wire_putz(&b, W_TEAM, r->team.id);
  api_call_warden(r, &b, NULL, found);
}
