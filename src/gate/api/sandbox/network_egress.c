/* SPDX-License-Identifier: Apache-2.0 */
/* network_egress.c - see network_egress.h. */
#include "gate/api/sandbox/network_egress.h"

#include <stdio.h>

/* ---- egress proxy ---- */

static bool private_address(struct str host)
{
  static const struct {
    uint8_t net[4];
    int bits;
  } v4[] = {{{0, 0, 0, 0}, 8},      {{10, 0, 0, 0}, 8},    {{100, 64, 0, 0}, 10},  {{127, 0, 0, 0}, 8},
            {{169, 254, 0, 0}, 16}, {{172, 16, 0, 0}, 12}, {{192, 168, 0, 0}, 16}, {{224, 0, 0, 0}, 3}};
  uint8_t b[16];
  int bits = network_address(host, b);
  if (bits == 128) {
    static const uint8_t loopback[16] = {[15] = 1}, mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (memcmp(b, mapped, sizeof(mapped)))
      return !memcmp(b, loopback, sizeof(loopback)) || (b[0] & 0xfe) == 0xfc || (b[0] == 0xfe && (b[1] & 0xc0) == 0x80);
    memmove(b, b + 12, 4);
    bits = 32;
  }
  for (size_t i = 0; bits == 32 && i < ARRAY_LEN(v4); i++) {
    uint32_t have = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    uint32_t net =
        (uint32_t)v4[i].net[0] << 24 | (uint32_t)v4[i].net[1] << 16 | (uint32_t)v4[i].net[2] << 8 | v4[i].net[3];
    if (((have ^ net) >> (32 - v4[i].bits)) == 0)
      return true;
  }
  return str_ieq(host, STR("localhost")) || (host.n > 10 && str_ieq(str_skip(host, host.n - 10), STR(".localhost")));
}

static bool split_address(struct str text, struct str *host, uint64_t *port)
{
  ptrdiff_t colon = str_rfind(text, ':');
  *host = colon > 0 ? str_sub(text, 0, (size_t)colon) : STR_NONE;
  if (host->n > 2 && host->p[0] == '[' && host->p[host->n - 1] == ']')
    *host = str_sub(*host, 1, host->n - 2);
  return host->n && !str_u64(str_skip(text, (size_t)colon + 1), port) && *port >= 1 && *port <= 65535;
}

/* What stands before "://", if anything does, says what the proxy speaks. */
static bool split_scheme(struct str text, struct proxy_address *out, struct str *rest)
{
  static const struct {
    const char *scheme;
    bool http, tls;
  } known[] = {{"socks5", false, false}, {"http", true, false}, {"https", true, true}};
  ptrdiff_t at = str_search(text, STR("://"));
  *out = (struct proxy_address){0};
  *rest = at < 0 ? text : str_skip(text, (size_t)at + 3);
  for (size_t i = 0; at >= 0 && i < ARRAY_LEN(known); i++)
    if (str_ieq(str_sub(text, 0, (size_t)at), str_of(known[i].scheme))) {
      out->http = known[i].http;
      out->tls = known[i].tls;
      return true;
    }
  return at < 0;
}

bool network_proxy_address(const struct json *proxy, struct proxy_address *out)
{
  struct str rest;
  uint64_t port = 0;
  bool good = split_scheme(json_text(json_get(proxy, "address"), STR_NONE), out, &rest) &&
              split_address(rest, &out->host, &port);
  out->port = good ? (unsigned)port : 0;
  return good;
}

