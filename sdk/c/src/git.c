/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Git in a sandbox, as one command each. Credentials are variables of that command only, read by a credential helper
 * given on its command line: git stores them nowhere.
 */
#include <stdlib.h>
#include <string.h>
#include "internal.h"

#define HELPER                                                                                                         \
  "credential.helper=!f() { printf 'username=%s\\npassword=%s\\n' \"$CLOCHE_GIT_USER\" \"$CLOCHE_GIT_PASSWORD\"; }; f"
#define ENVS_MAX 64

void put_quoted(struct buf *b, const char *text)
{
  buf_puts(b, "'");
  for (const char *p = text; *p; p++)
    buf_add(b, *p == '\'' ? "'\\''" : p, *p == '\'' ? 4 : 1);
  buf_puts(b, "'");
}

struct git_line {
  struct buf line;
  struct cloche_git o;
};

static void put(struct git_line *g, const char *text)
{
  if (text) {
    buf_puts(&g->line, " ");
    put_quoted(&g->line, text);
  }
}

static void put_all(struct git_line *g, const char *const *texts)
{
  for (size_t i = 0; texts && texts[i]; i++)
    put(g, texts[i]);
}

/* "git -C path" and, where there are credentials, how git comes to them. */
static void begin(struct git_line *g, const char *path, const struct cloche_git *options)
{
  if (options)
    options_copy(&g->o, options, sizeof g->o);
  buf_puts(&g->line, "git");
  if (path) {
    put(g, "-C");
    put(g, path);
  }
  if (g->o.git_password) {
    put(g, "-c");
    put(g, "credential.helper=");
    put(g, "-c");
    put(g, HELPER);
  }
}

static bool contains_any(const char *text, const char *const *snippets)
{
  for (; *snippets; snippets++)
    if (strcasestr(text, *snippets))
      return true;
  return false;
}

static enum cloche_code git_ended(struct cloche_op *op, const char **out)
{
  static const char *const auth[] = {"authentication failed",
                                     "terminal prompts disabled",
                                     "could not read username",
                                     "could not read password",
                                     "invalid username or password",
                                     "access denied",
                                     "permission denied",
                                     "not authorized",
                                     NULL};
  int exit_code;
  const char *err;
  enum cloche_code code = command_ended(op, &exit_code, out, &err);
  if (code != CLOCHE_OK || exit_code == 0)
    return code;
  const char *said = *err ? err : *out;
  if (contains_any(err, auth) || contains_any(*out, auth))
    return op_fail(op, CLOCHE_EAUTH, "git wants other credentials: %s", said);
  return op_fail(op, CLOCHE_ECOMMAND, "git exited with %d: %s", exit_code, said);
}

static enum cloche_code reply_git(struct cloche_op *op)
{
  const char *out;
  enum cloche_code code = git_ended(op, &out);
  return code == CLOCHE_OK ? command_result(op) : code;
}

static enum cloche_code reply_line(struct cloche_op *op)
{
  const char *out;
  enum cloche_code code = git_ended(op, &out);
  size_t len = code == CLOCHE_OK ? strcspn(out, "\r\n") : 0;
  if (code != CLOCHE_OK || !len)
    return code;
  struct cloche_text *text = result_new(sizeof *text);
  if (!text || !(text->data = arena_text(result_arena(text), out, len))) {
    cloche_free(text);
    return CLOCHE_ENOMEM;
  }
  text->len = len;
  return answer(op, text);
}

static enum cloche_code run(struct cloche_box *box, struct git_line *g, enum cloche_code (*reply)(struct cloche_op *op),
                            void *out, const struct cloche_call *call, struct cloche_error *error)
{
  struct cloche_pair envs[ENVS_MAX + 3] = {{"GIT_TERMINAL_PROMPT", "0"}};
  size_t n = 1;
  enum cloche_code code = CLOCHE_OK;
  if (out)
    *(void **)out = NULL;
  if (!g->o.git_user != !g->o.git_password)
    code = error_set(error, CLOCHE_EINVAL, "credentials need both a name and a password");
  else if (g->o.env_count > ENVS_MAX)
    code = error_set(error, CLOCHE_EINVAL, "more than %d variables", ENVS_MAX);
  else if (g->line.failed)
    code = op_no_memory(error);
  if (code != CLOCHE_OK) {
    buf_free(&g->line);
    return code;
  }
  if (g->o.git_password) {
    envs[n++] = (struct cloche_pair){"CLOCHE_GIT_USER", g->o.git_user};
    envs[n++] = (struct cloche_pair){"CLOCHE_GIT_PASSWORD", g->o.git_password};
  }
  if (g->o.env_count)
    memcpy(envs + n, g->o.envs, g->o.env_count * sizeof envs[0]);
  struct cloche_command o = {
      .size = sizeof o, .user_name = g->o.user_name, .envs = envs, .env_count = n + g->o.env_count};
  struct cloche_op *op = command_begin(box, g->line.data, &o, OP_CELL, call, error);
  buf_free(&g->line);
  if (!op)
    return op_not_begun(call);
  op->on_reply = reply;
  op->out = out;
  return op_go(op, error);
}

