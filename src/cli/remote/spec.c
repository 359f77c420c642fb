/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/spec.h"
#include "cli/remote/suggest.h"

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

const struct option_spec *spec_option(const struct command_spec *spec, size_t i)
{
  if (i < spec->option_count)
    return &spec->options[i];
  i -= spec->option_count;
  return i < common_option_count ? &common_options[i] : NULL;
}

static const struct option_spec *by_name(const struct command_spec *spec, struct str name)
{
  const struct option_spec *o;
  for (size_t i = 0; (o = spec_option(spec, i)); i++)
    if (str_is(name, o->name))
      return o;
  return NULL;
}

static const struct option_spec *by_letter(const struct command_spec *spec, char letter)
{
  const struct option_spec *o;
  for (size_t i = 0; (o = spec_option(spec, i)); i++)
    if (o->letter == letter)
      return o;
  return NULL;
}

static int take_value(const struct option_spec *o, char *value, struct args *args, struct err *err)
{
  void *at = (char *)args + o->at;
  uint64_t number;
  if (o->kind == OPTION_MANY) {
    vec_push(&args->given, ((struct given){o->name, value}));
    return 0;
  }
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

static int take_verb(const struct command_spec *spec, struct args *args, const struct verb_spec **verb, struct err *err)
{
  const char *names[64], *word = args->word_count ? args->words[0] : "";
  for (size_t i = 0; i < spec->verb_count; i++) {
    names[MIN(i, ARRAY_LEN(names) - 1)] = spec->verbs[i].name;
    if (!strcmp(word, spec->verbs[i].name))
      *verb = &spec->verbs[i];
  }
  if (!*word)
    return err_set(err, -EINVAL, "a verb is missing; 'cloche %s --help' lists them", spec->name);
  const char *near = did_you_mean(word, names, MIN(spec->verb_count, ARRAY_LEN(names)));
  if (!*verb && near)
    return err_set(err, -EINVAL, "no verb '%s' of 'cloche %s'; did you mean '%s'?", word, spec->name, near);
  if (!*verb)
    return err_set(err, -EINVAL, "no verb '%s'; 'cloche %s --help' lists them", word, spec->name);
  args->words++;
  args->word_count--;
  if (args->word_count < (*verb)->least_words || args->word_count > (*verb)->most_words)
    return err_set(err, -EINVAL, "usage: cloche %s %s %s", spec->name, (*verb)->name, (*verb)->usage);
  return 0;
}

int spec_parse(const struct command_spec *spec, int argc, char **argv, struct args *args, const struct verb_spec **verb,
               struct err *err)
{
  *verb = NULL;
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
  if (spec->verbs)
    return take_verb(spec, args, verb, err);
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

static void verb_lines(const struct command_spec *spec, struct buf *out)
{
  for (size_t i = 0; i < spec->verb_count; i++) {
    const struct verb_spec *v = &spec->verbs[i];
    cleanup_free char *left = xasprintf("%s%s%s", v->name, *v->usage ? " " : "", v->usage);
    buf_addf(out, strlen(left) > 30 ? "  %s\n  %-30s %s\n" : "  %-30s %s%s\n", left,
             strlen(left) > 30 ? "" : v->summary, strlen(left) > 30 ? v->summary : "");
  }
  buf_addc(out, '\n');
}

void spec_help(const struct command_spec *spec, struct buf *out)
{
  const struct option_spec *o;
  const char *usage = spec->verbs ? "VERB ..." : spec->usage;
  buf_addf(out, "cloche %s - %s\n\nUsage: cloche %s %s%s%s\n\n", spec->name, spec->summary, spec->name,
           spec->verbs ? "" : "[OPTION...]", *usage && !spec->verbs ? " " : "", usage);
  if (spec->verbs)
    verb_lines(spec, out);
  buf_addf(out, "%s\n\n", spec->text);
  for (size_t i = 0; (o = spec_option(spec, i)); i++)
    option_line(o, out);
}

bool spec_names_server(const struct command_spec *spec, int argc, char **argv)
{
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
    struct str word = str_of(argv[i]), rest;
    str_cut(word, '=', &word, &rest);
    if ((str_is(word, "--url") && !spec->own_url) || str_is(word, "--key") || str_is(word, "--profile"))
      return true;
  }
  return false;
}