static int check_address(const struct json *proxy, struct proxy_address *x, struct err *err)
{
  struct str text = json_text(json_get(proxy, "address"), STR_NONE);
  uint8_t b[16];
  if (!network_proxy_address(proxy, x) ||
      (!network_address(x->host, b) && (!network_dns_name(x->host) || network_numeric(x->host))))
    return err_set(err, -EINVAL,
                   "'network.egressProxy.address' must be host:port, or socks5://, http:// or https:// before that, "
                   "not '" STR_FMT "'",
                   STR_ARG(str_sub(text, 0, 200)));
  if (private_address(x->host))
    return err_set(err, -EINVAL, "'network.egressProxy.address' '" STR_FMT "' is a private or local address",
                   STR_ARG(str_sub(text, 0, 200)));
  if (network_address(x->host, b) == 128)
    return err_set(err, -EINVAL,
                   "'network.egressProxy.address' '" STR_FMT "' is an IPv6 address, which sandboxes can't reach; give "
                   "a name or an IPv4 address",
                   STR_ARG(str_sub(text, 0, 200)));
  return 0;
}

/* One or more PEM certificates, as far as can be seen without taking them apart: blocks of base64 that hold one DER
 * sequence each. */
static bool pem_certificates(struct str text)
{
  struct str begin = STR("-----BEGIN CERTIFICATE-----"), end = STR("-----END CERTIFICATE-----");
  size_t found = 0;
  for (ptrdiff_t at; (at = str_search(text, begin)) >= 0; found++) {
    cleanup_buf struct buf plain = BUF_INIT(PROXY_CA_MAX), der = BUF_INIT(PROXY_CA_MAX);
    text = str_skip(text, (size_t)at + begin.n);
    ptrdiff_t to = str_search(text, end);
    if (to < 0)
      return false;
    for (size_t i = 0; i < (size_t)to; i++)
      if (!strchr(" \t\r\n", text.p[i]))
        buf_addc(&plain, text.p[i]);
    if (base64_decode(buf_str(&plain), &der) < 0 || der.n < 4 || (uint8_t)der.p[0] != 0x30)
      return false;
    text = str_skip(text, (size_t)to + end.n);
  }
  return found > 0;
}

static int read_tls(const struct json *tls, const struct proxy_address *x, struct err *err)
{
  if (!json_given(tls))
    return 0;
  const struct json *enabled = json_get(tls, "enabled"), *name = json_get(tls, "serverName"),
                    *ca = json_get(tls, "caCert");
  uint8_t b[16];
  if (tls->type != JSON_OBJECT || !json_is(enabled, JSON_BOOL))
    return err_set(err, -EINVAL, "'network.egressProxy.tls' must be an object with 'enabled' true or false");
  if (!enabled->flag && x->tls)
    return err_set(err, -EINVAL,
                   "'network.egressProxy.tls': 'enabled' is false, but the address begins with https://; give it with "
                   "http:// or leave 'tls' out");
  if (!enabled->flag && (json_given(name) || json_given(ca)))
    return err_set(err, -EINVAL, "'network.egressProxy.tls': 'enabled' is false, so '%s' can't be given",
                   json_given(name) ? "serverName" : "caCert");
  if (json_given(name) && (name->type != JSON_STRING || name->text.n > PROXY_NAME_MAX ||
                           (!network_dns_name(name->text) && network_address(name->text, b) != 32)))
    return err_set(err, -EINVAL,
                   "'network.egressProxy.tls.serverName' must be a host name of at most %d characters, not '" STR_FMT
                   "'",
                   PROXY_NAME_MAX, STR_ARG(str_sub(json_text(name, STR_NONE), 0, 100)));
  if (json_given(ca) && (ca->type != JSON_STRING || ca->text.n > PROXY_CA_MAX))
    return err_set(err, -EINVAL, "'network.egressProxy.tls.caCert' must be a text of at most %d bytes", PROXY_CA_MAX);
  if (json_given(ca) && !pem_certificates(ca->text))
    return err_set(err, -EINVAL, "'network.egressProxy.tls.caCert' holds no readable PEM certificate");
  return 0;
}

/* A text of one line: no control characters but the tab. */
static bool one_line(struct str s)
{
  for (size_t i = 0; i < s.n; i++) {
    unsigned char c = (unsigned char)s.p[i];
    if ((c < 32 && c != '\t') || c == 127)
      return false;
  }
  return true;
}

