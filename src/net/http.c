/* SPDX-License-Identifier: Apache-2.0 */
/* http.c - the small things of http.h: looking into heads, reason phrases, the default limits. */
#include "net/http.h"

#include "net/netloop.h"

const struct http_limits http_limits_default = {
    .head_max = (size_t)64 << 10,
    .headers_max = 200,
    .body_max = (size_t)16 << 20,
    .high_water = (size_t)256 << 10,
    .head_ms = 30 * 1000,
    .idle_ms = 640 * 1000,
    .body_ms = 300 * 1000,
    .linger_ms = 0,
    .conns_max = 10000,
};

struct net *http_gather(uv_loop_t *loop)
{
  struct net *n = net_of(loop);
  net_gather(n);
  return n;
}

void http_let_go(struct net *n)
{
  net_let_go(n);
  net_unref(n);
}

struct str http_header(const struct http_head *head, const char *name)
{
  struct str want = str_of(name);
  for (size_t i = 0; i < head->nheaders; i++)
    if (head->headers[i].name.n == want.n && str_ieq(head->headers[i].name, want))
      return head->headers[i].value;
  return STR_NONE;
}

static bool list_has(struct str list, struct str token)
{
  struct str word;
  while (list.n) {
    str_cut(list, ',', &word, &list);
    if (str_ieq(str_trim(word), token))
      return true;
  }
  return false;
}

struct str http_bearer(const struct http_head *head)
{
  struct str given = http_header(head, "authorization");
  return str_istarts(given, STR("bearer ")) ? str_trim(str_skip(given, 7)) : STR_NONE;
}

bool http_header_has(const struct http_head *head, const char *name, const char *token)
{
  struct str want = str_of(name);
  for (size_t i = 0; i < head->nheaders; i++)
    if (str_ieq(head->headers[i].name, want) && list_has(head->headers[i].value, str_of(token)))
      return true;
  return false;
}

static bool is_http_again(struct str protocol)
{
  return str_ieq(protocol, STR("h2c")) || str_ieq(protocol, STR("h2")) || str_istarts(protocol, STR("http")) ||
         str_istarts(protocol, STR("tls"));
}

struct str http_upgrade(const struct http_head *head, bool bodied)
{
  struct str offer = http_header(head, "upgrade"), word, rest = offer;
  if (!offer.n || bodied || head->minor == 0 || !http_header_has(head, "connection", "upgrade"))
    return STR_NONE;
  while (rest.n) {
    str_cut(rest, ',', &word, &rest);
    if (is_http_again(str_trim(word)))
      return STR_NONE;
  }
  return offer;
}

bool http_upgrade_taken(struct str offer, const struct http_head *answer)
{
  struct str taken = http_header(answer, "upgrade");
  return taken.n && str_find(taken, ',') < 0 && list_has(offer, str_trim(taken));
}

const char *http_reason(int status)
{
  static const struct {
    int status;
    const char *words;
  } known[] = {
      {200, "OK"},
      {201, "Created"},
      {204, "No Content"},
      {404, "Not Found"},
      {100, "Continue"},
      {101, "Switching Protocols"},
      {103, "Early Hints"},
      {202, "Accepted"},
      {203, "Non-Authoritative Information"},
      {205, "Reset Content"},
      {206, "Partial Content"},
      {207, "Multi-Status"},
      {300, "Multiple Choices"},
      {301, "Moved Permanently"},
      {302, "Found"},
      {303, "See Other"},
      {304, "Not Modified"},
      {307, "Temporary Redirect"},
      {308, "Permanent Redirect"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {402, "Payment Required"},
      {403, "Forbidden"},
      {405, "Method Not Allowed"},
      {406, "Not Acceptable"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {410, "Gone"},
      {411, "Length Required"},
      {412, "Precondition Failed"},
      {413, "Content Too Large"},
      {414, "URI Too Long"},
      {415, "Unsupported Media Type"},
      {416, "Range Not Satisfiable"},
      {417, "Expectation Failed"},
      {418, "I'm a teapot"},
      {421, "Misdirected Request"},
      {422, "Unprocessable Content"},
      {423, "Locked"},
      {425, "Too Early"},
      {426, "Upgrade Required"},
      {428, "Precondition Required"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {499, "Client Closed Request"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
      {507, "Insufficient Storage"},
      {511, "Network Authentication Required"},
  };
  for (size_t i = 0; i < ARRAY_LEN(known); i++)
    if (known[i].status == status)
      return known[i].words;
  return "Unknown";
}
