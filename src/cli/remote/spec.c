/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/spec.h"

#include <inttypes.h>
#include <stdio.h>

const struct option_spec common_options[] = {
    {"url", 0, "URL", "address of the server [CLOCHE_URL, E2B_API_URL]", OPTION_TEXT, offsetof(struct args, url), 0, 0},
    {"key", 0, "KEY", "API key; better by the variable or a profile [CLOCHE_KEY, E2B_API_KEY]", OPTION_TEXT,
     offsetof(struct args, key), 0, 0},
    {"profile", 0, "NAME", "a server that 'cloche login' knows [default]", OPTION_TEXT, offsetof(struct args, profile),
     0, 0},
    {"json", 0, NULL, "print JSON for programs", OPTION_FLAG, offsetof(struct args, json), 0, 0},
    {"help", 'h', NULL, "print this text", OPTION_FLAG, 0, 0, 0},
};
const size_t common_option_count = ARRAY_LEN(common_options);

static const struct option_spec *option_at(const struct command_spec *spec, size_t i)
{
  if (i < spec->option_count)
    return &spec->options[i];
  i -= spec->option_count;
  return i < common_option_count ? &common_options[i] : NULL;
}

static const struct option_spec *by_name(const struct command_spec *spec, struct str name)
{
  const struct option_spec *o;
  for (size_t i = 0; (o = option_at(spec, i)); i++)
    if (str_is(name, o->name))
      return o;
  return NULL;
}

static const struct option_spec *by_letter(const struct command_spec *spec, char letter)
{
  const struct option_spec *o;
  for (size_t i = 0; (o = option_at(spec, i)); i++)
    if (o->letter == letter)
      return o;
  return NULL;
}

static int take_value(const struct option_spec *o, char *value, struct args *args, struct err *err)
{
  void *at = (char *)args + o->at;
  uint64_t number;
  if (o->kind == OPTION_TEXT) {
    *(const char **)at = value;
    return 0;
  }
  if (str_u64(str_of(value), &number) || number < o->least || number > o->most)
    return err_set(err, -EINVAL, "--%s must be from %" PRIu64 " to %" PRIu64 ", not '%s'", o->name, o->least, o->most,
                   value);
  *(uint64_t *)at = number;
  return 0;
}

/* One option, argv[*i]; its value may be the next argument. */
static int take_option(const struct command_spec *spec, int argc, char **argv, int *i, struct args *args,
                       struct err *err)
{
  char *word = argv[*i], *value = NULL;
  const struct option_spec *o;
  if (word[1] == '-') {
    struct str name = str_of(word + 2), rest;
    if (str_cut(name, '=', &name, &rest))
      value = word + 2 + name.n + 1;
    o = by_name(spec, name);
  } else {
    o = by_letter(spec, word[1]);
    if (word[2])
      value = word + 2;
  }
  if (!o)
    return err_set(err, -EINVAL, "no option '%s'; 'cloche %s --help' lists them", word, spec->name);
  if (o->kind == OPTION_FLAG && value)
    return err_set(err, -EINVAL, "--%s takes no value, but has '%s'", o->name, value);
  if (o->kind == OPTION_FLAG) {
    if (!strcmp(o->name, "help"))
      return 1;
    *(bool *)((char *)args + o->at) = true;
    return 0;
  }
  if (!value && *i + 1 >= argc)
    return err_set(err, -EINVAL, "--%s needs a value: %s", o->name, o->value);
  return take_value(o, value ? value : argv[++*i], args, err);
}

int spec_parse(const struct command_spec *spec, int argc, char **argv, struct args *args, struct err *err)
{
  args->words = argv + 1;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--")) {
      args->tail = argv + i + 1;
      break;
    }
    if (argv[i][0] != '-' || !argv[i][1]) {
      args->words[args->word_count++] = argv[i];
      continue;
    }
    int r = take_option(spec, argc, argv, &i, args, err);
    if (r)
      return r;
  }
  if (args->tail && (!spec->tail || !*args->tail))
    return err_set(err, -EINVAL, spec->tail ? "a command must follow '--'" : "'--' has no meaning here");
  if (args->word_count < spec->least_words || args->word_count > spec->most_words)
    return err_set(err, -EINVAL, "usage: cloche %s [OPTION...] %s", spec->name, spec->usage);
  return 0;
}

static void option_line(const struct option_spec *o, struct buf *out)
{
  char left[64], letter[8] = "    ";
  if (o->letter)
    snprintf(letter, sizeof(letter), "-%c, ", o->letter);
  snprintf(left, sizeof(left), "%s--%s%s%s", letter, o->name, o->value ? " " : "", o->value ? o->value : "");
  buf_addf(out, "  %-24s %s\n", left, o->help);
}

void spec_help(const struct command_spec *spec, struct buf *out)
{
  const struct option_spec *o;
  buf_addf(out, "cloche %s - %s\n\nUsage: cloche %s [OPTION...]%s%s\n\n%s\n\n", spec->name, spec->summary, spec->name,
           *spec->usage ? " " : "", spec->usage, spec->text);
  for (size_t i = 0; (o = option_at(spec, i)); i++)
    option_line(o, out);
}

bool spec_names_server(int argc, char **argv)
{
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
    struct str word = str_of(argv[i]), rest;
    str_cut(word, '=', &word, &rest);
    if (str_is(word, "--url") || str_is(word, "--key") || str_is(word, "--profile"))
      return true;
  }
  return false;
}
