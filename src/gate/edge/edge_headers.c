/* SPDX-License-Identifier: Apache-2.0 */
/* edge_headers.c - see edge_headers.h. */
#include "gate/edge/edge_headers.h"

bool hop_by_hop(struct str name)
{
  static const char *const names[] = {
      "connection", "keep-alive",        "proxy-connection", "proxy-authenticate", "proxy-authorization", "te",
      "trailer",    "transfer-encoding", "upgrade",          "content-length"};
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    if (str_ieq(name, str_of(names[i])))
      return true;
  return false;
}

bool about_origin(struct str name)
{
  static const char *const names[] = {"set-cookie", "content-security-policy", "strict-transport-security",
                                      "alt-svc",    "clear-site-data",         "nel",
                                      "report-to",  "reporting-endpoints",     "service-worker-allowed"};
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    if (str_ieq(name, str_of(names[i])))
      return true;
  return false;
}

/* ---- cookies: browsers take a header apart at each semicolon, quoted or not (RFC 6265, 5.2) ---- */

static bool is_domain(struct str attribute)
{
  struct str name, value;
  str_cut(attribute, '=', &name, &value);
  return str_ieq(str_trim(name), STR("domain"));
}

struct str cookie_host_only(struct arena *a, struct str value)
{
  struct str rest, part;
  bool found = false;
  str_cut(value, ';', &part, &rest); /* name and value */
  for (struct str more = rest; more.n && !found;) {
    str_cut(more, ';', &part, &more);
    found = is_domain(part);
  }
  if (!found)
    return value;
  char *out = arena_alloc(a, value.n + 1);
  if (!out)
    return STR_NONE;
  str_cut(value, ';', &part, &rest);
  size_t n = part.n;
  memcpy(out, part.p, part.n);
  while (rest.n) {
    str_cut(rest, ';', &part, &rest);
    if (is_domain(part))
      continue;
    out[n++] = ';';
    memcpy(out + n, part.p, part.n);
    n += part.n;
  }
  return (struct str){out, n};
}
