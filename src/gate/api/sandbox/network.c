/* SPDX-License-Identifier: Apache-2.0 */
/* network.c - see network.h. Messages name the entry that is wrong, because lists are long and written by programs. */
#include "gate/api/sandbox/network.h"

#include "gate/api/sandbox/network_egress.h"

#include <arpa/inet.h>
#include <stdio.h>

#define PORTS_MAX        NETWORK_PORTS_MAX
#define ENVD_PORT_INSIDE 49983

/* ---- entries ---- */

bool network_dns_name(struct str s)
{
  size_t label = 0;
  if (!s.n || s.n > 253)
    return false;
  for (size_t i = 0; i < s.n; i++) {
    char c = s.p[i];
    if (c == '.') {
      if (!label || s.p[i - 1] == '-')
        return false;
      label = 0;
      continue;
    }
    bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if ((!word && c != '-') || (c == '-' && !label) || ++label > 63)
      return false;
  }
  return label > 0 && s.p[s.n - 1] != '-';
}

bool network_numeric(struct str s)
{
  for (size_t i = 0; i < s.n; i++)
    if (!(s.p[i] >= '0' && s.p[i] <= '9') && s.p[i] != '.' && s.p[i] != '/' && s.p[i] != ':')
      return false;
  return s.n > 0;
}

int network_address(struct str s, uint8_t out[16])
{
  char text[64];
  if (str_copyz(s, text, sizeof(text)))
    return 0;
  if (inet_pton(AF_INET, text, out) == 1)
    return 32;
  return inet_pton(AF_INET6, text, out) == 1 ? 128 : 0;
}

/* *bits: of the address; *prefix: of the range, or all of them. */
static enum network_entry numeric_entry(struct str text, uint8_t bytes[16], int *bits, int *prefix)
{
  struct str host, length;
  bool range = str_cut(text, '/', &host, &length);
  uint64_t n = 0;
  *bits = network_address(host, bytes);
  if (!*bits || (range && (str_u64(length, &n) || n > (uint64_t)*bits)))
    return ENTRY_BAD;
  *prefix = range ? (int)n : *bits;
  return range ? ENTRY_RANGE : ENTRY_ADDRESS;
}

enum network_entry network_entry(struct str text)
{
  uint8_t bytes[16];
  int bits, prefix;
  enum network_entry kind = numeric_entry(text, bytes, &bits, &prefix);
  if (kind != ENTRY_BAD)
    return kind;
  if (network_numeric(text) || str_find(text, '/') >= 0 || str_find(text, ':') >= 0)
    return ENTRY_BAD;
  struct str name = str_starts(text, STR("*.")) ? str_skip(text, 2) : text;
  return str_is(text, "*") || network_dns_name(name) ? ENTRY_DOMAIN : ENTRY_BAD;
}

/* A range that begins at the address of all zeros, however it is written; only the literal for all traffic means
 * something. */
static bool unspecified(struct str text)
{
  uint8_t bytes[16];
  int bits, prefix;
  if (str_is(text, NETWORK_ALL) || numeric_entry(text, bytes, &bits, &prefix) == ENTRY_BAD)
    return false;
  for (int i = 0; i < prefix; i++)
    if (bytes[i / 8] & (0x80 >> (i % 8)))
      return false;
  return true;
}

/* ---- lists ---- */

static int want_list(const struct json *from, const char *name, const struct json **out, struct err *err)
{
  const struct json *v = json_get(from, name);
  if (!json_given(v))
    return 0;
  if (v->type != JSON_ARRAY)
    return err_set(err, -EINVAL, "'network.%s' must be an array", name);
  *out = v;
  return 0;
}

static int check_entry(const struct json *k, const char *name, bool domains, enum network_entry *kind, struct err *err)
{
  if (k->type != JSON_STRING)
    return err_set(err, -EINVAL, "'network.%s' must be an array of strings", name);
  *kind = network_entry(k->text);
  if (*kind == ENTRY_DOMAIN && !domains)
    return err_set(err, -EINVAL, "'network.%s': '%.200s' is a domain; only IP addresses and CIDR ranges can be denied",
                   name, k->text.p);
  if (*kind == ENTRY_BAD)
    return err_set(err, -EINVAL, "'network.%s': '%.200s' is not an IP address%s", name, k->text.p,
                   domains ? ", a CIDR range or a domain" : " or a CIDR range");
  if (unspecified(k->text))
    return err_set(err, -EINVAL,
                   "'network.%s': '%.200s' is an unspecified address; '" NETWORK_ALL "' means all traffic", name,
                   k->text.p);
  return 0;
}