/* A proxy reads these bytes on its own connection; none of them may end a text there. */
static bool credential(const struct json *v)
{
  return !json_given(v) || (v->type == JSON_STRING && one_line(v->text));
}

int network_read_proxy(const struct json *from, unsigned features, struct network *n, struct err *err)
{
  const struct json *proxy = json_get(from, "egressProxy");
  if (!json_given(proxy))
    return 0;
  const struct json *user = json_get(proxy, "username"), *pass = json_get(proxy, "password");
  struct proxy_address x;
  if (proxy->type != JSON_OBJECT || !json_text(json_get(proxy, "address"), STR_NONE).n)
    return err_set(err, -EINVAL, "'network.egressProxy' must be an object with an address");
  int r = check_address(proxy, &x, err);
  if (r)
    return r;
  if (!credential(user) || !credential(pass))
    return err_set(err, -EINVAL,
                   "'network.egressProxy': username and password must be strings without control "
                   "characters");
  if (json_text(user, STR_NONE).n > PROXY_AUTH_MAX || json_text(pass, STR_NONE).n > PROXY_AUTH_MAX)
    return err_set(err, -EINVAL, "'network.egressProxy': username and password may have %d bytes each", PROXY_AUTH_MAX);
  if (json_text(pass, STR_NONE).n && !json_text(user, STR_NONE).n)
    return err_set(err, -EINVAL, "'network.egressProxy': a password needs a username");
  if (x.http && str_find(json_text(user, STR_NONE), ':') >= 0)
    return err_set(err, -EINVAL, "'network.egressProxy': the username of an HTTP proxy can't hold a colon");
  if ((r = read_tls(json_get(proxy, "tls"), &x, err)))
    return r;
  if (!(features & NETWORK_PROXY))
    return err_set(err, -EPERM, "egress proxies ('network.egressProxy') are not available on this server");
  n->proxy = proxy;
  return 0;
}

static void put_given(struct jw *w, const struct json *from, const char *name)
{
  const struct json *v = json_get(from, name);
  if (!json_given(v))
    return;
  jw_key(w, name);
  jw_value(w, v);
}

void network_put_proxy(struct jw *w, const struct json *proxy)
{
  const struct json *tls = json_get(proxy, "tls");
  if (!proxy)
    return;
  jw_key(w, "egressProxy");
  jw_open(w, '{');
  put_given(w, proxy, "address");
  put_given(w, proxy, "username");
  if (json_given(tls)) {
    jw_key(w, "tls");
    jw_open(w, '{');
    put_given(w, tls, "enabled");
    put_given(w, tls, "serverName");
    jw_close(w, '}');
  }
  jw_close(w, '}');
}

/* ---- header rules ---- */

static bool token_text(struct str s)
{
  for (size_t i = 0; i < s.n; i++) {
    unsigned char c = (unsigned char)s.p[i];
    if (c <= 32 || c >= 127 || strchr("()<>@,;:\\\"/[]?={}", c))
      return false;
  }
  return s.n > 0;
}

/* They frame the message or belong to one connection: who sets them for another's request makes two sides read two
 * different messages. The host decides which rule applies. */
static bool framing_header(struct str name)
{
  static const char *const names[] = {
      "connection",          "content-length",   "expect", "host",    "http2-settings",
      "keep-alive",          "proxy-connection", "te",     "trailer", "transfer-encoding",
      "proxy-authorization", "upgrade"};
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    if (str_ieq(name, str_of(names[i])))
      return true;
  return false;
}

/* One line of text as a header carries it: no control characters but the tab, no space at either end. */
static bool header_value(struct str s)
{
  return one_line(s) && (!s.n || (!strchr(" \t", s.p[0]) && !strchr(" \t", s.p[s.n - 1])));
}

static bool placeholder_name(struct str name)
{
  for (size_t i = 0; i < name.n; i++) {
    unsigned char c = (unsigned char)name.p[i];
    bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    if (!word)
      return false;
  }
  return name.n > 0 && name.n <= 128;
}

