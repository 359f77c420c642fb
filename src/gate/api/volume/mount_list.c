/* SPDX-License-Identifier: Apache-2.0 */
/* mount_list.c - see mount_list.h. */
#include "gate/api/volume/mount_list.h"

#include <stdarg.h>
#include <stdio.h>

static void fault(struct buf *faults, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void fault(struct buf *faults, const char *fmt, ...)
{
  char text[300];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof(text), fmt, ap);
  va_end(ap);
  size_t n = strlen(text);
  if (faults->n + n + 2 > MOUNT_FAULTS_MAX)
    return;
  if (faults->n)
    buf_addz(faults, "; ");
  buf_addz(faults, text);
}

static bool is_name(struct str s)
{
  if (!s.n || s.n > MOUNT_NAME_MAX)
    return false;
  for (size_t i = 0; i < s.n; i++) {
    char c = s.p[i];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-'))
      return false;
  }
  return true;
}

static bool below(struct str path, struct str above)
{
  return str_starts(path, above) && (path.n == above.n || path.p[above.n] == '/');
}

/* Places that are the box's own mounts, or that have one of them below. */
static bool is_taken(struct str path)
{
  static const char *const taken[] = {"/proc", "/sys", "/dev", "/usr/lib/cloche"};
  for (size_t i = 0; i < ARRAY_LEN(taken); i++)
    if (below(path, str_of(taken[i])) || below(str_of(taken[i]), path))
      return true;
  return false;
}

/* What is wrong with it, or NULL. */
static const char *path_fault(struct str path)
{
  cleanup_buf struct buf clean = BUF_INIT(MOUNT_PATH_MAX * 2);
  if (!path.n || path.p[0] != '/')
    return "is not absolute";
  if (path.n > MOUNT_PATH_MAX)
    return "is longer than 512 bytes";
  for (size_t i = 0; i < path.n; i++)
    if ((unsigned char)path.p[i] < 32 || path.p[i] == 127 || strchr("[]:", path.p[i]))
      return "has a control character or one of []:";
  if (path.n == 1)
    return "is the root of the sandbox";
  if (path_clean(path, &clean) || !str_eq(buf_str(&clean), path))
    return "is not clean: it has a '.', a '..', a double or a last slash";
  return is_taken(path) ? "is a place of the system: /proc, /sys, /dev or above /usr/lib/cloche" : NULL;
}

/* Another one that is there, above or below; NULL: none. */
static bool collides(struct str lines, struct str path, struct str *with)
{
  struct str line, name;
  while (lines.n) {
    str_cut(lines, '\n', &line, &lines);
    str_cut(line, '\t', &name, with);
    if (below(path, *with) || below(*with, path))
      return true;
  }
  return false;
}

static void read_one(const struct json *v, size_t at, struct buf *lines, struct buf *faults)
{
  const struct json *name = json_get(v, "name"), *path = json_get(v, "path");
  struct str n = json_text(name, STR_NONE), p = json_text(path, STR_NONE), other;
  if (v->type != JSON_OBJECT || !name || name->type != JSON_STRING || !path || path->type != JSON_STRING) {
    fault(faults, "entry %zu is not {\"name\": text, \"path\": text}", at);
    return;
  }
  struct str shown = str_sub(p, 0, 80);
  if (str_find(p, 0) >= 0)
    shown = STR("?");
  const char *wrong = path_fault(p);
  if (!is_name(n))
    fault(faults, "the name of entry %zu (for '" STR_FMT "') is not 1 to %d letters, digits, '_' and '-'", at,
          STR_ARG(shown), MOUNT_NAME_MAX);
  if (wrong)
    fault(faults, "the path '" STR_FMT "' of entry %zu %s", STR_ARG(shown), at, wrong);
  else if (collides(buf_str(lines), p, &other))
    fault(faults, "the path '" STR_FMT "' of entry %zu is there twice, above or below another one", STR_ARG(shown), at);
  else if (is_name(n))
    buf_addf(lines, STR_FMT "\t" STR_FMT "\n", STR_ARG(n), STR_ARG(p));
}

void mount_list_read(const struct json *list, struct buf *lines, struct buf *faults)
{
  size_t at = 0;
  if (!json_given(list))
    return;
  if (list->type != JSON_ARRAY) {
    fault(faults, "it must be a list of {\"name\", \"path\"}");
    return;
  }
  for (const struct json *v = list->kids; v && at < MOUNTS_MAX; v = v->next)
    read_one(v, at++, lines, faults);
  if (list->count > MOUNTS_MAX)
    fault(faults, "it has %zu entries, more than %d", (size_t)list->count, MOUNTS_MAX);
}

void mount_list_put(struct jw *w, struct str lines)
{
  struct str line, name, path;
  jw_open(w, '[');
  while (lines.n) {
    str_cut(lines, '\n', &line, &lines);
    str_cut(line, '\t', &name, &path);
    jw_open(w, '{');
    jw_key(w, "name");
    jw_str(w, name);
    jw_key(w, "path");
    jw_str(w, path);
    jw_close(w, '}');
  }
  jw_close(w, ']');
}
