/* SPDX-License-Identifier: Apache-2.0 */
/* edge_error.c - refusals at the edge, in the exact words clients look for. */
#include "gate/edge/edge_error.h"

#include <stdio.h>

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* few errors have all fields */

struct words {
  int status;
  const char *title, *message; /* message NULL: the detail is the message */
  bool box, port, path, limit;
  const char *page; /* more for people, who see a page */
};

static const struct words words[] = {
    [EDGE_BAD_TARGET] = {400, "Bad Request", NULL, false, false, false},
    [EDGE_NOT_FOUND] = {502, "Sandbox Not Found", "The sandbox was not found", true, false, false},
    [EDGE_PAUSED] = {502, "Sandbox Not Found", "The sandbox was not found", true, .page = "it is paused"},
    [EDGE_PORT_CLOSED] = {502, "Closed Port", "The sandbox is running but port is not open", true, true, false},
    [EDGE_TOKEN_MISSING] =
        {403, "Missing Traffic Access Token",
         "Sandbox is secured with traffic access token. Token header 'e2b-traffic-access-token' is missing", true,
         false, false},
    [EDGE_TOKEN_WRONG] =
        {403, "Invalid Traffic Access Token",
         "Sandbox is secured with traffic access token. Provided token in header 'e2b-traffic-access-token' is invalid",
         true, false, false},
    [EDGE_INTERNAL] = {404, "Endpoint Not Available", "This endpoint is reserved for the E2B control plane", false,
                       false, true},
    [EDGE_BROKEN] = {502, "Bad Gateway", NULL, true, true, false},
    [EDGE_RESUME_REFUSED] = {403, "Unable to Resume Sandbox",
                             "The sandbox is paused and the credentials of this request do not allow resuming it", true,
                             false, false},
    [EDGE_TRANSITION] = {409, "Sandbox Still Transitioning", "The sandbox is changing its state; try again in a moment",
                         true, false, false},
    [EDGE_TEAM_LIMIT] = {429, "Sandbox Limit Reached", NULL, true, false, false},
    [EDGE_DRAINING] = {503, "Server Draining", NULL, true, false, false},
    [EDGE_NO_MEMORY] = {503, "Server Short of Memory", NULL, true, false, false},
    [EDGE_TOO_MANY] = {429, "Too Many Connections", "The sandbox has too many open connections", true, false, false,
                       true},
    [EDGE_TEAM_BUSY] = {429, "Too Many Connections", "The team of this sandbox has too many open connections", true,
                        false, false, true},
    [EDGE_UNSIGNED] = {401, "Unauthorized", NULL, false, false, false},
    [EDGE_ACCESS_MISSING] = {401, "Missing Access Token",
                             "Sandbox is secured with an access token. Token header 'X-Access-Token' is missing, and "
                             "this client has shown neither "
                             "the token nor an API key of the sandbox's team before",
                             true, false, false},
    [EDGE_ACCESS_WRONG] =
        {401, "Invalid Access Token",
         "Sandbox is secured with an access token. Provided token in header 'X-Access-Token' is invalid", true, false,
         false},
    [EDGE_UNKNOWN_MANY] = {429, "Too Many Unknown Sandboxes",
                           "Too many requests for sandboxes that do not exist from this address; try again later",
                           false, false, false},
    [EDGE_THROTTLED] = {429, "Too Many Attempts",
                        "Too many wrong tokens or signatures from this address; try again later", false, false, false},
};

static bool contains(struct str s, const char *word)
{
  size_t n = strlen(word);
  for (size_t i = 0; i + n <= s.n; i++)
    if (str_ieq(str_sub(s, i, n), str_of(word)))
      return true;
  return false;
}

#define LOOK_MAX 512 /* bytes of a header that are searched for words */

