/* SPDX-License-Identifier: Apache-2.0 */
/* Recipes: the steps of a template, added one by one or read from a Dockerfile by the rules of stock SDKs. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "internal.h"

struct cloche_recipe *cloche_recipe_new(void)
{
  struct cloche_recipe *r = calloc(1, sizeof *r);
  if (r)
    r->tail = &r->steps;
  return r;
}

static void step_free(struct step *s)
{
  for (int i = 0; i < s->arg_count; i++)
    free(s->args[i]);
  if (s->archive >= 0)
    close(s->archive);
  free(s);
}

void cloche_recipe_free(struct cloche_recipe *recipe)
{
  if (!recipe)
    return;
  while (recipe->steps) {
    struct step *next = recipe->steps->next;
    step_free(recipe->steps);
    recipe->steps = next;
  }
  char *texts[] = {recipe->image,   recipe->template_name, recipe->registry_user, recipe->registry_password,
                   recipe->context, recipe->start,         recipe->ready};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    free(texts[i]);
  free(recipe);
}

static enum cloche_code set(char **to, const char *text)
{
  char *copy = text ? strdup(text) : NULL;
  if (text && !copy)
    return CLOCHE_ENOMEM;
  free(*to);
  *to = copy;
  return CLOCHE_OK;
}

enum cloche_code cloche_recipe_from_image(struct cloche_recipe *recipe, const char *image)
{
  set(&recipe->template_name, NULL);
  return set(&recipe->image, image);
}

enum cloche_code cloche_recipe_from_template(struct cloche_recipe *recipe, const char *name)
{
  set(&recipe->image, NULL);
  return set(&recipe->template_name, name);
}

enum cloche_code cloche_recipe_registry(struct cloche_recipe *recipe, const char *user_name, const char *password)
{
  enum cloche_code code = set(&recipe->registry_user, user_name);
  return code == CLOCHE_OK ? set(&recipe->registry_password, password) : code;
}

enum cloche_code cloche_recipe_context(struct cloche_recipe *recipe, const char *directory)
{
  return set(&recipe->context, directory);
}

enum cloche_code cloche_recipe_start(struct cloche_recipe *recipe, const char *start, const char *ready)
{
  enum cloche_code code = set(&recipe->start, start);
  return code == CLOCHE_OK ? set(&recipe->ready, ready) : code;
}

enum cloche_code cloche_recipe_force(struct cloche_recipe *recipe)
{
  recipe->force_next = true;
  return CLOCHE_OK;
}

static enum cloche_code add(struct cloche_recipe *r, const char *type, int n, const char *const args[])
{
  struct step *s = calloc(1, sizeof *s);
  if (!s)
    return CLOCHE_ENOMEM;
  s->type = type;
  s->archive = -1;
  for (int i = 0; i < n; i++) {
    if (!(s->args[i] = strdup(args[i] ? args[i] : ""))) {
      step_free(s);
      return CLOCHE_ENOMEM;
    }
    s->arg_count++;
  }
  s->force = r->force_next;
  r->force_next = false;
  *r->tail = s;
  r->tail = &s->next;
  return CLOCHE_OK;
}

enum cloche_code cloche_recipe_run(struct cloche_recipe *recipe, const char *command, const char *user_name)
{
  return add(recipe, "RUN", user_name ? 2 : 1, (const char *[]){command, user_name});
}

enum cloche_code cloche_recipe_copy(struct cloche_recipe *recipe, const char *source, const char *to, const char *owner,
                                    const char *mode)
{
  return add(recipe, "COPY", 4, (const char *[]){source, to, owner, mode});
}

enum cloche_code cloche_recipe_env(struct cloche_recipe *recipe, const char *name, const char *value)
{
  return add(recipe, "ENV", 2, (const char *[]){name, value});
}

enum cloche_code cloche_recipe_workdir(struct cloche_recipe *recipe, const char *path)
{
  return add(recipe, "WORKDIR", 1, &path);
}

enum cloche_code cloche_recipe_user(struct cloche_recipe *recipe, const char *name)
{
  return add(recipe, "USER", 1, &name);
}

/* ---- Dockerfiles ---- */