static bool denies_all(const struct network *n)
{
  if (n->internet && !n->internet->flag)
    return true;
  for (const struct json *k = n->deny_out ? n->deny_out->kids : NULL; k; k = k->next)
    if (str_is(k->text, NETWORK_ALL))
      return true;
  return false;
}

static int read_lists(const struct json *from, struct network *n, struct err *err)
{
  enum network_entry kind;
  const struct json *domain = NULL;
  int r = want_list(from, "allowOut", &n->allow_out, err);
  r = r ? r : want_list(from, "denyOut", &n->deny_out, err);
  for (const struct json *k = n->deny_out ? n->deny_out->kids : NULL; !r && k; k = k->next)
    r = check_entry(k, "denyOut", false, &kind, err);
  for (const struct json *k = n->allow_out ? n->allow_out->kids : NULL; !r && k; k = k->next) {
    r = check_entry(k, "allowOut", true, &kind, err);
    domain = !r && kind == ENTRY_DOMAIN ? k : domain;
  }
  if (!r && domain && !denies_all(n))
    r = err_set(err, -EINVAL,
                "'network.allowOut' holds the domain '%.200s': when domains are allowed, 'network.denyOut' must "
                "contain '" NETWORK_ALL "' to block all other traffic",
                domain->text.p);
  return r;
}

/* ---- name servers ---- */

static int read_dns(const struct json *from, struct network *n, struct err *err)
{
  uint8_t bytes[16];
  int r = want_list(from, "dnsServers", &n->dns_servers, err);
  if (r || !n->dns_servers)
    return r;
  if (n->dns_servers->count > NETWORK_DNS_MAX)
    return err_set(err, -EINVAL, "'network.dnsServers' holds %zu addresses; at most %d are allowed",
                   n->dns_servers->count, NETWORK_DNS_MAX);
  for (const struct json *k = n->dns_servers->kids; k; k = k->next) {
    if (k->type != JSON_STRING)
      return err_set(err, -EINVAL, "'network.dnsServers' must be an array of strings");
    if (network_address(k->text, bytes) != 32)
      return err_set(err, -EINVAL, "'network.dnsServers': '%.200s' is not an IPv4 address", k->text.p);
  }
  return 0;
}

/* ---- what comes in ---- */

static int read_mask(const struct json *from, struct network *n, struct err *err)
{
  const struct json *v = json_get(from, "maskRequestHost");
  if (!json_given(v))
    return 0;
  struct str host, port;
  bool good = v->type == JSON_STRING && v->text.n < 200;
  str_cut(good ? v->text : STR(""), ':', &host, &port);
  uint64_t number;
  bool has_port = good && str_find(v->text, ':') >= 0;
  good = good && (!has_port || str_is(port, "${PORT}") || (!str_u64(port, &number) && number >= 1 && number <= 65535));
  /* ${PORT} may also stand inside the name: "${PORT}-box.example.com". */
  cleanup_buf struct buf plain = BUF_INIT(512);
  for (ptrdiff_t at; good && (at = str_search(host, STR("${PORT}"))) >= 0; host = str_skip(host, (size_t)at + 7)) {
    buf_adds(&plain, str_sub(host, 0, (size_t)at));
    buf_addc(&plain, '0');
  }
  buf_adds(&plain, host);
  if (!good || !network_dns_name(buf_str(&plain)))
    return err_set(err, -EINVAL,
                   "'network.maskRequestHost' must be an ASCII host name with an optional port (${PORT} is replaced)");
  n->mask_host = v;
  return 0;
}

static int read_ports(const struct json *from, unsigned features, struct network *n, struct err *err)
{
  int r = want_list(from, "httpsPorts", &n->https_ports, err);
  if (r || !n->https_ports)
    return r;
  if (n->https_ports->count > PORTS_MAX)
    return err_set(err, -EINVAL, "'network.httpsPorts' holds %zu ports; at most %d are allowed", n->https_ports->count,
                   PORTS_MAX);
  uint8_t seen[65536 / 8] = {0};
  for (const struct json *k = n->https_ports->kids; k; k = k->next) {
    int64_t port;
    if (k->type != JSON_NUMBER || json_int(k, &port) || port < 1 || port > 65535)
      return err_set(err, -EINVAL, "'network.httpsPorts' must hold port numbers from 1 to 65535");
    if (port == ENVD_PORT_INSIDE)
      return err_set(err, -EINVAL, "'network.httpsPorts' may not hold %d: it is the sandbox's own", ENVD_PORT_INSIDE);
    if (seen[port / 8] & (1 << (port % 8)))
      return err_set(err, -EINVAL, "'network.httpsPorts' holds %lld twice", (long long)port);
    seen[port / 8] |= (uint8_t)(1 << (port % 8));
  }
  if (n->https_ports->count && !(features & NETWORK_HTTPS))
    return err_set(err, -EINVAL, "'network.httpsPorts' is not available on this server");
  return 0;
}