enum cloche_code cloche_git_clone(struct cloche_box *box, const char *url, const char *path,
                                  const struct cloche_git *options, struct cloche_command_result **result,
                                  const struct cloche_call *call, struct cloche_error *error)
{
  struct git_line g = {0};
  begin(&g, NULL, options);
  put(&g, "clone");
  if (g.o.branch)
    put(&g, "--branch"), put(&g, g.o.branch), put(&g, "--single-branch");
  if (g.o.depth > 0)
    buf_printf(&g.line, " --depth %d", g.o.depth);
  put(&g, "--");
  put(&g, url);
  put(&g, path);
  return run(box, &g, reply_git, result, call, error);
}

enum cloche_code cloche_git_init(struct cloche_box *box, const char *path, const struct cloche_git *options,
                                 struct cloche_command_result **result, const struct cloche_call *call,
                                 struct cloche_error *error)
{
  struct git_line g = {0};
  begin(&g, NULL, options);
  put(&g, "init");
  if (g.o.branch)
    put(&g, "--initial-branch"), put(&g, g.o.branch);
  if (g.o.bare)
    put(&g, "--bare");
  put(&g, path);
  return run(box, &g, reply_git, result, call, error);
}

enum cloche_code cloche_git_remote_add(struct cloche_box *box, const char *path, const char *name, const char *url,
                                       const struct cloche_git *options, struct cloche_command_result **result,
                                       const struct cloche_call *call, struct cloche_error *error)
{
  struct git_line g = {0};
  struct cloche_git plain = {0};
  OPTIONS(cloche_git, o, options);
  if (o.overwrite) {
    buf_puts(&g.line, "{ ");
    begin(&g, path, &plain);
    put(&g, "remote"), put(&g, "set-url"), put(&g, name), put(&g, url);
    buf_puts(&g.line, " 2>/dev/null || ");
  }
  begin(&g, path, &plain);
  put(&g, "remote"), put(&g, "add"), put(&g, name), put(&g, url);
  buf_puts(&g.line, o.overwrite ? "; }" : "");
  if (o.fetch) {
    buf_puts(&g.line, " && ");
    begin(&g, path, options);
    put(&g, "fetch"), put(&g, name);
  }
  g.o = o;
  return run(box, &g, reply_git, result, call, error);
}

enum cloche_code cloche_git_remote_get(struct cloche_box *box, const char *path, const char *name,
                                       const struct cloche_git *options, struct cloche_text **url,
                                       const struct cloche_call *call, struct cloche_error *error)
{
  struct git_line g = {0};
  begin(&g, path, options);
  put(&g, "remote"), put(&g, "get-url"), put(&g, name);
  buf_puts(&g.line, " || true");
  return run(box, &g, reply_line, url, call, error);
}

/* "ahead 1, behind 2" after the branch. */
static int count_of(const char *line, size_t len, const char *word)
{
  const char *at = memmem(line, len, word, strlen(word));
  return at ? (int)strtol(at + strlen(word), NULL, 10) : 0;
}

static bool begins(const char *text, const char *with)
{
  return strncmp(text, with, strlen(with)) == 0;
}