struct docker {
  struct cloche_recipe *r;
  struct cloche_error *error;
  const char *at;
  int line; /* where the instruction began */
  int lines;
  bool from, user, workdir;
  struct buf entry, cmd;
};

static enum cloche_code wrong(struct docker *d, const char *what)
{
  return error_set(d->error, CLOCHE_EINVAL, "Dockerfile line %d: %s", d->line, what);
}

static size_t take_line(struct docker *d, const char **line)
{
  *line = d->at;
  size_t n = strcspn(d->at, "\n");
  d->at += n + (d->at[n] == '\n');
  d->lines++;
  return n && (*line)[n - 1] == '\r' ? n - 1 : n;
}

static bool is_blank(const char *line, size_t n)
{
  size_t i = 0;
  while (i < n && isspace((unsigned char)line[i]))
    i++;
  return i == n || line[i] == '#';
}

/* One instruction: lines that end in a backslash go on; blank lines and comments in between are left out. */
static void take_instruction(struct docker *d, struct buf *out)
{
  const char *line;
  bool more = true;
  while (*d->at && more) {
    int before = d->lines;
    size_t n = take_line(d, &line);
    if (is_blank(line, n))
      continue;
    if (!out->len)
      d->line = before + 1;
    while (n && (line[n - 1] == ' ' || line[n - 1] == '\t'))
      n--;
    more = n && line[n - 1] == '\\';
    buf_add(out, line, more ? n - 1 : n);
  }
}

/* The lines of a document (<<WORD) up to its end. */
static bool take_document(struct docker *d, const char *word, size_t word_len, struct buf *out)
{
  const char *line;
  while (*d->at) {
    size_t n = take_line(d, &line);
    if (n == word_len && memcmp(line, word, n) == 0)
      return true;
    buf_add(out, line, n);
    buf_puts(out, "\n");
  }
  return false;
}

static const char *skip(const char *p)
{
  while (isspace((unsigned char)*p))
    p++;
  return p;
}

/* A word with its quotes taken off. NULL: no memory, or there is none. */
static char *next_word(const char **at)
{
  struct buf b = {0};
  const char *p = skip(*at);
  if (!*p)
    return NULL;
  char quote = 0;
  for (; *p && (quote || !isspace((unsigned char)*p)); p++) {
    if (quote ? *p == quote : (*p == '"' || *p == '\''))
      quote = quote ? 0 : *p;
    else if (*p == '\\' && p[1] && quote != '\'')
      buf_add(&b, ++p, 1);
    else
      buf_add(&b, p, 1);
  }
  *at = p;
  return buf_steal(&b);
}

/* The exec form ["a", "b"] as a shell line; false: it is none. */
static bool exec_form(const char *text, struct buf *out)
{
  if (*text != '[')
    return false;
  struct arena a = {0};
  bool no_memory = false;
  struct json *j = json_read(&a, text, strlen(text), &no_memory);
  bool is = j && j->type == JSON_ARRAY;
  for (const struct json *e = is ? j->child : NULL; e; e = e->next) {
    buf_puts(out, e == j->child ? "" : " ");
    put_quoted(out, e->type == JSON_STRING ? e->text : "");
  }
  out->failed |= no_memory;
  arena_free(&a);
  return is || no_memory;
}

