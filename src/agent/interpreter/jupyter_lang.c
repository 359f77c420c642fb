/* SPDX-License-Identifier: Apache-2.0 */
/* jupyter_lang.c - silent cells in five languages; see jupyter_lang.h. */
#include "agent/interpreter/jupyter_lang.h"

static const struct {
  const char *language;
  enum kernel_lang kernel_lang;
} languages[] = {
    {"python", LANG_PYTHON}, {"javascript", LANG_JAVASCRIPT}, {"typescript", LANG_JAVASCRIPT}, {"r", LANG_R},
    {"bash", LANG_BASH},     {"julia", LANG_JULIA},
};

enum kernel_lang lang_of(const char *language)
{
  for (size_t i = 0; i < ARRAY_LEN(languages); i++)
    if (strcmp(language, languages[i].language) == 0)
      return languages[i].kernel_lang;
  return LANG_NONE;
}

/* Octal escapes mean the same byte in Python's bytes, R, Julia and the shell's $'...'. */
static void put_octal(struct buf *b, struct str s)
{
  for (size_t i = 0; i < s.n; i++) {
    unsigned char c = (unsigned char)s.p[i];
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("_-./:, @", c);
    if (plain && c)
      buf_addc(b, (char)c);
    else
      buf_addf(b, "\\%03o", c);
  }
}

static void put_literal(enum kernel_lang w, struct buf *b, struct str s)
{
  if (w == LANG_JAVASCRIPT) {
    json_put_str(b, s, true);
    return;
  }
  buf_addz(b, w == LANG_PYTHON ? "b'" : w == LANG_BASH ? "$'" : "\"");
  put_octal(b, s);
  buf_addz(b, w == LANG_PYTHON ? "'" : w == LANG_BASH ? "'" : "\"");
}

static bool shell_name(struct str s)
{
  for (size_t i = 0; i < s.n; i++) {
    char c = s.p[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && !(i && c >= '0' && c <= '9'))
      return false;
  }
  return s.n > 0;
}

/* One call with the name and, unless unsetting, the value as literals. */
static void put_call(enum kernel_lang w, struct buf *b, const char *open, struct str name, const char *mid,
                     const struct str *value, const char *close)
{
  buf_addz(b, open);
  put_literal(w, b, name);
  buf_addz(b, mid);
  if (value)
    put_literal(w, b, *value);
  buf_addz(b, close);
}

static void put_r_names(struct buf *b, struct str name, struct str value)
{
  buf_addz(b, "do.call(Sys.setenv, stats::setNames(list(");
  put_literal(LANG_R, b, value);
  buf_addz(b, "), ");
  put_literal(LANG_R, b, name);
  buf_addz(b, "))\n");
}

void lang_set(enum kernel_lang w, struct buf *b, struct str name, struct str value)
{
  if (w == LANG_PYTHON)
    put_call(w, b, "__import__('os').environb[", name, "] = ", &value, "\n");
  else if (w == LANG_JAVASCRIPT)
    put_call(w, b, "process.env[", name, "] = ", &value, ";\n");
  else if (w == LANG_JULIA)
    put_call(w, b, "ENV[", name, "] = ", &value, "\n");
  else if (w == LANG_R)
    put_r_names(b, name, value);
  else if (w == LANG_BASH && shell_name(name)) {
    buf_addf(b, "export " STR_FMT "=", STR_ARG(name));
    put_literal(w, b, value);
    buf_addc(b, '\n');
  }
}

void lang_unset(enum kernel_lang w, struct buf *b, struct str name)
{
  if (w == LANG_PYTHON)
    put_call(w, b, "__import__('os').environb.pop(", name, ", None)\n", NULL, "");
  else if (w == LANG_JAVASCRIPT)
    put_call(w, b, "delete process.env[", name, "];\n", NULL, "");
  else if (w == LANG_JULIA)
    put_call(w, b, "delete!(ENV, ", name, ")\n", NULL, "");
  else if (w == LANG_R)
    put_call(w, b, "Sys.unsetenv(", name, ")\n", NULL, "");
  else if (w == LANG_BASH && shell_name(name))
    buf_addf(b, "unset " STR_FMT "\n", STR_ARG(name));
}

int lang_cd(enum kernel_lang w, struct buf *b, const char *path)
{
  static const char *const calls[] = {
      [LANG_PYTHON] = "__import__('os').chdir(",
      [LANG_JAVASCRIPT] = "process.chdir(",
      [LANG_R] = "setwd(",
      [LANG_BASH] = "cd -- ",
      [LANG_JULIA] = "cd(",
  };
  if (w == LANG_NONE)
    return -ENOTSUP;
  put_call(w, b, calls[w], str_of(path), w == LANG_BASH ? "\n" : ")\n", NULL, "");
  return 0;
}
