/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/completion.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT_MAX ((size_t)1 << 20)

/* A word in single quotes for sh-like shells and fish. */
static void quoted(struct buf *out, const char *text)
{
  buf_addc(out, '\'');
  for (; *text; text++) {
    if (*text == '\'')
      buf_addz(out, "'\\''");
    else
      buf_addc(out, *text);
  }
  buf_addc(out, '\'');
}

const struct command *local_of(const struct command_tables *t, const char *name)
{
  for (size_t i = 0; i < t->local_count; i++)
    if (!strcmp(name, t->local[i].name))
      return &t->local[i];
  return NULL;
}

const struct command_spec *spec_of(const struct command_tables *t, const char *name)
{
  for (size_t i = 0; i < t->remote_count; i++)
    if (!strcmp(name, t->remote[i]->name))
      return t->remote[i];
  return NULL;
}

typedef void name_fn(struct buf *out, const char *name, const char *summary);

/* Every name once: that of both tables with the local one's summary. */
static void each_name(const struct command_tables *t, struct buf *out, name_fn *fn)
{
  for (size_t i = 0; i < t->remote_count; i++) {
    if (!local_of(t, t->remote[i]->name))
      fn(out, t->remote[i]->name, t->remote[i]->summary);
  }
  for (size_t i = 0; i < t->local_count; i++)
    fn(out, t->local[i].name, t->local[i].summary);
}

/* ---- bash ---- */

static void bash_name(struct buf *out, const char *name, const char *summary)
{
  buf_addf(out, " %s", name);
}

static void bash_options(const struct command_spec *spec, struct buf *out)
{
  const struct option_spec *o;
  buf_addf(out, "    %s) ", spec->name);
  if (spec->verbs) {
    buf_addz(out, "verbs='");
    for (size_t i = 0; i < spec->verb_count; i++)
      buf_addf(out, "%s ", spec->verbs[i].name);
    buf_addz(out, "'; ");
  }
  buf_addz(out, "words='");
  for (size_t i = 0; (o = spec_option(spec, i)); i++) {
    if (o->letter)
      buf_addf(out, "-%c ", o->letter);
    buf_addf(out, "--%s ", o->name);
  }
  buf_addz(out, "' ;;\n");
}

static void bash_text(const struct command_tables *t, struct buf *out)
{
  buf_addz(out, "# bash completion of cloche: source this, or put it into /etc/bash_completion.d\n"
                "_cloche() {\n  local current=${COMP_WORDS[COMP_CWORD]} words= verbs=\n"
                "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    words='");
  each_name(t, out, bash_name);
  buf_addz(out, "'\n  else\n    case ${COMP_WORDS[1]} in\n");
  for (size_t i = 0; i < t->remote_count; i++)
    bash_options(t->remote[i], out);
  buf_addz(out, "    esac\n    [ \"${current#-}\" != \"$current\" ] || words=\n"
                "    [ \"$COMP_CWORD\" -ne 2 ] || [ -n \"$words\" ] || words=$verbs\n  fi\n"
                "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n}\n"
                "complete -o default -F _cloche cloche\n");
}

/* ---- zsh ---- */

static void zsh_name(struct buf *out, const char *name, const char *summary)
{
  cleanup_buf struct buf entry = BUF_INIT(1024);
  buf_addf(&entry, "%s:%s", name, summary);
  buf_addz(out, "    ");
  quoted(out, buf_z(&entry));
  buf_addc(out, '\n');
}

/* Brackets and colons have a meaning in _arguments. */
static void zsh_help(struct buf *out, const char *text)
{
  for (; *text; text++) {
    if (strchr("[]:\\", *text))
      buf_addc(out, '\\');
    buf_addc(out, *text);
  }
}

static void zsh_option(struct buf *out, const char *dashes, const char *name, const struct option_spec *o)
{
  cleanup_buf struct buf entry = BUF_INIT(1024);
  buf_addf(&entry, "%s%s[", dashes, name);
  zsh_help(&entry, o->help);
  buf_addc(&entry, ']');
  if (o->value)
    buf_addf(&entry, ":%s:", o->value);
  buf_addz(out, " \\\n        ");
  quoted(out, buf_z(&entry));
}

static void zsh_options(const struct command_spec *spec, struct buf *out)
{
  const struct option_spec *o;
  buf_addf(out, "    %s)\n      _arguments", spec->name);
  for (size_t i = 0; (o = spec_option(spec, i)); i++) {
    zsh_option(out, "--", o->name, o);
    if (o->letter)
      zsh_option(out, "-", (char[]){o->letter, 0}, o);
  }
  if (spec->verbs) {
    buf_addz(out, " \\\n        '1:verb:(");
    for (size_t i = 0; i < spec->verb_count; i++)
      buf_addf(out, "%s%s", i ? " " : "", spec->verbs[i].name);
    buf_addz(out, ")'");
  }
  buf_addz(out, " \\\n        '*:file:_files' ;;\n");
}

