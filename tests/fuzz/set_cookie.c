/* SPDX-License-Identifier: Apache-2.0 */
/* set_cookie.c - cookies that services in boxes set: no Domain attribute is left, and the cookie itself is. */
#include "must.h"

#include "gate/edge/edge_headers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct str in = str_make(data, size), out = cookie_host_only(&a, in), first, part, rest, name, value;
  MUST(out.n <= in.n);
  str_cut(in, ';', &first, &rest);
  str_cut(out, ';', &part, &rest);
  MUST(str_eq(first, part));
  while (rest.n) {
    str_cut(rest, ';', &part, &rest);
    str_cut(part, '=', &name, &value);
    MUST(!str_ieq(str_trim(name), STR("domain")));
  }
  struct str again = cookie_host_only(&a, out);
  MUST(str_eq(again, out));
  return 0;
}