/* "## branch...upstream [ahead 1, behind 2]" */
static bool read_branch(struct arena *a, struct cloche_git_status *s, const char *line, size_t len)
{
  const char *bracket = memmem(line, len, " [", 2);
  size_t name = bracket ? (size_t)(bracket - line) : len;
  if (bracket) {
    s->ahead = count_of(bracket, len - name, "ahead ");
    s->behind = count_of(bracket, len - name, "behind ");
  }
  static const char *const unborn[] = {"No commits yet on ", "Initial commit on "};
  for (int i = 0; i < 2; i++)
    if (name > strlen(unborn[i]) && begins(line, unborn[i]))
      line += strlen(unborn[i]), name -= strlen(unborn[i]);
  if (begins(line, "HEAD (")) {
    s->detached = true;
    return true;
  }
  const char *dots = memmem(line, name, "...", 3);
  if (dots && !(s->upstream = arena_text(a, dots + 3, name - (size_t)(dots - line) - 3)))
    return false;
  s->branch = arena_text(a, line, dots ? (size_t)(dots - line) : name);
  return s->branch != NULL;
}

static const char *status_of(char x, char y)
{
  static const char letters[] = "URCDAMT?";
  static const char *const names[] = {"conflict", "renamed",  "copied",     "deleted",
                                      "added",    "modified", "typechange", "untracked"};
  for (int i = 0; i < 8; i++)
    if (x == letters[i] || y == letters[i])
      return names[i];
  return "unknown";
}

static bool read_file(struct arena *a, struct cloche_git_status *s, struct cloche_git_file *f, const char *line,
                      size_t len)
{
  f->index_status = line[0];
  f->worktree_status = line[1];
  f->status = status_of(line[0], line[1]);
  f->staged = line[0] != ' ' && line[0] != '?';
  const char *path = line + 3, *arrow = memmem(path, len - 3, " -> ", 4);
  if (arrow && !(f->renamed_from = arena_text(a, path, (size_t)(arrow - path))))
    return false;
  const char *name = arrow ? arrow + 4 : path;
  f->name = arena_text(a, name, len - (size_t)(name - line));
  s->file_count++;
  s->staged_count += f->staged;
  s->unstaged_count += !f->staged;
  s->untracked_count += strcmp(f->status, "untracked") == 0;
  s->conflict_count += strcmp(f->status, "conflict") == 0;
  return f->name != NULL;
}

static size_t count_lines(const char *text)
{
  size_t n = 1;
  for (; *text; text++)
    n += *text == '\n';
  return n;
}

static bool read_status(struct cloche_git_status *s, const char *out)
{
  struct arena *a = result_arena(s);
  struct cloche_git_file *files = arena_array(a, count_lines(out), sizeof *files);
  bool ok = files != NULL;
  s->files = files;
  while (ok && *out) {
    size_t len = strcspn(out, "\n");
    if (len > 3 && begins(out, "## "))
      ok = read_branch(a, s, out + 3, len - 3);
    else if (len > 3)
      ok = read_file(a, s, &files[s->file_count], out, len);
    out += len + (out[len] == '\n');
  }
  return ok;
}

static enum cloche_code reply_status(struct cloche_op *op)
{
  const char *out;
  enum cloche_code code = git_ended(op, &out);
  if (code != CLOCHE_OK)
    return code;
  struct cloche_git_status *s = result_new(sizeof *s);
  if (s && read_status(s, out))
    return answer(op, s);
  cloche_free(s);
  return CLOCHE_ENOMEM;
}

enum cloche_code cloche_git_status(struct cloche_box *box, const char *path, const struct cloche_git *options,
                                   struct cloche_git_status **status, const struct cloche_call *call,
                                   struct cloche_error *error)
{
  struct git_line g = {0};
  begin(&g, path, options);
  put(&g, "status"), put(&g, "--porcelain=1"), put(&g, "-b");
  return run(box, &g, reply_status, status, call, error);
}

static enum cloche_code reply_branches(struct cloche_op *op)
{
  const char *out;
  enum cloche_code code = git_ended(op, &out);
  if (code != CLOCHE_OK)
    return code;
  struct cloche_git_branches *b = result_new(sizeof *b);
  struct arena *a = b ? result_arena(b) : NULL;
  const char **names = b ? arena_array(a, count_lines(out) + 1, sizeof *names) : NULL;
  size_t n = 0;
  bool ok = names != NULL;
  while (ok && *out) {
    size_t len = strcspn(out, "\n"), name = strcspn(out, "\t\n");
    if (name) {
      ok = (names[n] = arena_text(a, out, name)) != NULL;
      if (name + 1 < len && out[name + 1] == '*')
        b->current = names[n];
      n++;
    }
    out += len + (out[len] == '\n');
  }
  if (!ok) {
    cloche_free(b);
    return CLOCHE_ENOMEM;
  }
  b->names = names;
  return answer(op, b);
}