static void zsh_text(const struct command_tables *t, struct buf *out)
{
  buf_addz(out, "#compdef cloche\n_cloche() {\n  local -a commands=(\n");
  each_name(t, out, zsh_name);
  buf_addz(out, "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
                "  shift words\n  (( CURRENT-- ))\n  case $words[1] in\n");
  for (size_t i = 0; i < t->remote_count; i++)
    zsh_options(t->remote[i], out);
  buf_addz(out, "    *) _files ;;\n  esac\n}\ncompdef _cloche cloche\n");
}

/* ---- fish ---- */

static void fish_name(struct buf *out, const char *name, const char *summary)
{
  buf_addf(out, "complete -c cloche -n __fish_use_subcommand -f -a %s -d ", name);
  quoted(out, summary);
  buf_addc(out, '\n');
}

static void fish_verbs(const struct command_spec *spec, struct buf *out)
{
  for (size_t i = 0; i < spec->verb_count; i++) {
    buf_addf(out, "complete -c cloche -n '__fish_seen_subcommand_from %s' -f -a %s -d ", spec->name,
             spec->verbs[i].name);
    quoted(out, spec->verbs[i].summary);
    buf_addc(out, '\n');
  }
}

static void fish_options(const struct command_spec *spec, struct buf *out)
{
  const struct option_spec *o;
  fish_verbs(spec, out);
  for (size_t i = 0; (o = spec_option(spec, i)); i++) {
    buf_addf(out, "complete -c cloche -n '__fish_seen_subcommand_from %s' -l %s ", spec->name, o->name);
    if (o->letter)
      buf_addf(out, "-s %c ", o->letter);
    buf_addz(out, o->value ? "-r -d " : "-d ");
    quoted(out, o->help);
    buf_addc(out, '\n');
  }
}

static int completion_text(const struct command_tables *t, const char *shell, struct buf *out)
{
  if (!strcmp(shell, "bash")) {
    bash_text(t, out);
  } else if (!strcmp(shell, "zsh")) {
    zsh_text(t, out);
  } else if (!strcmp(shell, "fish")) {
    each_name(t, out, fish_name);
    for (size_t i = 0; i < t->remote_count; i++)
      fish_options(t->remote[i], out);
  } else {
    return -EINVAL;
  }
  return 0;
}

/* ---- manual pages ---- */

/* Text for roff: no line may begin with a dot or a quote, no minus may become a hyphen. */
static void roff(struct buf *out, const char *text)
{
  bool start = true;
  for (; *text; text++) {
    if (start && (*text == '.' || *text == '\''))
      buf_addz(out, "\\&");
    if (*text == '\\')
      buf_addz(out, "\\e");
    else if (*text == '-')
      buf_addz(out, "\\-");
    else
      buf_addc(out, *text);
    start = *text == '\n';
  }
}

static void manual_name(struct buf *out, const char *name, const char *summary)
{
  buf_addf(out, ".TP\n.B %s\n", name);
  roff(out, summary);
  buf_addc(out, '\n');
}

/* A text with lines of its own. */
static void manual_text(struct buf *out, const char *text)
{
  buf_addz(out, ".nf\n");
  roff(out, text);
  buf_addz(out, "\n.fi\n");
}

static void manual_see(struct buf *out, const char *name, const char *summary)
{
  buf_addf(out, ".BR cloche\\-%s (1)\n", name);
}

static void manual_overview(const struct command_tables *t, struct buf *out)
{
  buf_addz(out,
           ".TH CLOCHE 1 \"\" \"cloche " CLOCHE_VERSION "\"\n.SH NAME\ncloche \\- sandboxes for code\n.SH SYNOPSIS\n"
           ".B cloche\nCOMMAND [OPTION...]\n.SH COMMANDS\n");
  each_name(t, out, manual_name);
  buf_addz(out, ".SH SEE ALSO\n");
  each_name(t, out, manual_see);
}

static void manual_head(struct buf *out, const char *name, const char *summary)
{
  buf_addf(out, ".TH CLOCHE\\-%s 1 \"\" \"cloche " CLOCHE_VERSION "\"\n.SH NAME\ncloche\\-%s \\- ", name, name);
  roff(out, summary);
  buf_addf(out, "\n.SH SYNOPSIS\n.B cloche %s\n", name);
}

static void manual_verbs(const struct command_spec *spec, struct buf *out)
{
  buf_addz(out, "\n.SH VERBS\n");
  for (size_t i = 0; i < spec->verb_count; i++) {
    buf_addf(out, ".TP\n.B %s\n", spec->verbs[i].name);
    if (*spec->verbs[i].usage) {
      roff(out, spec->verbs[i].usage);
      buf_addz(out, "\n.br\n");
    }
    roff(out, spec->verbs[i].summary);
    buf_addc(out, '\n');
  }
}