static int read_public(const struct json *from, struct network *n, struct err *err)
{
  const struct json *v = json_get(from, "allowPublicTraffic");
  if (!json_given(v))
    return 0;
  if (v->type != JSON_BOOL)
    return err_set(err, -EINVAL, "'network.allowPublicTraffic' must be true or false");
  n->public = v->flag;
  return 0;
}

/* ---- the whole ---- */

int network_read(const struct json *from, const struct json *internet, unsigned features, struct network *n,
                 struct err *err)
{
  *n = (struct network){.public = true};
  if (json_given(internet) && internet->type != JSON_BOOL)
    return err_set(err, -EINVAL, "'allow_internet_access' must be true or false");
  n->internet = json_given(internet) ? internet : NULL;
  if (!json_given(from))
    return 0;
  if (from->type != JSON_OBJECT)
    return err_set(err, -EINVAL, "'network' must be an object");
  n->given = true;
  int r = read_public(from, n, err);
  r = r ? r : read_lists(from, n, err);
  r = r ? r : read_dns(from, n, err);
  r = r ? r : read_mask(from, n, err);
  r = r ? r : read_ports(from, features, n, err);
  r = r ? r : network_read_rules(from, features, n, err);
  return r ? r : network_read_proxy(from, features, n, err);
}

void network_keep_ingress(struct network *next, const struct json *old)
{
  const struct json *public = json_get(old, "allowPublicTraffic");
  next->public = !json_is(public, JSON_BOOL) || public->flag;
  next->mask_host = json_get(old, "maskRequestHost");
  next->https_ports = json_get(old, "httpsPorts");
}

bool network_said(const struct network *n)
{
  return !n->public || n->allow_out || n->deny_out || n->rules || n->https_ports || n->mask_host || n->proxy ||
         n->dns_servers;
}

static void put_member(struct jw *w, const char *name, const struct json *v)
{
  if (!v)
    return;
  jw_key(w, name);
  jw_value(w, v);
}

static void put_settings(struct jw *w, const struct network *n, bool rules)
{
  jw_open(w, '{');
  jw_key(w, "allowPublicTraffic");
  jw_bool(w, n->public);
  put_member(w, "allowOut", n->allow_out);
  if (n->internet && !n->internet->flag) { /* the same as denying everything, whatever else was denied */
    jw_key(w, "denyOut");
    jw_open(w, '[');
    jw_z(w, NETWORK_ALL);
    jw_close(w, ']');
  } else {
    put_member(w, "denyOut", n->deny_out);
  }
  put_member(w, "dnsServers", n->dns_servers);
  put_member(w, "maskRequestHost", n->mask_host);
  put_member(w, "httpsPorts", n->https_ports);
  if (rules && n->rules) {
    jw_key(w, "rules");
    network_put_rules(w, n->rules);
  }
  network_put_proxy(w, n->proxy);
  jw_close(w, '}');
}

void network_put(struct jw *w, const struct network *n)
{
  put_settings(w, n, true);
}

void network_put_open(struct jw *w, const struct network *n)
{
  put_settings(w, n, !network_rules_set_headers(n->rules));
}

void network_lines(struct buf *b, const struct json *list)
{
  for (const struct json *k = list ? list->kids : NULL; k; k = k->next) {
    buf_adds(b, k->text);
    buf_addc(b, '\n');
  }
}

static bool holds_domain(const struct json *list)
{
  for (const struct json *k = list ? list->kids : NULL; k; k = k->next)
    if (network_entry(k->text) == ENTRY_DOMAIN)
      return true;
  return false;
}

void network_allow_lines(struct buf *b, const struct network *n)
{
  network_lines(b, n->allow_out);
  if (!n->dns_servers || !holds_domain(n->allow_out))
    return;
  if (!n->dns_servers->count)
    buf_addz(b, "dns:none\n");
  for (const struct json *k = n->dns_servers->kids; k; k = k->next)
    buf_addf(b, "dns:" STR_FMT "\n", STR_ARG(k->text));
}