static enum cloche_code docker_run(struct docker *d, const char *rest)
{
  struct buf line = {0};
  while (strncmp(rest, "--", 2) == 0) { /* --mount and the like */
    rest += strcspn(rest, " \t");
    rest = skip(rest);
  }
  const char *doc = strstr(rest, "<<");
  enum cloche_code code = CLOCHE_OK;
  if (doc && doc[2] != '<' && !exec_form(rest, &line)) {
    const char *word = doc + 2 + (doc[2] == '-');
    char quote = *word == '"' || *word == '\'' ? *word++ : 0;
    size_t n = quote ? strcspn(word, (char[]){quote, 0}) : strcspn(word, " \t;|&)");
    if (doc != rest)
      buf_printf(&line, "%s\n", rest);
    if (!n || !take_document(d, word, n, &line))
      code = wrong(d, "a document (<<) without its end");
    if (doc != rest)
      buf_add(&line, word, n);
  } else if (!line.len && !exec_form(rest, &line)) {
    buf_puts(&line, rest);
  }
  if (code == CLOCHE_OK)
    code = line.failed ? CLOCHE_ENOMEM : cloche_recipe_run(d->r, line.data ? line.data : "", NULL);
  buf_free(&line);
  return code;
}

static enum cloche_code docker_copy(struct docker *d, const char *rest)
{
  char *words[64] = {0}, *owner = NULL, *mode = NULL, *word;
  size_t n = 0;
  enum cloche_code code = CLOCHE_OK;
  while (code == CLOCHE_OK && *skip(rest)) {
    if (!(word = next_word(&rest))) {
      code = CLOCHE_ENOMEM;
    } else if (strncmp(word, "--chown=", 8) == 0 || strncmp(word, "--chmod=", 8) == 0) {
      code = set(word[4] == 'o' ? &owner : &mode, word + 8);
      free(word);
    } else if (strncmp(word, "--from=", 7) == 0) {
      code = wrong(d, "COPY --from: files of other stages or images can't be copied");
      free(word);
    } else if (strncmp(word, "--", 2) == 0) {
      free(word);
    } else if (strncmp(word, "<<", 2) == 0) {
      code = wrong(d, "COPY of a document (<<) is not among the steps of a template; write it with RUN");
      free(word);
    } else if (n < 64) {
      words[n++] = word;
    } else {
      code = wrong(d, "too many sources");
      free(word);
    }
  }
  if (code == CLOCHE_OK && n < 2)
    code = wrong(d, "COPY needs a source and a destination");
  for (size_t i = 0; code == CLOCHE_OK && i + 1 < n; i++)
    code = cloche_recipe_copy(d->r, words[i], words[n - 1], owner, mode);
  for (size_t i = 0; i < n; i++)
    free(words[i]);
  free(owner);
  free(mode);
  return code;
}

/* "a=b c=d", "a b", or (ARG) "a". */
static enum cloche_code docker_env(struct docker *d, const char *rest, bool is_arg)
{
  const char *first_end = rest + strcspn(rest, " \t=");
  if (!is_arg && *first_end != '=') {
    char *name = strndup(rest, (size_t)(first_end - rest));
    enum cloche_code code = name ? cloche_recipe_env(d->r, name, skip(first_end)) : CLOCHE_ENOMEM;
    free(name);
    return code;
  }
  enum cloche_code code = CLOCHE_OK;
  while (code == CLOCHE_OK && *skip(rest)) {
    char *word = next_word(&rest);
    if (!word)
      return CLOCHE_ENOMEM;
    char *equals = strchr(word, '=');
    if (equals)
      *equals = 0;
    code = cloche_recipe_env(d->r, word, equals ? equals + 1 : "");
    free(word);
  }
  return code;
}

static enum cloche_code docker_from(struct docker *d, const char *rest)
{
  while (strncmp(rest, "--", 2) == 0) {
    rest += strcspn(rest, " \t");
    rest = skip(rest);
  }
  if (d->from)
    return wrong(d, "Dockerfiles with several stages can't be built this way");
  if (!*skip(rest))
    return wrong(d, "FROM needs an image");
  char *image = next_word(&rest);
  if (!image)
    return CLOCHE_ENOMEM;
  d->from = true;
  enum cloche_code code = cloche_recipe_from_image(d->r, image);
  free(image);
  if (code == CLOCHE_OK)
    code = cloche_recipe_user(d->r, "root");
  return code == CLOCHE_OK ? cloche_recipe_workdir(d->r, "/") : code;
}