bool edge_wants_page(const struct http_head *h)
{
  static const char *const browsers[] = {"mozilla", "chrome", "safari", "firefox", "edge", "opera", "msie"};
  static const char *const scripted[] = {"cors", "no-cors", "same-origin", "websocket"};
  struct str agent = str_sub(http_header(h, "user-agent"), 0, LOOK_MAX),
             accept = str_sub(http_header(h, "accept"), 0, LOOK_MAX), mode = http_header(h, "sec-fetch-mode");
  bool browser = false;
  for (size_t i = 0; i < ARRAY_LEN(browsers); i++)
    browser |= contains(agent, browsers[i]);
  if (!browser || (contains(accept, "application/json") && !contains(accept, "text/html")))
    return false;
  for (size_t i = 0; i < ARRAY_LEN(scripted); i++)
    if (str_ieq(mode, str_of(scripted[i])))
      return false;
  return str_ieq(mode, STR("navigate")) || !http_header(h, "x-requested-with").p;
}

static void put_text(struct buf *b, struct str s)
{
  for (size_t i = 0; i < s.n; i++) {
    char c = s.p[i];
    if (c == '<' || c == '>' || c == '&' || c == '"')
      buf_addf(b, "&#%d;", c);
    else
      buf_addc(b, c);
  }
}

static void put_page(struct buf *b, const struct words *w, const char *box, unsigned port, struct str message)
{
  buf_addf(b,
           "<html><head><meta charset=\"utf-8\"><title>%s</title><style>body{font:16px/1.5 "
           "system-ui,sans-serif;margin:15vh auto;max-width:38rem;"
           "padding:0 1rem;color:#222}code{background:#eee;padding:.1em "
           ".3em;border-radius:3px}</style></head><body><h1>%s</h1><p>",
           w->title, w->title);
  if (w->port && w->message)
    buf_addf(b, "The sandbox <code>%s</code> is running but there's no service running on port <code>%u</code>.", box,
             port);
  else
    put_text(b, message);
  if (w->box && !(w->port && w->message))
    buf_addf(b, "</p><p>Sandbox: <code>%s</code>", box);
  buf_addz(b, "</p></body></html>");
}

static void put_json(struct buf *b, const struct words *w, const char *box, unsigned port, struct str message,
                     struct str path)
{
  struct jw j = JW(b);
  jw_open(&j, '{');
  if (w->box) {
    jw_key(&j, "sandboxId");
    jw_z(&j, box);
  }
  jw_key(&j, "message");
  jw_str(&j, message);
  if (w->port) {
    jw_key(&j, "port");
    jw_uint(&j, port);
  }
  if (w->limit) {
    jw_key(&j, "connectionLimit");
    jw_uint(&j, port);
  }
  if (w->path) {
    jw_key(&j, "path");
    jw_str(&j, path);
  }
  jw_key(&j, "code");
  jw_int(&j, w->status);
  jw_close(&j, '}');
}

int edge_refuse(struct http_x *x, enum edge_error what, const char *box, unsigned port, struct str detail)
{
  const struct words *w = &words[what];
  const struct http_head *h = http_x_head(x);
  struct str message = w->message ? str_of(w->message) : detail;
  cleanup_buf struct buf b = BUF_INIT(1 << 16), told = BUF_INIT(2048);
  bool page = edge_wants_page(h);
  struct str more = page && w->page ? str_of(w->page) : what == EDGE_NOT_FOUND ? detail : STR_NONE; /* why it ended */
  if (more.n) {
    buf_addf(&told, "%s: " STR_FMT, w->message, STR_ARG(more));
    message = buf_str(&told);
  }
  if (page)
    put_page(&b, w, box ? box : "", port, message);
  else
    put_json(&b, w, box ? box : "", port, message, h->path);
  char seconds[16];
  const struct http_header headers[] = {
      {STR("Content-Type"), page ? STR("text/html; charset=utf-8") : STR("application/json; charset=utf-8")},
      {STR("Access-Control-Allow-Origin"), STR("*")},
      {STR("Retry-After"), {seconds, (size_t)snprintf(seconds, sizeof(seconds), "%u", port)}},
  };
  http_reply_with(x, w->status, headers, ARRAY_LEN(headers) - (what != EDGE_THROTTLED && what != EDGE_UNKNOWN_MANY),
                  buf_str(&b));
  return w->status;
}
