/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_spec.c - kernel.json files of both kinds read into specs; see kernel_spec.h. Native specs come first, so a
 * language that has both is run by our own kernel; `jupyter:NAME` asks for the Jupyter kernelspec by its name. */
#include "agent/interpreter/kernel_spec.h"
#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#define SPEC_FILE_MAX ((size_t)64 << 10)
#define SPEC_LIST_MAX 64
#define SPEC_DIRS     "/usr/local/share/jupyter/kernels:/usr/share/jupyter/kernels:/root/.local/share/jupyter/kernels"

struct kernel_specs {
  VEC(struct kernel_spec *) all;
};

static const struct {
  const char *given, *language;
} aliases[] = {
    {"", "python"},       {"py", "python"},       {"python3", "python"},    {"ipython", "python"},
    {"js", "javascript"}, {"node", "javascript"}, {"nodejs", "javascript"}, {"ts", "typescript"},
    {"sh", "bash"},       {"shell", "bash"},
};

int kernel_language(struct str given, char *out, size_t size)
{
  int rc = str_copyz(str_trim(given), out, size);
  if (rc < 0)
    return rc;
  for (char *c = out; *c; c++)
    if (*c >= 'A' && *c <= 'Z')
      *c = (char)(*c - 'A' + 'a');
  for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
    if (strcmp(out, aliases[i].given) == 0)
      return str_copyz(str_of(aliases[i].language), out, size);
  return 0;
}

static void list_free(char **list)
{
  for (size_t i = 0; list && list[i]; i++)
    free(list[i]);
  free(list);
}

static void spec_free(struct kernel_spec *s)
{
  free(s->language);
  free(s->needs);
  list_free(s->aliases);
  list_free(s->argv);
  list_free(s->requires);
  list_free(s->env);
  free(s);
}

/* A path below the installed folder means the folder that is really in use. */
static char *place(struct str s)
{
  const char *root = getenv("CLOCHE_KERNELS");
  if (!root || !*root || !str_starts(s, STR(KERNEL_SPEC_DIR "/")))
    return xstrndup(s.p ? s.p : "", s.n);
  struct str rest = str_skip(s, sizeof(KERNEL_SPEC_DIR) - 1);
  return xasprintf("%s" STR_FMT, root, STR_ARG(rest));
}

static char **list_of(const struct json *array)
{
  char **list = xcalloc(SPEC_LIST_MAX + 1, sizeof(*list));
  size_t n = 0;
  for (const struct json *v = json_is(array, JSON_ARRAY) ? array->kids : NULL; v && n < SPEC_LIST_MAX; v = v->next)
    if (json_is(v, JSON_STRING))
      list[n++] = place(v->text);
  return list;
}

static char **env_list_of(const struct json *object)
{
  char **list = xcalloc(SPEC_LIST_MAX + 1, sizeof(*list));
  size_t n = 0;
  for (const struct json *v = json_is(object, JSON_OBJECT) ? object->kids : NULL; v && n < SPEC_LIST_MAX; v = v->next)
    if (json_is(v, JSON_STRING))
      list[n++] = xasprintf(STR_FMT "=" STR_FMT, STR_ARG(v->key), STR_ARG(v->text));
  return list;
}

static char *lower(struct str s)
{
  char *z = xstrndup(s.p ? s.p : "", s.n);
  for (char *c = z; *c; c++)
    if (*c >= 'A' && *c <= 'Z')
      *c = (char)(*c - 'A' + 'a');
  return z;
}

static struct kernel_spec *spec_native(const struct json *v)
{
  struct kernel_spec *s = xcalloc(1, sizeof(*s));
  s->language = lower(json_text(json_get(v, "language"), STR("")));
  s->aliases = list_of(json_get(v, "aliases"));
  s->argv = list_of(json_get(v, "argv"));
  s->requires = list_of(json_get(v, "requires"));
  struct str needs = json_text(json_get(v, "needs"), STR(""));
  s->needs = xstrndup(needs.p, needs.n);
  const struct json *nursery = json_get(v, "nursery");
  s->nursery = json_is(nursery, JSON_BOOL) && nursery->flag;
  int64_t number = 0;
  if (!json_int(json_get(v, "renew_signal"), &number) && number > 0 && number <= 64)
    s->renew_signal = (int)number;
  const struct json *message = json_get(v, "renew_message");
  s->renew_message = json_is(message, JSON_BOOL) && message->flag;
  s->driver = str_is(json_text(json_get(v, "driver"), STR("native")), "jupyter") ? KERNEL_JUPYTER : KERNEL_NATIVE;
  return s;
}

