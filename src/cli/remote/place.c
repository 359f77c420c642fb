/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/place.h"

static bool id_char(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

void place_parse(const char *word, struct place *out)
{
  size_t n = 0;
  *out = (struct place){.path = word};
  while (id_char(word[n]))
    n++;
  if (!n || word[n] != ':' || n >= sizeof(out->id))
    return;
  memcpy(out->id, word, n);
  out->path = word[n + 1] ? word + n + 1 : ".";
}

struct str path_last(const char *path)
{
  struct str s = str_of(path);
  while (s.n && s.p[s.n - 1] == '/')
    s.n--;
  s = str_skip(s, (size_t)(str_rfind(s, '/') + 1));
  return str_is(s, ".") || str_is(s, "..") ? STR("") : s;
}

bool name_is_plain(const char *name)
{
  return *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}
