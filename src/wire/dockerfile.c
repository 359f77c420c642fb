/* SPDX-License-Identifier: Apache-2.0 */
/* dockerfile.c - see dockerfile.h. */
#include "wire/dockerfile.h"

#include <stdio.h>

#define LANG_MAX 256
#define TEXT_MAX (2 * DOCKERFILE_MAX)
#define ARGS_MAX 256               /* arguments before the first FROM */
#define EXPANDED ((size_t)1 << 16) /* bytes of a value with arguments put in */

struct stage {
  struct str name, start; /* in the arena; start "": none */
};

struct argument {
  struct str name, value;
};

struct reader {
  const struct dockerfile_ops *ops;
  void *arg;
  struct arena arena;
  size_t line; /* of the instruction's beginning */
  bool from, user, workdir;
  VEC(struct stage) stages;       /* the last one is under way */
  VEC(struct argument) arguments; /* given before the first FROM */
};

static int wrong(const struct reader *r, struct err *err, const char *what)
{
  return err_set(err, -EINVAL, "Dockerfile, line %zu: %s", r->line, what);
}

/* ---- words ---- */

/* Splits at blanks; quotes hold words together and go, a backslash takes the next byte as it is. */
static int split(struct reader *r, struct str text, struct str words[LANG_MAX], size_t *n, struct err *err)
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
    if (quote || *n == LANG_MAX)
      return wrong(r, err, quote ? "a quote is not closed" : "too many words");
    words[*n] = arena_str(&r->arena, buf_str(&word));
    if (!words[(*n)++].p)
      return wrong(r, err, "the Dockerfile is too large");
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

static struct str argument(const struct reader *r, struct str name)
{
  for (size_t i = r->arguments.n; i-- > 0;)
    if (str_eq(r->arguments.p[i].name, name))
      return r->arguments.p[i].value;
  return STR("");
}