enum cloche_code cloche_git_branches(struct cloche_box *box, const char *path, const struct cloche_git *options,
                                     struct cloche_git_branches **branches, const struct cloche_call *call,
                                     struct cloche_error *error)
{
  struct git_line g = {0};
  begin(&g, path, options);
  put(&g, "branch"), put(&g, "--format=%(refname:short)\t%(HEAD)");
  return run(box, &g, reply_branches, branches, call, error);
}

static enum cloche_code with_branch(struct cloche_box *box, const char *path, const char *const words[],
                                    const char *branch, const struct cloche_git *options,
                                    struct cloche_command_result **result, const struct cloche_call *call,
                                    struct cloche_error *error)
{
  struct git_line g = {0};
  begin(&g, path, options);
  put_all(&g, words);
  put(&g, branch);
  return run(box, &g, reply_git, result, call, error);
}

enum cloche_code cloche_git_create_branch(struct cloche_box *box, const char *path, const char *branch,
                                          const struct cloche_git *options, struct cloche_command_result **result,
                                          const struct cloche_call *call, struct cloche_error *error)
{
  static const char *const words[] = {"checkout", "-b", NULL};
  return with_branch(box, path, words, branch, options, result, call, error);
}

enum cloche_code cloche_git_checkout(struct cloche_box *box, const char *path, const char *branch,
                                     const struct cloche_git *options, struct cloche_command_result **result,
                                     const struct cloche_call *call, struct cloche_error *error)
{
  static const char *const words[] = {"checkout", NULL};
  return with_branch(box, path, words, branch, options, result, call, error);
}

enum cloche_code cloche_git_delete_branch(struct cloche_box *box, const char *path, const char *branch,
                                          const struct cloche_git *options, struct cloche_command_result **result,
                                          const struct cloche_call *call, struct cloche_error *error)
{
  OPTIONS(cloche_git, o, options);
  const char *const words[] = {"branch", o.force ? "-D" : "-d", NULL};
  return with_branch(box, path, words, branch, options, result, call, error);
}

enum cloche_code cloche_git_add(struct cloche_box *box, const char *path, const char *const *files,
                                const struct cloche_git *options, struct cloche_command_result **result,
                                const struct cloche_call *call, struct cloche_error *error)
{
  struct git_line g = {0};
  begin(&g, path, options);
  put(&g, "add");
  put(&g, files ? "--" : "-A");
  put_all(&g, files);
  return run(box, &g, reply_git, result, call, error);
}

enum cloche_code cloche_git_commit(struct cloche_box *box, const char *path, const char *message,
                                   const struct cloche_git *options, struct cloche_command_result **result,
                                   const struct cloche_call *call, struct cloche_error *error)
{
  struct git_line g = {0};
  begin(&g, path, options);
  if (g.o.author_name)
    buf_puts(&g.line, " -c user.name="), put_quoted(&g.line, g.o.author_name);
  if (g.o.author_email)
    buf_puts(&g.line, " -c user.email="), put_quoted(&g.line, g.o.author_email);
  put(&g, "commit"), put(&g, "-m"), put(&g, message);
  if (g.o.allow_empty)
    put(&g, "--allow-empty");
  return run(box, &g, reply_git, result, call, error);
}

enum cloche_code cloche_git_reset(struct cloche_box *box, const char *path, const char *const *files,
                                  const struct cloche_git *options, struct cloche_command_result **result,
                                  const struct cloche_call *call, struct cloche_error *error)
{
  struct git_line g = {0};
  begin(&g, path, options);
  put(&g, "reset");
  if (g.o.mode)
    buf_puts(&g.line, " --"), put_quoted(&g.line, g.o.mode);
  put(&g, g.o.target);
  if (files)
    put(&g, "--"), put_all(&g, files);
  return run(box, &g, reply_git, result, call, error);
}

enum cloche_code cloche_git_restore(struct cloche_box *box, const char *path, const char *const *files,
                                    const struct cloche_git *options, struct cloche_command_result **result,
                                    const struct cloche_call *call, struct cloche_error *error)
{
  struct git_line g = {0};
  if (!files || !files[0])
    return error_set(error, CLOCHE_EINVAL, "no files to restore");
  begin(&g, path, options);
  put(&g, "restore");
  if (g.o.worktree || !g.o.staged)
    put(&g, "--worktree");
  if (g.o.staged)
    put(&g, "--staged");
  if (g.o.target)
    put(&g, "--source"), put(&g, g.o.target);
  put(&g, "--");
  put_all(&g, files);
  return run(box, &g, reply_git, result, call, error);
}

