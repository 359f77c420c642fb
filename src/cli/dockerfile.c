/* dockerfile.c - see dockerfile.h. */
#include "cli/dockerfile.h"

#include <stdio.h>

#define WORDS_MAX 256
#define TEXT_MAX  ((size_t)1 << 20)

struct reader {
  const struct dockerfile_ops *ops;
  void *arg;
  struct arena arena;
  size_t line; /* of the instruction's beginning */
  bool from, user, workdir;
};

static int wrong(const struct reader *r, struct err *err, const char *what)
{
  return err_set(err, -EINVAL, "Dockerfile, line %zu: %s", r->line, what);
}

/* ---- words ---- */

/* Splits at blanks; quotes hold words together and go, a backslash takes the next byte as it is. */
static int split(struct reader *r, struct str text, struct str words[WORDS_MAX], size_t *n, struct err *err)
{
  *n = 0;
  for (size_t i = 0; i < text.n;) {
    cleanup_buf struct buf word = BUF_INIT(TEXT_MAX);
    char quote = 0;
    while (i < text.n && (text.p[i] == ' ' || text.p[i] == '\t'))
      i++;
    if (i == text.n)
      break;
    for (; i < text.n && (quote || (text.p[i] != ' ' && text.p[i] != '\t')); i++) {
      char c = text.p[i];
      if (c == '\\' && quote != '\'' && i + 1 < text.n)
        buf_addc(&word, text.p[++i]);
      else if (quote ? c == quote : c == '"' || c == '\'')
        quote = quote ? 0 : c;
      else
        buf_addc(&word, c);
    }
    if (quote || *n == WORDS_MAX)
      return wrong(r, err, quote ? "a quote is not closed" : "too many words");
    words[(*n)++] = arena_str(&r->arena, buf_str(&word));
  }
  return 0;
}

/* ["a", "b c"] as the words a shell is given; anything else is a shell's text already. */
static struct str command_text(struct reader *r, struct str value)
{
  cleanup_buf struct buf b = BUF_INIT(TEXT_MAX);
  struct json *list = value.n && value.p[0] == '[' ? json_read(&r->arena, value, 0, NULL) : NULL;
  if (!json_is(list, JSON_ARRAY))
    return value;
  for (const struct json *k = list->kids; k; k = k->next)
    buf_addf(&b, "%s" STR_FMT, k == list->kids ? "" : " ", STR_ARG(json_text(k, STR_NONE)));
  return arena_str(&r->arena, buf_str(&b));
}

/* ---- instructions ---- */

static int take_from(struct reader *r, struct str value, struct err *err)
{
  struct str words[WORDS_MAX];
  size_t n;
  int e = split(r, value, words, &n, err);
  if (e)
    return e;
  if (r->from)
    return wrong(r, err, "a second FROM: several stages are not supported");
  size_t at = 0;
  while (at < n && str_starts(words[at], STR("--")))
    at++;
  if (at == n)
    return wrong(r, err, "FROM needs an image");
  r->from = true;
  e = r->ops->from(r->arg, words[at], err);
  e = e ? e : r->ops->step(r->arg, "USER", &STR("root"), 1, err);
  return e ? e : r->ops->step(r->arg, "WORKDIR", &STR("/"), 1, err);
}

static int take_copy(struct reader *r, struct str value, struct err *err)
{
  struct str words[WORDS_MAX], owner = STR(""), mode = STR("");
  size_t n, at = 0;
  int e = split(r, value, words, &n, err);
  if (e)
    return e;
  for (; at < n && str_starts(words[at], STR("--")); at++) {
    if (str_starts(words[at], STR("--chown=")))
      owner = str_skip(words[at], 8);
    else if (str_starts(words[at], STR("--chmod=")))
      mode = str_skip(words[at], 8);
    else if (str_starts(words[at], STR("--from=")))
      return wrong(r, err, "COPY --from: several stages are not supported");
  }
  if (n - at < 2)
    return wrong(r, err, "COPY needs a source and a destination");
  for (size_t i = at; !e && i + 1 < n; i++)
    e = r->ops->copy(r->arg, words[i], words[n - 1], owner, mode, err);
  return e;
}