static bool name_byte(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* $NAME, ${NAME} and ${NAME:-OTHERWISE} of arguments, which are all that is known before a stage begins. */
static int expand(struct reader *r, struct str text, struct str *out, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(EXPANDED);
  bool closes = str_find(text, '}') >= 0; /* looked for once, where there is none */
  while (text.n) {
    struct str name, otherwise = STR("");
    bool braced = text.n > 1 && text.p[0] == '$' && text.p[1] == '{';
    ptrdiff_t end = !braced ? 0 : closes ? str_find(text, '}') : -1;
    closes &= end >= 0;
    if (text.p[0] != '$' || end < 0 || text.n < 2 || (!braced && !name_byte(text.p[1]))) {
      buf_addc(&b, text.p[0]);
      text = str_skip(text, 1);
      continue;
    }
    if (braced) {
      name = str_sub(text, 2, (size_t)end - 2);
      text = str_skip(text, (size_t)end + 1);
      ptrdiff_t at = str_search(name, STR(":-"));
      if (at >= 0) {
        otherwise = str_skip(name, (size_t)at + 2);
        name = str_sub(name, 0, (size_t)at);
      }
    } else {
      size_t n = 1;
      while (n < text.n && name_byte(text.p[n]))
        n++;
      name = str_sub(text, 1, n - 1);
      text = str_skip(text, n);
    }
    struct str value = argument(r, name);
    buf_adds(&b, value.n ? value : otherwise);
  }
  if (buf_failed(&b))
    return wrong(r, err, "a value with its arguments put in is too long");
  *out = arena_str(&r->arena, buf_str(&b));
  return out->p ? 0 : wrong(r, err, "the Dockerfile is too large");
}

static int take_argument(struct reader *r, struct str value, struct err *err)
{
  struct str words[LANG_MAX];
  struct argument a;
  size_t n;
  int e = split(r, value, words, &n, err);
  for (size_t i = 0; !e && i < n; i++) {
    if (!str_cut(words[i], '=', &a.name, &a.value))
      a.value = STR("");
    if (r->arguments.n == ARGS_MAX)
      return wrong(r, err, "too many arguments before the first FROM");
    if (!(e = expand(r, a.value, &a.value, err)))
      vec_push(&r->arguments, a);
  }
  return e;
}

/* A stage that has ended, by its name or number; NULL: none. */
static const struct stage *find_stage(const struct reader *r, struct str word)
{
  uint64_t number;
  for (size_t i = 0; i + 1 < r->stages.n; i++)
    if (str_ieq(str_skip(r->stages.p[i].name, 6), word) || (!str_u64(word, &number) && number == i))
      return &r->stages.p[i];
  return NULL;
}

static struct str stage_name(struct reader *r, const struct str *words, size_t n)
{
  if (n < 3 || !str_ieq(words[1], STR("AS")))
    return str_of(arena_fmt(&r->arena, "stage-%zu", r->stages.n));
  char *name = arena_fmt(&r->arena, "stage-" STR_FMT, STR_ARG(words[2]));
  for (char *c = name; c && *c; c++)
    *c = *c >= 'A' && *c <= 'Z' ? (char)(*c + 32) : *c;
  return str_of(name);
}

static int take_from(struct reader *r, struct str value, struct err *err)
{
  struct str words[LANG_MAX];
  size_t n, at = 0;
  int e = split(r, value, words, &n, err);
  while (at < n && str_starts(words[at], STR("--")))
    at++;
  if (!e && at == n)
    e = wrong(r, err, "FROM needs an image");
  struct str base = STR("");
  if (!e)
    e = expand(r, words[at], &base, err);
  if (!e && !base.n)
    e = wrong(r, err, "FROM needs an image, and its arguments give none");
  if (!e && r->from)
    e = r->ops->stage(r->arg, r->stages.p[r->stages.n - 1].name, r->line, err);
  if (e)
    return e;
  struct stage own = {.name = stage_name(r, words + at, n - at), .start = STR("")};
  if (!own.name.p)
    return wrong(r, err, "the Dockerfile is too large");
  vec_push(&r->stages, own);
  const struct stage *before = find_stage(r, base);
  struct str start = before ? before->start : STR("");
  bool first = !r->from;
  r->from = true;
  r->user = r->workdir = before != NULL; /* it has both */
  r->stages.p[r->stages.n - 1].start = start;
  e = first ? 0 : r->ops->start(r->arg, start, err);
  e = e ? e : r->ops->from(r->arg, before ? before->name : base, before != NULL, err);
  e = e || before ? e : r->ops->step(r->arg, "USER", &STR("root"), 1, err);
  return e || before ? e : r->ops->step(r->arg, "WORKDIR", &STR("/"), 1, err);
}

static int take_copy(struct reader *r, struct str value, struct err *err)
{
  struct str words[LANG_MAX];
  struct dockerfile_copy c = {.owner = STR(""), .mode = STR(""), .stage = STR(""), .line = r->line};
  size_t n, at = 0;
  int e = split(r, value, words, &n, err);
  if (e)
    return e;
  for (; at < n && str_starts(words[at], STR("--")); at++) {
    const struct stage *from = str_starts(words[at], STR("--from=")) ? find_stage(r, str_skip(words[at], 7)) : NULL;
    if (str_starts(words[at], STR("--chown=")))
      c.owner = str_skip(words[at], 8);
    else if (str_starts(words[at], STR("--chmod=")))
      c.mode = str_skip(words[at], 8);
    else if (from)
      c.stage = from->name;
    else if (str_starts(words[at], STR("--from=")))
      return wrong(r, err,
                   "COPY --from needs the name or number of an earlier stage; an image is one by FROM IMAGE AS NAME");
  }
  if (n - at < 2)
    return wrong(r, err, "COPY needs a source and a destination");
  if (str_starts(words[at], STR("<<")))
    return wrong(r, err, "COPY of a document (<<) is not supported: write it with RUN cat > FILE <<EOF");
  c.target = words[n - 1];
  for (size_t i = at; !e && i + 1 < n; i++) {
    c.source = words[i];
    e = r->ops->copy(r->arg, &c, err);
  }
  return e;
}

/* NAME=VALUE..., or NAME and the rest of the line. */
static int take_env(struct reader *r, struct str value, bool is_argument, struct err *err)
{
  struct str words[LANG_MAX], pairs[2 * LANG_MAX], name, rest;
  size_t n;
  int e = split(r, value, words, &n, err);
  if (e || !n)
    return e ? e : wrong(r, err, "ENV and ARG need a name");
  if (str_find(words[0], '=') < 0) {
    value = str_trim(value);
    str_cut(value, ' ', &name, &rest);
    rest = str_trim(rest);
    if (!rest.n && !is_argument)
      return wrong(r, err, "ENV needs a value");
    if (rest.n > 1 && (rest.p[0] == '"' || rest.p[0] == '\'') && rest.p[rest.n - 1] == rest.p[0])
      rest = str_sub(rest, 1, rest.n - 2);
    pairs[0] = name;
    pairs[1] = rest.n ? rest : argument(r, name);
    return r->ops->step(r->arg, "ENV", pairs, 2, err);
  }
  for (size_t i = 0; i < n; i++) {
    if (!str_cut(words[i], '=', &pairs[2 * i], &pairs[2 * i + 1]) && !is_argument)
      return wrong(r, err, "ENV needs NAME=VALUE");
    if (!pairs[2 * i + 1].p)
      pairs[2 * i + 1] = STR("");
  }
  return r->ops->step(r->arg, "ENV", pairs, 2 * n, err);
}

/* A document alone is the script; beside a command it is the shell's business, as it stands. */
static int take_run(struct reader *r, struct str value, struct err *err)
{
  struct str line, body, command = command_text(r, value);
  bool documents = str_cut(value, '\n', &line, &body);
  if (documents && str_starts(line, STR("<<")) && str_find(line, ' ') < 0) {
    ptrdiff_t end = str_rfind(str_sub(body, 0, body.n - 1), '\n');
    command = str_sub(body, 0, end < 0 ? 0 : (size_t)end + 1);
    if (str_starts(command, STR("#!")))
      return wrong(r, err, "a document that names its program (#!) is not supported: write RUN PROGRAM <<EOF");
  }
  return command.n ? r->ops->step(r->arg, "RUN", &command, 1, err) : wrong(r, err, "RUN needs a command");
}

static int take(struct reader *r, struct str word, struct str value, struct err *err)
{
  static const char *const silent[] = {"EXPOSE",     "LABEL",       "MAINTAINER", "VOLUME",
                                       "STOPSIGNAL", "HEALTHCHECK", "SHELL",      "ONBUILD"};
  if (str_ieq(word, STR("FROM")))
    return take_from(r, value, err);
  if (str_ieq(word, STR("ARG")) && !r->from)
    return take_argument(r, value, err);
  if (!r->from)
    return wrong(r, err, "the first instruction must be FROM");
  if (str_ieq(word, STR("COPY")) || str_ieq(word, STR("ADD")))
    return take_copy(r, value, err);
  if (str_ieq(word, STR("ENV")) || str_ieq(word, STR("ARG")))
    return take_env(r, value, str_ieq(word, STR("ARG")), err);
  if (str_ieq(word, STR("CMD")) || str_ieq(word, STR("ENTRYPOINT"))) {
    struct str command = command_text(r, value);
    r->stages.p[r->stages.n - 1].start = command;
    return r->ops->start(r->arg, command, err);
  }
  if (str_ieq(word, STR("RUN")))
    return take_run(r, value, err);
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

/* The next "<<WORD" of a line behind *at, outside of quotes and at the beginning of a word: how its document ends. */
static bool next_document(struct str line, size_t *at, struct str *word, bool *tabs)
{
  char quote = 0;
  for (size_t i = *at; i + 2 < line.n; i++) {
    char c = line.p[i];
    if (quote ? c == quote : c == '"' || c == '\'')
      quote = quote ? 0 : c;
    bool begins = !quote && c == '<' && line.p[i + 1] == '<' && (!i || line.p[i - 1] == ' ' || line.p[i - 1] == '\t');
    if (!begins)
      continue;
    size_t from = i + 2;
    *tabs = line.p[from] == '-';
    from += *tabs;
    char around = from < line.n && (line.p[from] == '"' || line.p[from] == '\'') ? line.p[from] : 0;
    from += around != 0;
    size_t to = from;
    while (to < line.n && name_byte(line.p[to]))
      to++;
    if (to == from)
      continue;
    *word = str_sub(line, from, to - from);
    *at = to + (around != 0);
    return true;
  }
  return false;
}

/* Takes the documents that an instruction announces from the lines behind it, as they are. Of one that may be indented
 * (<<-) the tabs go, because the script it may be has none. */
static int take_documents(struct reader *r, struct str *text, size_t *line, struct buf *out, struct err *err)
{
  struct str head = arena_str(&r->arena, buf_str(out)), word;
  size_t at = 0;
  bool tabs;
  if (!str_starts(head, STR("RUN ")) && !str_starts(head, STR("run ")))
    return 0;
  while (next_document(head, &at, &word, &tabs)) {
    if (out->p[out->n - 1] != '\n')
      buf_addc(out, '\n');
    for (bool over = false; !over;) {
      struct str one;
      if (!text->n)
        return wrong(r, err, "a document (<<) is not ended");
      str_cut(*text, '\n', &one, text);
      ++*line;
      while (tabs && one.n && one.p[0] == '\t')
        one = str_skip(one, 1);
      over = str_eq(one, word);
      buf_adds(out, one);
      buf_addc(out, '\n');
    }
  }
  return 0;
}

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
    if ((e = take_documents(r, &text, &line, &b, err)))
      return e;
    struct str word, value, whole = arena_str(&r->arena, buf_str(&b));
    size_t n = 0;
    if (!whole.p)
      return wrong(r, err, "the Dockerfile is too large");
    while (n < whole.n && whole.p[n] != ' ' && whole.p[n] != '\t')
      n++;
    word = str_sub(whole, 0, n);
    value = str_skip(whole, n);
    while (value.n && (value.p[0] == ' ' || value.p[0] == '\t'))
      value = str_skip(value, 1);
    value = str_find(value, '\n') < 0 ? str_trim(value) : value; /* the end of a document is its own */
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
  int e = text.n > DOCKERFILE_MAX
              ? err_set(err, -EINVAL, "the Dockerfile has %zu bytes; at most %zu are read", text.n, DOCKERFILE_MAX)
              : read_all(&r, text, err);
  vec_free(&r.stages);
  vec_free(&r.arguments);
  arena_free(&r.arena);
  return e;
}