static enum cloche_code docker_start(struct docker *d, struct buf *to, const char *rest)
{
  buf_free(to);
  if (!exec_form(rest, to))
    buf_puts(to, rest);
  return to->failed ? CLOCHE_ENOMEM : CLOCHE_OK;
}

static enum cloche_code docker_word(struct docker *d, const char *rest,
                                    enum cloche_code (*use)(struct cloche_recipe *r, const char *word))
{
  if (!*skip(rest))
    return wrong(d, "the instruction needs a word");
  char *word = next_word(&rest);
  if (!word)
    return CLOCHE_ENOMEM;
  enum cloche_code code = use(d->r, word);
  free(word);
  return code;
}

static enum cloche_code instruction(struct docker *d, const char *text)
{
  text = skip(text);
  size_t n = strcspn(text, " \t");
  const char *rest = skip(text + n);
#define IS(word) (n == sizeof word - 1 && strncasecmp(text, word, n) == 0)
  if (IS("FROM"))
    return docker_from(d, rest);
  if (IS("ARG") && !d->from)
    return wrong(d, "ARG before FROM is not understood here");
  if (!d->from)
    return wrong(d, "the first instruction must be FROM");
  if (IS("RUN"))
    return docker_run(d, rest);
  if (IS("COPY") || IS("ADD"))
    return docker_copy(d, rest);
  if (IS("ENV") || IS("ARG"))
    return docker_env(d, rest, IS("ARG"));
  if (IS("WORKDIR")) {
    d->workdir = true;
    return docker_word(d, rest, cloche_recipe_workdir);
  }
  if (IS("USER")) {
    d->user = true;
    return docker_word(d, rest, cloche_recipe_user);
  }
  if (IS("CMD"))
    return docker_start(d, &d->cmd, rest);
  if (IS("ENTRYPOINT"))
    return docker_start(d, &d->entry, rest);
  if (IS("EXPOSE") || IS("VOLUME") || IS("LABEL") || IS("MAINTAINER") || IS("STOPSIGNAL") || IS("HEALTHCHECK") ||
      IS("SHELL") || IS("ONBUILD"))
    return CLOCHE_OK; /* nothing that a template has */
  return wrong(d, "unknown instruction");
}

static enum cloche_code finish(struct docker *d)
{
  enum cloche_code code = CLOCHE_OK;
  if (!d->from)
    return wrong(d, "no FROM");
  if (!d->user)
    code = cloche_recipe_user(d->r, "user");
  if (code == CLOCHE_OK && !d->workdir)
    code = cloche_recipe_workdir(d->r, "/home/user");
  if (code == CLOCHE_OK && (d->entry.len || d->cmd.len)) {
    struct buf both = {0};
    buf_printf(&both, "%s%s%s", d->entry.len ? d->entry.data : "", d->entry.len && d->cmd.len ? " " : "",
               d->cmd.len ? d->cmd.data : "");
    code = both.failed ? CLOCHE_ENOMEM : cloche_recipe_start(d->r, both.data, "sleep 20");
    buf_free(&both);
  }
  return code;
}

enum cloche_code cloche_recipe_dockerfile(struct cloche_recipe *recipe, const char *text, struct cloche_error *error)
{
  struct docker d = {.r = recipe, .error = error, .at = text};
  enum cloche_code code = CLOCHE_OK;
  while (code == CLOCHE_OK && *d.at) {
    struct buf one = {0};
    take_instruction(&d, &one);
    if (one.failed)
      code = CLOCHE_ENOMEM;
    else if (one.len)
      code = instruction(&d, one.data);
    buf_free(&one);
  }
  if (code == CLOCHE_OK)
    code = finish(&d);
  buf_free(&d.entry);
  buf_free(&d.cmd);
  return code == CLOCHE_ENOMEM ? op_no_memory(error) : code;
}
