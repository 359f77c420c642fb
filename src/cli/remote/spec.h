/* SPDX-License-Identifier: Apache-2.0 */
/* spec.h - what a command of this folder takes, as a table: its parser, its help text, completions of shells and its
 * manual page all come from it. Start here.
 *
 * Commands of this folder speak to a server over HTTP by libcloche, with an API key, from any machine. */
#ifndef CLOCHE_CLI_SPEC_H
#define CLOCHE_CLI_SPEC_H

#include "base/base.h"

/* One of --run, --copy, --env ... */
struct given {
  const char *name, *value;
};

/* The options of all commands; those that a command doesn't list stay zero. All texts are borrowed from argv. */
struct args {
  const char *url, *key, *profile;
  const char *language, *box, *template_id, *out, *user, *workdir, *name;
  const char *admin_token, *file, *context, *start, *ready, *isolation;
  bool json, keep, tty, follow, cold, recursive, no_internet, auto_resume, no_cache, token, yes;
  uint64_t seconds, lines, cpus, memory;
  VEC(struct given) given; /* options that may be there more than once, in their order */
  char **words;            /* what is neither an option nor behind "--" */
  size_t word_count;
  char **tail; /* what is behind "--", ends with NULL; NULL when there was no "--" */
};

enum option_kind { OPTION_FLAG, OPTION_TEXT, OPTION_NUMBER, OPTION_MANY };

struct option_spec {
  const char *name; /* without "--" */
  char letter;      /* 0: none */
  const char *value, *help;
  enum option_kind kind;
  size_t at; /* offset in struct args */
  uint64_t least, most;
};

/* `cloche template build NAME`: what is done with things of one kind. */
struct verb_spec {
  const char *name, *usage, *summary;
  size_t least_words, most_words; /* behind the verb */
  int (*run)(struct args *args);
};

struct command_spec {
  const char *name, *summary;
  const char *usage; /* the words after the options, "ID [-- COMMAND [ARG...]]" */
  const char *text;  /* paragraphs for help and manual */
  const struct option_spec *options;
  size_t option_count;
  size_t least_words, most_words;
  bool tail;                     /* takes "--" */
  bool own_url;                  /* its --url is no server's name: the local form has it, too */
  const struct verb_spec *verbs; /* its first word is one of these; NULL: `run` */
  size_t verb_count;
  int (*run)(struct args *args);
};

/* Options that every command of this folder has: which server, --json, --help. */
extern const struct option_spec common_options[];
extern const size_t common_option_count;

/* Reads argv[1..]; words are moved to the front of argv. 0, -EINVAL with a message, or 1 when help was asked for.
 * *verb is the verb that the first word names, which is taken off the words; NULL where the command has none. */
int spec_parse(const struct command_spec *spec, int argc, char **argv, struct args *args, const struct verb_spec **verb,
               struct err *err);
/* The text of --help. */
void spec_help(const struct command_spec *spec, struct buf *out);
/* Whether a command line names a server: --url, --key or --profile is among its options. */
bool spec_names_server(const struct command_spec *spec, int argc, char **argv);
/* The i-th option: the command's own, then the common ones, then NULL. */
const struct option_spec *spec_option(const struct command_spec *spec, size_t i);

#endif