static void manual_spec(const struct command_spec *spec, struct buf *out)
{
  const struct option_spec *o;
  manual_head(out, spec->name, spec->summary);
  buf_addz(out, spec->verbs ? "VERB [OPTION...] " : "[OPTION...] ");
  roff(out, spec->usage);
  buf_addz(out, "\n.SH DESCRIPTION\n");
  roff(out, spec->text);
  if (spec->verbs)
    manual_verbs(spec, out);
  buf_addz(out, "\n.SH OPTIONS\n");
  for (size_t i = 0; (o = spec_option(spec, i)); i++) {
    buf_addz(out, ".TP\n");
    if (o->letter)
      buf_addf(out, "\\fB\\-%c\\fR, ", o->letter);
    buf_addf(out, "\\fB\\-\\-%s\\fR %s\n", o->name, o->value ? o->value : "");
    roff(out, o->help);
    buf_addc(out, '\n');
  }
}

/* In a child: some commands end the program after their help, or keep state of getopt. */
int local_help(const struct command *command, struct buf *out)
{
  char name[32], help[] = "--help", *argv[] = {name, help, NULL};
  cleanup_fd int memory = memfd_create("help", MFD_CLOEXEC);
  snprintf(name, sizeof(name), "%s", command->name);
  fflush(stdout);
  pid_t pid = memory < 0 ? -1 : fork();
  if (pid == 0) {
    if (dup2(memory, 1) < 0)
      _exit(1);
    int status = command->run(2, argv);
    fflush(stdout);
    _exit(status);
  }
  if (pid < 0)
    return -errno;
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
    ;
  lseek(memory, 0, SEEK_SET);
  return fd_read_all(memory, out);
}

/* A command that has both forms has one page. */
static void manual_page(const struct command *local, const struct command_spec *spec, struct buf *out)
{
  cleanup_buf struct buf text = BUF_INIT(TEXT_MAX);
  if (spec)
    manual_spec(spec, out);
  else
    manual_head(out, local->name, local->summary);
  if (local && !local_help(local, &text)) {
    buf_addz(out, spec ? ".SH ON THE SERVER ITSELF, AS ROOT\n" : ".SH DESCRIPTION\n");
    manual_text(out, buf_z(&text));
  }
  buf_addz(out, ".SH SEE ALSO\n.BR cloche (1)\n");
}

/* ---- the commands ---- */

int completion_run(const struct command_tables *t, int argc, char **argv)
{
  static const char help[] = "cloche completion - completions for bash, zsh or fish\n\n"
                             "Usage: cloche completion bash|zsh|fish\n\n"
                             "  bash: source <(cloche completion bash)\n"
                             "  zsh:  cloche completion zsh >~/.zfunc/_cloche, with ~/.zfunc in fpath\n"
                             "  fish: cloche completion fish >~/.config/fish/completions/cloche.fish";
  cleanup_buf struct buf out = BUF_INIT(TEXT_MAX);
  if (argc == 2 && !strcmp(argv[1], "--help")) {
    puts(help);
    return 0;
  }
  if (argc != 2 || completion_text(t, argv[1], &out))
    return usage_error("usage: cloche completion bash|zsh|fish");
  return fd_write_all(1, out.p, out.n) ? 1 : 0;
}

static int write_page(const char *dir, const char *dash, const char *name, const struct buf *page)
{
  cleanup_free char *path = xasprintf("%s/cloche%s%s.1", dir, dash, name);
  int r = buf_failed(page) ? -ENOBUFS : file_write_atomic(path, page->p, page->n, 0644);
  return r ? (usage_error("%s: %s", path, strerror(-r)), 1) : 0;
}

int manual_run(const struct command_tables *t, int argc, char **argv)
{
  cleanup_buf struct buf page = BUF_INIT(TEXT_MAX);
  if (argc == 2 && !strcmp(argv[1], "--help")) {
    puts("cloche man - write the manual pages into a directory\n\nUsage: cloche man DIR");
    return 0;
  }
  if (argc != 2 || argv[1][0] == '-')
    return usage_error("usage: cloche man DIR");
  manual_overview(t, &page);
  int status = write_page(argv[1], "", "", &page);
  for (size_t i = 0; !status && i < t->local_count + t->remote_count; i++) {
    const struct command *local = i < t->local_count ? &t->local[i] : NULL;
    const struct command_spec *spec = local ? spec_of(t, local->name) : t->remote[i - t->local_count];
    if (!local && local_of(t, spec->name))
      continue; /* it has its page already */
    buf_clear(&page);
    manual_page(local, spec, &page);
    status = write_page(argv[1], "-", spec ? spec->name : local->name, &page);
  }
  return status;
}