/* Placeholders are ${e2b.identity.tokens.NAME} and ${e2b.secrets.NAME}. Another ${ is refused: text that looks like a
 * placeholder and goes out as it is would be noticed by nobody. */
static int check_placeholders(struct str value, struct err *err)
{
  for (ptrdiff_t at; (at = str_search(value, STR("${"))) >= 0;) {
    struct str body, rest, name = STR_NONE;
    bool closed = str_cut(str_skip(value, (size_t)at + 2), '}', &body, &rest);
    bool secret = str_starts(body, STR("e2b.secrets.")), token = str_starts(body, STR("e2b.identity.tokens."));
    if (secret || token)
      name = str_skip(body, secret ? 12 : 20);
    if (!closed || str_find(body, '{') >= 0)
      return err_set(err, -EINVAL, "'network.rules': the placeholder '${" STR_FMT "' is not closed, or nested",
                     STR_ARG(str_sub(body, 0, 100)));
    if (!secret && !token)
      return err_set(err, -EINVAL,
                     "'network.rules': unknown placeholder '${" STR_FMT
                     "}'; there are ${e2b.secrets.NAME} and ${e2b.identity.tokens.NAME}",
                     STR_ARG(str_sub(body, 0, 100)));
    if (!placeholder_name(name))
      return err_set(err, -EINVAL, "'network.rules': the placeholder '${" STR_FMT "}' names no %s",
                     STR_ARG(str_sub(body, 0, 100)), secret ? "secret" : "token");
    value = rest;
  }
  return 0;
}

static int check_header(const struct json *h, const char *domain, struct err *err)
{
  if (!token_text(h->key) || h->key.n > HEADER_NAME_MAX)
    return err_set(err, -EINVAL, "'network.rules.%s': '%.100s' is not a header name of at most %d characters", domain,
                   h->key.p, HEADER_NAME_MAX);
  if (framing_header(h->key))
    return err_set(err, -EINVAL, "'network.rules.%s': the header '%.100s' can't be set by a rule", domain, h->key.p);
  for (const struct json *k = h->next; k; k = k->next)
    if (str_ieq(k->key, h->key))
      return err_set(err, -EINVAL, "'network.rules.%s': the header '%.100s' is given twice", domain, h->key.p);
  if (h->type != JSON_STRING || h->text.n > HEADER_VALUE_MAX || !header_value(h->text))
    return err_set(err, -EINVAL,
                   "'network.rules.%s': the value of '%.100s' must be one line of at most %d bytes, without control "
                   "characters and without spaces around it",
                   domain, h->key.p, HEADER_VALUE_MAX);
  return check_placeholders(h->text, err);
}

static int check_headers(const struct json *headers, const char *domain, struct err *err)
{
  if (!json_given(headers))
    return 0;
  if (headers->type != JSON_OBJECT || headers->count > RULE_HEADERS_MAX)
    return err_set(err, -EINVAL, "'network.rules.%s': headers must be an object of at most %d strings", domain,
                   RULE_HEADERS_MAX);
  for (const struct json *h = headers->kids; h; h = h->next) {
    int r = check_header(h, domain, err);
    if (r)
      return r;
  }
  return 0;
}

const struct json *network_rule_headers(const struct json *rule)
{
  const struct json *headers = json_get(json_get(rule->kids, "transform"), "headers");
  return json_given(headers) && headers->count ? headers : NULL;
}

struct str network_rule_domain(const struct json *rule, char out[RULE_DOMAIN_MAX + 1])
{
  size_t n = MIN(rule->key.n, (size_t)RULE_DOMAIN_MAX);
  for (size_t i = 0; i < n; i++) {
    char c = rule->key.p[i];
    out[i] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
  }
  return str_make(out, n);
}

/* Each "${" of a value that was checked is one. */
static size_t placeholders(struct str value)
{
  size_t n = 0;
  for (ptrdiff_t at; (at = str_search(value, STR("${"))) >= 0; n++)
    value = str_skip(value, (size_t)at + 2);
  return n;
}