enum cloche_code cloche_git_push(struct cloche_box *box, const char *path, const struct cloche_git *options,
                                 struct cloche_command_result **result, const struct cloche_call *call,
                                 struct cloche_error *error)
{
  struct git_line g = {0};
  begin(&g, path, options);
  put(&g, "push");
  if (g.o.remote && !g.o.no_upstream)
    put(&g, "--set-upstream");
  put(&g, g.o.remote);
  put(&g, g.o.branch);
  return run(box, &g, reply_git, result, call, error);
}

enum cloche_code cloche_git_pull(struct cloche_box *box, const char *path, const struct cloche_git *options,
                                 struct cloche_command_result **result, const struct cloche_call *call,
                                 struct cloche_error *error)
{
  struct git_line g = {0};
  begin(&g, path, options);
  put(&g, "pull");
  put(&g, g.o.remote);
  put(&g, g.o.branch);
  return run(box, &g, reply_git, result, call, error);
}

/* "config --global"; a repository is named only for its own configuration. */
static bool begin_config(struct git_line *g, const char *path, const struct cloche_git *options)
{
  OPTIONS(cloche_git, o, options);
  const char *scope = o.scope ? o.scope : "global";
  bool local = strcmp(scope, "local") == 0;
  begin(g, local ? path : NULL, options);
  put(g, "config");
  buf_puts(&g->line, " --"), put_quoted(&g->line, scope);
  return !local || path;
}

enum cloche_code cloche_git_set_config(struct cloche_box *box, const char *path, const char *key, const char *value,
                                       const struct cloche_git *options, struct cloche_command_result **result,
                                       const struct cloche_call *call, struct cloche_error *error)
{
  struct git_line g = {0};
  if (!begin_config(&g, path, options)) {
    buf_free(&g.line);
    return error_set(error, CLOCHE_EINVAL, "the scope local needs a repository's path");
  }
  put(&g, key);
  put(&g, value);
  return run(box, &g, reply_git, result, call, error);
}

enum cloche_code cloche_git_get_config(struct cloche_box *box, const char *path, const char *key,
                                       const struct cloche_git *options, struct cloche_text **value,
                                       const struct cloche_call *call, struct cloche_error *error)
{
  struct git_line g = {0};
  if (!begin_config(&g, path, options)) {
    buf_free(&g.line);
    return error_set(error, CLOCHE_EINVAL, "the scope local needs a repository's path");
  }
  put(&g, "--get");
  put(&g, key);
  buf_puts(&g.line, " || true");
  return run(box, &g, reply_line, value, call, error);
}

enum cloche_code cloche_git_configure_user(struct cloche_box *box, const char *path, const char *name,
                                           const char *email, const struct cloche_git *options,
                                           struct cloche_command_result **result, const struct cloche_call *call,
                                           struct cloche_error *error)
{
  struct git_line g = {0};
  bool ok = begin_config(&g, path, options);
  put(&g, "user.name"), put(&g, name);
  buf_puts(&g.line, " && ");
  ok = ok && begin_config(&g, path, options);
  put(&g, "user.email"), put(&g, email);
  if (!ok) {
    buf_free(&g.line);
    return error_set(error, CLOCHE_EINVAL, "the scope local needs a repository's path");
  }
  return run(box, &g, reply_git, result, call, error);
}

enum cloche_code cloche_git_authenticate(struct cloche_box *box, const char *host, const struct cloche_git *options,
                                         struct cloche_command_result **result, const struct cloche_call *call,
                                         struct cloche_error *error)
{
  struct git_line g = {0};
  OPTIONS(cloche_git, o, options);
  if (!o.git_user || !o.git_password)
    return error_set(error, CLOCHE_EINVAL, "no name or no password");
  g.o = o;
  buf_puts(&g.line, "git config --global credential.helper store && printf 'protocol=https\\nhost=%s\\nusername=%s\\n"
                    "password=%s\\n\\n' ");
  put_quoted(&g.line, host ? host : "github.com");
  buf_puts(&g.line, " \"$CLOCHE_GIT_USER\" \"$CLOCHE_GIT_PASSWORD\" | git credential approve");
  return run(box, &g, reply_git, result, call, error);
}
