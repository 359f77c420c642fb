/* SPDX-License-Identifier: Apache-2.0 */
/* source_name.c - see source_name.h. */
#include "warden/build/source_name.h"

#include <stdio.h>

#define HUB "docker.io" /* what a name without a host means, everywhere */

static bool among(char c, const char *more)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr(more, c));
}

static bool made_of(struct str s, const char *more)
{
  for (size_t i = 0; i < s.n; i++)
    if (!among(s.p[i], more))
      return false;
  return s.n > 0;
}

static int bad(struct str image, const char *why, struct err *err)
{
  return err_set(err, -EINVAL, "'" STR_FMT "' names no image: %s", STR_ARG(str_sub(image, 0, 200)), why);
}

/* A Debian image's release: debian, debian:13, debian:trixie-slim, debian:trixie-20260101. */
static void find_suite(struct source_name *n)
{
  static const struct {
    const char *tag, *suite;
  } names[] = {{"", "stable"},           {"latest", "stable"},   {"stable", "stable"},     {"13", "trixie"},
               {"trixie", "trixie"},     {"12", "bookworm"},     {"bookworm", "bookworm"}, {"11", "bullseye"},
               {"bullseye", "bullseye"}, {"testing", "testing"}, {"sid", "sid"},           {"unstable", "sid"}};
  struct str name, tag, word, rest;
  str_cut(str_of(n->rest), ':', &name, &tag);
  if (strcmp(n->host, HUB) || (!str_is(name, "library/debian") && !str_is(name, "debian")) || str_find(tag, '@') >= 0)
    return;
  str_cut(tag, '-', &word, &rest);
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    if (str_is(word, names[i].tag))
      snprintf(n->suite, sizeof(n->suite), "%s", names[i].suite);
}

static int read_registry(struct str image, struct source_name *out, struct err *err)
{
  struct str host, path;
  bool split = str_cut(image, '/', &host, &path);
  bool named = split && (str_find(host, '.') >= 0 || str_find(host, ':') >= 0 || str_is(host, "localhost"));
  if (!named) {
    host = STR(HUB);
    path = image;
  }
  if (!made_of(host, ".-:") || !made_of(path, "._-/:@") || path.p[0] == '-' || path.p[0] == '/' ||
      str_search(path, STR("//")) >= 0 || str_search(path, STR("../")) >= 0)
    return bad(image, "[host[:port]/]name[:tag][@sha256:digest] is expected", err);
  bool bare = !named && str_find(path, '/') < 0;
  if (str_copyz(host, out->host, sizeof(out->host)) ||
      (size_t)snprintf(out->rest, sizeof(out->rest), "%s" STR_FMT, bare ? "library/" : "", STR_ARG(path)) >=
          sizeof(out->rest))
    return bad(image, "it is too long", err);
  snprintf(out->transport, sizeof(out->transport), "docker");
  find_suite(out);
  return 0;
}

static int read_file(struct str image, struct str transport, struct str path, struct source_name *out, struct err *err)
{
  struct str file, tag;
  str_cut(path, ':', &file, &tag);
  if (str_copyz(transport, out->transport, sizeof(out->transport)) || str_copyz(file, out->rest, sizeof(out->rest)) ||
      !file.n)
    return bad(image, "a path is expected behind the first colon, of at most 511 bytes", err);
  if (tag.n && (!made_of(tag, "._-/:") || str_copyz(tag, out->tag, sizeof(out->tag))))
    return bad(image, "the tag has other signs than letters, digits and . _ - / :", err);
  return 0;
}

int source_name_read(struct str image, struct source_name *out, struct err *err)
{
  static const char *const files[] = {"oci", "oci-archive", "docker-archive"};
  struct str transport, path;
  *out = (struct source_name){0};
  image = str_trim(image);
  if (!image.n || memchr(image.p, 0, image.n))
    return bad(image, "it is empty or has a NUL byte", err);
  bool split = str_cut(image, ':', &transport, &path);
  for (size_t i = 0; split && i < ARRAY_LEN(files); i++)
    if (str_is(transport, files[i]))
      return read_file(image, transport, path, out, err);
  if (str_starts(image, STR("docker://")))
    image = str_skip(image, 9);
  return read_registry(image, out, err);
}

bool source_host_listed(const char *list, const char *host)
{
  struct str rest = str_of(list), word, h = str_of(host);
  while (rest.n) {
    str_cut(rest, ' ', &word, &rest);
    if (str_is(word, "*") || (word.n && str_ieq(word, h)))
      return true;
    if (str_ends(word, STR(":*")) && str_ieq(str_sub(word, 0, word.n - 1), str_sub(h, 0, word.n - 1)))
      return true;
    if (str_starts(word, STR("*.")) && h.n > word.n - 1 && str_ieq(str_skip(h, h.n - (word.n - 1)), str_skip(word, 1)))
      return true;
  }
  return false;
}