static int check_rule(const struct json *rule, size_t *bytes, size_t *filled, struct err *err)
{
  char domain[RULE_DOMAIN_MAX + 1];
  struct str name = str_starts(rule->key, STR("*.")) ? str_skip(rule->key, 2) : rule->key;
  if (rule->key.n > RULE_DOMAIN_MAX || !network_dns_name(name) || network_numeric(name) ||
      str_copyz(rule->key, domain, sizeof(domain)))
    return err_set(err, -EINVAL,
                   "'network.rules': '%.200s' is not a domain name of at most %d characters, nor '*.' before one",
                   rule->key.p, RULE_DOMAIN_MAX);
  for (const struct json *k = rule->next; k; k = k->next)
    if (str_ieq(k->key, rule->key))
      return err_set(err, -EINVAL, "'network.rules' names the domain '%s' twice", domain);
  if (rule->type != JSON_ARRAY || rule->count != 1 || rule->kids->type != JSON_OBJECT)
    return err_set(err, -EINVAL, "'network.rules.%s' must be an array of one rule", domain);
  const struct json *transform = json_get(rule->kids, "transform");
  if (json_given(transform) && transform->type != JSON_OBJECT)
    return err_set(err, -EINVAL, "'network.rules.%s': transform must be an object", domain);
  int r = check_headers(json_get(transform, "headers"), domain, err);
  const struct json *headers = r ? NULL : network_rule_headers(rule);
  *bytes += rule->key.n;
  for (const struct json *h = headers ? headers->kids : NULL; h; h = h->next) {
    *bytes += h->key.n + h->text.n;
    *filled += placeholders(h->text);
  }
  return r;
}

int network_read_rules(const struct json *from, unsigned features, struct network *n, struct err *err)
{
  const struct json *rules = json_get(from, "rules");
  size_t bytes = 0, filled = 0;
  if (!json_given(rules))
    return 0;
  if (rules->type != JSON_OBJECT)
    return err_set(err, -EINVAL, "'network.rules' must be an object: domain -> rules");
  if (rules->count > RULE_DOMAINS_MAX)
    return err_set(err, -EINVAL, "'network.rules' names %zu domains; at most %d are allowed", rules->count,
                   RULE_DOMAINS_MAX);
  for (const struct json *k = rules->kids; k; k = k->next) {
    int r = check_rule(k, &bytes, &filled, err);
    if (r)
      return r;
  }
  if (bytes > RULES_BYTES_MAX)
    return err_set(err, -EINVAL, "'network.rules' holds %zu bytes of names and values; at most %d are allowed", bytes,
                   RULES_BYTES_MAX);
  if (filled > RULE_FILLED_MAX)
    return err_set(err, -EINVAL, "'network.rules' holds %zu placeholders; at most %d are allowed for a sandbox", filled,
                   RULE_FILLED_MAX);
  if (rules->count && !(features & NETWORK_RULES))
    return err_set(err, -EINVAL, "header rules ('network.rules') are not available on this server");
  n->rules = rules->count ? rules : NULL;
  return 0;
}

void network_put_rules(struct jw *w, const struct json *rules)
{
  jw_open(w, '{');
  for (const struct json *k = rules->kids; k; k = k->next) {
    char domain[RULE_DOMAIN_MAX + 1];
    jw_keys(w, network_rule_domain(k, domain));
    jw_open(w, '[');
    jw_open(w, '{');
    if (json_given(json_get(k->kids, "transform"))) {
      jw_key(w, "transform");
      jw_open(w, '{');
      put_given(w, json_get(k->kids, "transform"), "headers");
      jw_close(w, '}');
    }
    jw_close(w, '}');
    jw_close(w, ']');
  }
  jw_close(w, '}');
}

bool network_rules_set_headers(const struct json *rules)
{
  for (const struct json *k = rules ? rules->kids : NULL; k; k = k->next)
    if (network_rule_headers(k))
      return true;
  return false;
}
