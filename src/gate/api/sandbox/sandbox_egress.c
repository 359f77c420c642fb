/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox_egress.c - header rules and proxies as the warden keeps them: a policy (wire/egress_policy.h) in which all
 * that is the warden's to know is still missing - the box, its authority, the values of secrets. */
#include "gate/api/api.h"
#include "gate/api/sandbox/network_egress.h"
#include "net/cert.h"
#include "wire/egress_policy.h"

#include <arpa/inet.h>

/* Secrets are stored under names in lower case. */
static struct str lowered(struct arena *a, struct str s)
{
  char *copy = arena_alloc(a, s.n + 1);
  for (size_t i = 0; copy && i < s.n; i++)
    copy[i] = s.p[i] >= 'A' && s.p[i] <= 'Z' ? (char)(s.p[i] + 32) : s.p[i];
  return copy ? str_make(copy, s.n) : STR_NONE;
}

_Static_assert(RULE_FILLED_MAX <= EGRESS_FILLED_MAX, "what the API takes, the gateway takes");

static void want_secret(struct egress_policy *p, struct str name)
{
  for (size_t i = 0; i < p->nsecrets; i++)
    if (str_eq(p->secrets[i].name, name))
      return;
  p->secrets[p->nsecrets++] = (struct egress_secret){.name = name, .missing = true};
}

static int put_header(struct arena *a, struct egress_policy *p, const struct json *from, struct egress_header *h,
                      struct err *err)
{
  h->name = from->key;
  int r = egress_value_read(a, from->text, &h->pieces, &h->npieces, err);
  for (size_t i = 0; !r && i < h->npieces; i++)
    if (h->pieces[i].kind == EGRESS_SECRET) {
      h->pieces[i].text = lowered(a, h->pieces[i].text);
      if (p->nsecrets == EGRESS_SECRETS_MAX)
        return err_set(err, -EINVAL, "'network.rules' names more than %u secrets", EGRESS_SECRETS_MAX);
      want_secret(p, h->pieces[i].text);
    }
  return r;
}

static int put_hosts(struct arena *a, struct egress_policy *p, const struct json *rules, struct err *err)
{
  p->hosts = arena_alloc(a, RULE_DOMAINS_MAX * sizeof(*p->hosts));
  p->secrets = arena_alloc(a, EGRESS_SECRETS_MAX * sizeof(*p->secrets));
  if (!p->hosts || !p->secrets)
    return err_set(err, -ENOMEM, "no room for the rules");
  for (const struct json *k = rules->kids; k; k = k->next) {
    struct egress_host *h = &p->hosts[p->nhosts++];
    const struct json *headers = network_rule_headers(k);
    *h = (struct egress_host){.pattern = lowered(a, k->key)};
    h->headers = headers ? arena_alloc(a, headers->count * sizeof(*h->headers)) : NULL;
    for (const struct json *v = headers ? headers->kids : NULL; v; v = v->next) {
      struct err why = ERR_NONE;
      if (put_header(a, p, v, &h->headers[h->nheaders++], &why))
        return err_set(err, -EINVAL, "'network.rules': the value of '%.100s': %.200s", v->key.p, why.msg);
    }
  }
  /* The reader wants one beside rules; the warden puts the box's own in its place. */
  p->ca_cert = p->ca_key = STR("-");
  return 0;
}

static int put_proxy(struct egress_policy *p, const struct json *proxy, struct err *err)
{
  const struct json *tls = json_get(proxy, "tls");
  struct proxy_address at;
  struct egress_proxy *x = &p->proxy;
  network_proxy_address(proxy, &at);
  *x = (struct egress_proxy){.kind = at.http ? EGRESS_CONNECT : EGRESS_SOCKS5,
                             .host = at.host,
                             .port = (uint16_t)at.port,
                             .user = json_text(json_get(proxy, "username"), STR_NONE),
                             .password = json_text(json_get(proxy, "password"), STR_NONE),
                             .tls = at.tls || (json_given(tls) && json_get(tls, "enabled")->flag),
                             .server_name = json_text(json_get(tls, "serverName"), STR_NONE),
                             .ca = json_text(json_get(tls, "caCert"), STR_NONE)};
  struct err why = ERR_NONE;
  if (x->ca.n && cert_list_check(x->ca, &why))
    return err_set(err, -EINVAL, "'network.egressProxy.tls.caCert' holds no readable PEM certificate: %.200s", why.msg);
  return 0;
}

static void put_net(struct egress_policy *p, struct str entry)
{
  struct str host, length;
  uint64_t bits = 32;
  uint8_t b[16];
  if (str_cut(entry, '/', &host, &length) && str_u64(length, &bits))
    return;
  if (network_address(host, b) == 32 && p->nallow_nets < EGRESS_NETS_MAX)
    p->allow_nets[p->nallow_nets++] =
        (struct egress_net){(uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3], (uint32_t)bits};
}

static int put_lists(struct arena *a, struct egress_policy *p, const struct network *n, struct buf *names,
                     struct err *err)
{
  p->restricted = (n->allow_out && n->allow_out->count) || (n->deny_out && n->deny_out->count) ||
                  (n->internet && !n->internet->flag);
  p->allow_nets = n->allow_out ? arena_alloc(a, (n->allow_out->count + 1) * sizeof(*p->allow_nets)) : NULL;
  for (const struct json *k = n->allow_out ? n->allow_out->kids : NULL; k; k = k->next)
    if (network_entry(k->text) == ENTRY_DOMAIN) {
      buf_adds(names, lowered(a, k->text));
      buf_addc(names, '\n');
    } else {
      put_net(p, k->text);
    }
  p->allow_names = buf_str(names);
  return buf_failed(names) ? err_set(err, -EINVAL, "'network.allowOut' is too long") : 0;
}

int sandbox_egress_pack(struct arena *a, const struct network *n, struct buf *out, struct err *err)
{
  struct egress_policy p = {.log = EGRESS_LOG_OFF};
  cleanup_buf struct buf names = BUF_INIT(WIRE_MAX);
  bool rules = network_rules_set_headers(n->rules);
  if (!rules && !n->proxy)
    return 0;
  int r = rules ? put_hosts(a, &p, n->rules, err) : 0;
  r = r ? r : n->proxy ? put_proxy(&p, n->proxy, err) : 0;
  r = r ? r : put_lists(a, &p, n, &names, err);
  if (!r)
    egress_policy_pack(out, &p);
  return r;
}

bool sandbox_put_egress(struct req *r, const struct network *n, struct buf *packet)
{
  struct err err = ERR_NONE;
  cleanup_buf struct buf policy = BUF_INIT(WIRE_MAX), rules = BUF_INIT(WIRE_MAX);
  struct jw w = JW(&rules);
  int e = sandbox_egress_pack(r->arena, n, &policy, &err);
  if (e) {
    api_error(r, 400, "%s", err.msg);
    return false;
  }
  if (policy.n)
    wire_put(packet, W_EGRESS, buf_str(&policy));
  if (network_rules_set_headers(n->rules)) {
    network_put_rules(&w, n->rules);
    wire_put(packet, W_RULES, buf_str(&rules));
  }
  if (buf_failed(&policy) || buf_failed(&rules))
    packet->failed = -ENOBUFS;
  if (policy.p)
    explicit_bzero(policy.p, policy.n); /* it may hold a proxy's password */
  return true;
}
