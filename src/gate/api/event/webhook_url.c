/* SPDX-License-Identifier: Apache-2.0 */
/* webhook_url.c - see webhook_url.h. */
#include "gate/api/event/webhook_url.h"

#include <arpa/inet.h>

#define SHOWN 200 /* bytes of a wrong URL in the message */

static int wrong(struct err *err, struct str url, const char *why)
{
  return err_set(err, -EINVAL,
                 "'url' must be an absolute http or https URL, such as https://example.com/hook, not '" STR_FMT "': %s",
                 STR_ARG(str_sub(url, 0, SHOWN)), why);
}

static bool plain(struct str s)
{
  for (size_t i = 0; i < s.n; i++)
    if (s.p[i] <= ' ' || s.p[i] > '~' || strchr("\"<>\\^`{|}", s.p[i]))
      return false;
  return true;
}

static bool name_valid(struct str host)
{
  for (size_t i = 0; i < host.n; i++) {
    char c = host.p[i];
    bool fine =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
    if (!fine)
      return false;
  }
  return host.n && host.n < 254 && host.p[0] != '.' && host.p[0] != '-';
}

static bool bracketed_valid(struct str host)
{
  char text[INET6_ADDRSTRLEN];
  struct in6_addr address;
  return host.n > 2 && !str_copyz(str_sub(host, 1, host.n - 2), text, sizeof(text)) &&
         inet_pton(AF_INET6, text, &address) == 1;
}

/* Splits "host", "host:port", "[address]" and "[address]:port". */
static bool split_port(struct str authority, struct str *host, struct str *port)
{
  *port = STR_NONE;
  if (authority.n && authority.p[0] == '[') {
    ptrdiff_t end = str_find(authority, ']');
    if (end < 0)
      return false;
    *host = str_sub(authority, 0, (size_t)end + 1);
    struct str rest = str_skip(authority, (size_t)end + 1);
    if (rest.n && rest.p[0] != ':')
      return false;
    *port = str_skip(rest, 1);
    return !rest.n || port->n;
  }
  return !str_cut(authority, ':', host, port) || port->n;
}

int webhook_url_check(struct str url, struct buf *origin, struct err *err)
{
  static const struct {
    const char *prefix;
    unsigned port;
  } schemes[] = {{"http://", 80}, {"https://", 443}};
  size_t i = 0;
  if (url.n > WEBHOOK_URL_MAX)
    return err_set(err, -EINVAL, "'url' has %zu bytes, more than %d: shorten it", url.n, WEBHOOK_URL_MAX);
  while (i < ARRAY_LEN(schemes) && !str_istarts(url, str_of(schemes[i].prefix)))
    i++;
  if (i == ARRAY_LEN(schemes))
    return wrong(err, url, "it begins with neither http:// nor https://");
  if (!plain(url))
    return wrong(err, url, "it holds a character that must be percent-encoded");
  struct str rest = str_skip(url, strlen(schemes[i].prefix)), host, port_text;
  size_t end = 0;
  while (end < rest.n && rest.p[end] != '/' && rest.p[end] != '?' && rest.p[end] != '#')
    end++;
  struct str authority = str_sub(rest, 0, end);
  uint64_t port = schemes[i].port;
  if (str_find(authority, '@') >= 0)
    return wrong(err, STR("(not shown)"), "it holds credentials, which webhooks don't take; use the signature");
  if (!split_port(authority, &host, &port_text) || (port_text.n && (str_u64(port_text, &port) || !port)) ||
      port > 65535)
    return wrong(err, url, "its port must be a number from 1 to 65535");
  if (!(host.n && host.p[0] == '[' ? bracketed_valid(host) : name_valid(host)))
    return wrong(err, url, "its host must be a name or an address");
  buf_addz(origin, schemes[i].prefix);
  for (size_t k = 0; k < host.n; k++)
    buf_addc(origin, host.p[k] >= 'A' && host.p[k] <= 'Z' ? (char)(host.p[k] + 32) : host.p[k]);
  buf_addf(origin, ":%llu", (unsigned long long)port);
  return 0;
}

/* Also the ways of inet_aton, such as 127.1, 0x7f000001 and 2130706433, which resolvers take for addresses. */
static bool read_address(struct str host, uint16_t port, struct sockaddr_storage *out)
{
  struct sockaddr_in *four = (struct sockaddr_in *)out;
  struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
  char text[INET6_ADDRSTRLEN];
  bool bracketed = host.n > 2 && host.p[0] == '[';
  *out = (struct sockaddr_storage){0};
  if (str_copyz(bracketed ? str_sub(host, 1, host.n - 2) : host, text, sizeof(text)))
    return false;
  if (bracketed) {
    *six = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
    return inet_pton(AF_INET6, text, &six->sin6_addr) == 1;
  }
  *four = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
  return inet_aton(text, &four->sin_addr);
}

int webhook_address_check(struct str origin, const struct receiver_rules *rules, struct err *err)
{
  struct str authority = str_skip(origin, (size_t)str_search(origin, STR("://")) + 3), host, port_text;
  struct sockaddr_storage address;
  uint64_t port = 0;
  if (!split_port(authority, &host, &port_text) || str_u64(port_text, &port) ||
      !read_address(host, (uint16_t)port, &address))
    return 0;
  const char *why = receiver_refused(rules, (struct sockaddr *)&address, false);
  return why ? err_set(err, -EINVAL, "'url' is refused: the address " STR_FMT " %s", STR_ARG(host), why) : 0;
}
