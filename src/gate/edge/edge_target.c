/* SPDX-License-Identifier: Apache-2.0 */
/* edge_target.c - see edge_target.h. */
#include "gate/edge/edge_target.h"

#define PATH_PREFIX "/box/"

static bool box_name(struct str s)
{
  for (size_t i = 0; i < s.n; i++)
    if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= '0' && s.p[i] <= '9')))
      return false;
  return s.n > 0 && s.n < sizeof(((struct edge_target *)0)->box);
}

static bool port_number(struct str s, unsigned *out)
{
  uint64_t v;
  if (str_u64(s, &v) || v < 1 || v > 65535)
    return false;
  *out = (unsigned)v;
  return true;
}

static bool take(struct str id, struct str port, struct edge_target *t)
{
  return box_name(id) && port_number(port, &t->port) && !str_copyz(id, t->box, sizeof(t->box));
}

bool target_from_host(struct str host, struct edge_target *t)
{
  struct str label, rest, port, id, tail;
  if (!str_cut(host, '.', &label, &rest) || !str_cut(label, '-', &port, &id))
    return false;
  str_cut(id, '-', &id, &tail);
  return take(id, port, t);
}

bool target_from_headers(struct str id, struct str port, struct edge_target *t)
{
  struct str head, tail;
  str_cut(id, '-', &head, &tail);
  return take(head, port, t);
}

bool target_from_path(struct str path, struct edge_target *t)
{
  struct str rest = str_skip(path, sizeof(PATH_PREFIX) - 1), id, port, tail;
  if (!str_starts(path, STR(PATH_PREFIX)) || !str_cut(rest, '/', &id, &rest))
    return false;
  str_cut(rest, '/', &port, &tail);
  if (!take(id, port, t))
    return false;
  t->shared = true;
  t->skip = sizeof(PATH_PREFIX) - 1 + id.n + 1 + port.n;
  return true;
}
