/* SPDX-License-Identifier: Apache-2.0 */
/* ref.c - see ref.h. */
#include "warden/db/ref.h"

bool ref_word(struct str s, const char *extra)
{
  for (size_t i = 0; i < s.n; i++) {
    char ch = s.p[i];
    bool ok = (ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9') || (ch && strchr(extra, ch));
    if (!ok)
      return false;
  }
  return s.n > 0;
}

bool id_valid(struct str id)
{
  return ref_word(id, "") && id.n < 48;
}

int ref_read(struct str text, struct buf *lowered, struct ref *out, struct err *err)
{
  struct str given = str_trim(text), rest;
  *out = (struct ref){.tag = STR("default")};
  if (given.n > REF_MAX)
    return err_set(err, -EINVAL, "Invalid template reference: it is longer than %d bytes", REF_MAX);
  for (size_t i = 0; i < given.n; i++)
    buf_addc(lowered, given.p[i] >= 'A' && given.p[i] <= 'Z' ? (char)(given.p[i] + 32) : given.p[i]);
  if (buf_failed(lowered))
    return err_set(err, -EINVAL, "Invalid template reference: it is too long");
  bool tagged = str_cut(buf_str(lowered), ':', &rest, &out->tag);
  if (tagged && !ref_word(out->tag, "_.-"))
    return err_set(err, -EINVAL, "Invalid template reference '" STR_FMT "': the tag may hold a-z 0-9 _ . -",
                   STR_ARG(given));
  if (!tagged)
    out->tag = STR("default");
  bool spaced = str_cut(rest, '/', &out->space, &out->alias);
  if (!spaced) {
    out->alias = rest;
    out->space = STR_NONE;
  }
  if (!ref_word(out->alias, "_-") || (spaced && !ref_word(out->space, "_-")))
    return err_set(err, -EINVAL,
                   "Invalid template reference '" STR_FMT "': expected [namespace/]name[:tag] of a-z 0-9 _ -",
                   STR_ARG(given));
  return 0;
}