/* NAME=VALUE..., or NAME and the rest of the line. */
static int take_env(struct reader *r, struct str value, bool argument, struct err *err)
{
  struct str words[WORDS_MAX], pairs[2 * WORDS_MAX], name, rest;
  size_t n;
  int e = split(r, value, words, &n, err);
  if (e || !n)
    return e ? e : wrong(r, err, "ENV and ARG need a name");
  if (str_find(words[0], '=') < 0) {
    value = str_trim(value);
    str_cut(value, ' ', &name, &rest);
    rest = str_trim(rest);
    if (!rest.n && !argument)
      return wrong(r, err, "ENV needs a value");
    if (rest.n > 1 && (rest.p[0] == '"' || rest.p[0] == '\'') && rest.p[rest.n - 1] == rest.p[0])
      rest = str_sub(rest, 1, rest.n - 2);
    pairs[0] = name;
    pairs[1] = rest.n ? rest : STR("");
    return r->ops->step(r->arg, "ENV", pairs, 2, err);
  }
  for (size_t i = 0; i < n; i++) {
    if (!str_cut(words[i], '=', &pairs[2 * i], &pairs[2 * i + 1]) && !argument)
      return wrong(r, err, "ENV needs NAME=VALUE");
    if (!pairs[2 * i + 1].p)
      pairs[2 * i + 1] = STR("");
  }
  return r->ops->step(r->arg, "ENV", pairs, 2 * n, err);
}

static int take(struct reader *r, struct str word, struct str value, struct err *err)
{
  static const char *const silent[] = {"EXPOSE", "LABEL", "MAINTAINER", "VOLUME", "STOPSIGNAL", "HEALTHCHECK", "SHELL", "ONBUILD"};
  if (str_ieq(word, STR("FROM")))
    return take_from(r, value, err);
  if (str_ieq(word, STR("ARG")) && !r->from)
    return wrong(r, err, "ARG before FROM is not supported: write the image's name out");
  if (!r->from)
    return wrong(r, err, "the first instruction must be FROM");
  if (str_ieq(word, STR("COPY")) || str_ieq(word, STR("ADD")))
    return take_copy(r, value, err);
  if (str_ieq(word, STR("ENV")) || str_ieq(word, STR("ARG")))
    return take_env(r, value, str_ieq(word, STR("ARG")), err);
  if (str_ieq(word, STR("CMD")) || str_ieq(word, STR("ENTRYPOINT")))
    return r->ops->start(r->arg, command_text(r, value), err);
  if (str_ieq(word, STR("RUN"))) {
    struct str command = command_text(r, value);
    if (str_starts(command, STR("<<")))
      return wrong(r, err, "RUN with a document of its own (<<) is not supported");
    return r->ops->step(r->arg, "RUN", &command, 1, err);
  }
  bool user = str_ieq(word, STR("USER")), workdir = str_ieq(word, STR("WORKDIR"));
  r->user |= user;
  r->workdir |= workdir;
  if (user || workdir)
    return r->ops->step(r->arg, user ? "USER" : "WORKDIR", &value, 1, err);
  for (size_t i = 0; i < ARRAY_LEN(silent); i++)
    if (str_ieq(word, str_of(silent[i])))
      return 0; /* nothing of it is in a template */
  return wrong(r, err, "an instruction that is none");
}

/* ---- lines ---- */

/* The next instruction, its lines joined; false at the end. Comments go, also between joined lines. */
static bool next_instruction(struct reader *r, struct str *text, size_t *line, struct buf *out)
{
  struct str one;
  buf_clear(out);
  while (text->n) {
    str_cut(*text, '\n', &one, text);
    ++*line;
    one = str_trim(one);
    if (!one.n || one.p[0] == '#')
      continue;
    if (!out->n)
      r->line = *line;
    bool more = one.p[one.n - 1] == '\\';
    one.n -= more;
    one = str_trim(one);
    buf_addf(out, "%s" STR_FMT, out->n && one.n ? " " : "", STR_ARG(one));
    if (!more && out->n)
      return true;
  }
  return out->n > 0;
}

static int read_all(struct reader *r, struct str text, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(TEXT_MAX);
  size_t line = 0;
  int e = 0;
  while (!e && next_instruction(r, &text, &line, &b)) {
    struct str word, value, whole = arena_str(&r->arena, buf_str(&b));
    size_t n = 0;
    while (n < whole.n && whole.p[n] != ' ' && whole.p[n] != '\t')
      n++;
    word = str_sub(whole, 0, n);
    value = str_trim(str_skip(whole, n));
    e = value.n ? take(r, word, value, err) : wrong(r, err, "an instruction without a value");
  }
  if (!e && !r->from)
    e = err_set(err, -EINVAL, "the Dockerfile has no FROM");
  if (!e && !r->user)
    e = r->ops->step(r->arg, "USER", &STR("user"), 1, err);
  return e || r->workdir ? e : r->ops->step(r->arg, "WORKDIR", &STR("/home/user"), 1, err);
}

int dockerfile_read(struct str text, const struct dockerfile_ops *ops, void *arg, struct err *err)
{
  struct reader r = {.ops = ops, .arg = arg, .arena = ARENA_INIT(16 * TEXT_MAX)};
  int e = read_all(&r, text, err);
  arena_free(&r.arena);
  return e;
}