/* Jupyter's own format: the folder is the name, `language` an alias. */
static struct kernel_spec *spec_jupyter(const char *name, const struct json *v)
{
  struct kernel_spec *s = xcalloc(1, sizeof(*s));
  s->language = lower(str_of(name));
  s->aliases = xcalloc(3, sizeof(*s->aliases));
  s->aliases[0] = xasprintf("jupyter:%s", s->language);
  s->aliases[1] = lower(json_text(json_get(v, "language"), STR("")));
  s->argv = list_of(json_get(v, "argv"));
  s->requires = xcalloc(2, sizeof(*s->requires));
  if (s->argv[0] && s->argv[0][0] == '/')
  s->requires[0] = xstrdup(s->argv[0]);
  s->env = env_list_of(json_get(v, "env"));
  s->needs = xasprintf("the program of the Jupyter kernelspec %s", name);
  s->driver = KERNEL_JUPYTER;
  s->interrupt_message = str_is(json_text(json_get(v, "interrupt_mode"), STR("")), "message");
  return s;
}

static bool spec_known(const struct kernel_specs *all, const struct kernel_spec *s)
{
  for (size_t i = 0; i < all->all.n; i++)
    if (all->all.p[i]->driver == s->driver && strcmp(all->all.p[i]->language, s->language) == 0)
      return true;
  return false;
}

static void spec_load(struct kernel_specs *all, const char *dir, const char *name, bool native)
{
  struct buf cleanup_buf text = BUF_INIT(SPEC_FILE_MAX);
  struct arena cleanup_arena a = ARENA_INIT(4 * SPEC_FILE_MAX);
  struct json_error why;
  char cleanup_free *path = xasprintf("%s/%s/kernel.json", dir, name);
  if (file_read(path, &text) < 0)
    return;
  struct json *v = json_read(&a, buf_str(&text), 0, &why);
  if (!json_is(v, JSON_OBJECT)) {
    log_warn("kernel spec %s is not a JSON object", path);
    return;
  }
  struct kernel_spec *s = native ? spec_native(v) : spec_jupyter(name, v);
  if (!*s->language || !s->argv[0] || spec_known(all, s))
    spec_free(s);
  else
    vec_push(&all->all, s);
}

static void folder_load(struct kernel_specs *all, const char *dir, bool native)
{
  DIR *d = opendir(dir);
  if (!d)
    return;
  for (struct dirent *e; (e = readdir(d));)
    if (e->d_name[0] != '.')
      spec_load(all, dir, e->d_name, native);
  closedir(d);
}

static void specs_load(struct kernel_specs *all)
{
  const char *native = getenv("CLOCHE_KERNELS"), *dirs = getenv("CLOCHE_JUPYTER_PATH");
  folder_load(all, native && *native ? native : KERNEL_SPEC_DIR, true);
  struct str rest = str_of(dirs && *dirs ? dirs : SPEC_DIRS), dir;
  do {
    bool more = str_cut(rest, ':', &dir, &rest);
    char path[512];
    if (dir.n && str_copyz(dir, path, sizeof(path)) == 0)
      folder_load(all, path, false);
    if (!more)
      break;
  } while (rest.n);
}

struct kernel_specs *kernel_specs_new(void)
{
  struct kernel_specs *s = xcalloc(1, sizeof(*s));
  specs_load(s);
  return s;
}

void kernel_specs_free(struct kernel_specs *s)
{
  for (size_t i = 0; i < s->all.n; i++)
    spec_free(s->all.p[i]);
  vec_free(&s->all);
  free(s);
}

static bool spec_answers(const struct kernel_spec *s, const char *language)
{
  if (strcmp(s->language, language) == 0)
    return true;
  for (size_t i = 0; s->aliases[i]; i++)
    if (strcmp(s->aliases[i], language) == 0)
      return true;
  return false;
}

static bool spec_present(const struct kernel_spec *s)
{
  for (size_t i = 0; s->requires[i]; i++)
    if (access(s->requires[i], F_OK) != 0)
      return false;
  return true;
}

/* The best spec of that name: one that can run, native before Jupyter; else one that is known. */
static const struct kernel_spec *specs_look(const struct kernel_specs *s, const char *language)
{
  const struct kernel_spec *best = NULL;
  int best_rank = 0;
  for (size_t i = 0; i < s->all.n; i++) {
    const struct kernel_spec *one = s->all.p[i];
    if (!spec_answers(one, language))
      continue;
    int rank = 1 + (strcmp(one->language, language) == 0) + 2 * (one->driver == KERNEL_NATIVE) + 4 * spec_present(one);
    if (rank > best_rank) {
      best = one;
      best_rank = rank;
    }
  }
  return best;
}

const struct kernel_spec *kernel_specs_find(struct kernel_specs *s, const char *language, struct err *err)
{
  const struct kernel_spec *best = specs_look(s, language);
  if (!best) {
    specs_load(s);
    best = specs_look(s, language);
  }
  if (!best)
    err_set(err, -ENOENT, "Please pick another suitable kernel instead, or install that kernel.");
  else if (!spec_present(best))
    err_set(err, -ENOENT, "The template would need %s.", *best->needs ? best->needs : "its interpreter");
  else
    return best;
  return NULL;
}
