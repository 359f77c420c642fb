/* SPDX-License-Identifier: Apache-2.0 */
/* list_query.c - see list_query.h. */
#include "gate/api/list_query.h"

static int decoded(struct arena *a, struct str s, struct str *out)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  if (percent_decode(s, true, &b))
    return -EINVAL;
  *out = arena_str(a, buf_str(&b));
  return out->p ? 0 : -ENOMEM;
}

int metadata_read(struct arena *a, struct str text, struct pair *out, size_t most)
{
  struct str rest, one, key, value;
  size_t n = 0;
  if (decoded(a, text, &rest))
    return -EINVAL;
  while (rest.n) {
    str_cut(rest, '&', &one, &rest);
    if (!str_cut(one, '=', &key, &value) || str_find(value, '=') >= 0 || n == most)
      return -EINVAL;
    if (decoded(a, key, &out[n].key) || decoded(a, value, &out[n].value))
      return -EINVAL;
    n++;
  }
  return (int)n;
}

int page_key_order(const struct page_key *a, const struct page_key *b)
{
  if (a->us != b->us)
    return a->us < b->us ? 1 : -1;
  return str_cmp(a->id, b->id);
}

int page_key_read(struct str plain, bool ascending, struct page_key *out)
{
  ptrdiff_t at = str_search(plain, STR("__"));
  if (at <= 0 || str_i64(str_sub(plain, 0, (size_t)at), &out->us))
    return -EINVAL;
  struct str rest = str_skip(plain, (size_t)at + 2), tail = STR_NONE;
  at = str_search(rest, STR("__"));
  out->id = at < 0 ? rest : str_sub(rest, 0, (size_t)at);
  if (at >= 0)
    tail = str_skip(rest, (size_t)at + 2);
  for (size_t i = 0; i < out->id.n; i++) { /* an id of a box or a template, or a UUID of a build */
    char c = out->id.p[i];
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'))
      return -EINVAL;
  }
  return out->id.n && (ascending ? str_is(tail, "asc") : at < 0) ? 0 : -EINVAL;
}

void page_key_put(struct buf *out, const struct page_key *k, bool ascending)
{
  buf_addf(out, "%lld__" STR_FMT "%s", (long long)k->us, STR_ARG(k->id), ascending ? "__asc" : "");
}
