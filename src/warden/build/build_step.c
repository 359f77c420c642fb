/* SPDX-License-Identifier: Apache-2.0 */
/* build_step.c - see build_step.h.
 *
 * A step is: its key from the key before it, its type and its arguments; a look into the cache; and where that has
 * nothing, a box of the layers so far, commands in it, and its files kept as a layer. Programs of our own inside the
 * box are reached through the runtime layer; what must work in any image is a mode of the agent's program
 * (src/agent/build/applets.c). */
#include "warden/build/build_step.h"

#include "warden/build/build_box.h"
#include "warden/build/build_keep.h"
#include "warden/core/context.h"
#include "warden/build/build_layer.h"
#include "warden/build/build_state.h"
#include "wire/sizes.h"
#include <fcntl.h>
#include <stdio.h>

#define AGENT  "/usr/lib/cloche/agent"
#define VALUES "\036values\036" /* stands before what `agent expand` prints */

struct step {
  struct build_run *run;
  const struct recipe_step *given; /* NULL: one of the builder's own */
  const char *label;               /* "[builder 1/3]" */
  char key[BUILD_KEY];
};

/* Does the work in the box; a value it found goes to `out`. */
typedef int (*step_fn)(struct step *s, struct build_box *b, struct buf *out, struct err *err);

static struct str arg(const struct recipe_step *g, size_t i)
{
  return i < g->nargs ? g->args[i] : STR("");
}

static char *argz(struct build_run *run, const struct recipe_step *g, size_t i)
{
  return arena_z(&run->arena, arg(g, i));
}

/* ---- the cache ---- */

static void make_key(struct step *s, const char *type)
{
  struct build_hash h;
  uint8_t draw[16] = {0};
  build_hash_begin(&h, "step 1");
  build_hash_add(&h, str_of(s->run->state.key));
  build_hash_add(&h, str_of(type));
  for (size_t i = 0; s->given && i < s->given->nargs; i++)
    build_hash_add(&h, s->given->args[i]);
  if (s->given)
    build_hash_add(&h, s->given->files);
  if (s->run->mounts) /* which volumes, not what is in them */
    build_hash_add(&h, str_of(s->run->mounts));
  if (s->run->fresh) { /* a layer never changes: what is made again is another one */
    random_bytes(draw, sizeof(draw));
    build_hash_add(&h, str_make(draw, sizeof(draw)));
  }
  build_hash_end(&h, s->key);
}

static void tell(struct step *s, bool cached, struct str text)
{
  build_say(s->run, LOG_INFO, "%s%s " STR_FMT " [%.12s]", cached ? "CACHED " : "", s->label,
            STR_ARG(str_sub(text, 0, 1000)), s->key);
}

static int advance(struct step *s, const char *fs, struct err *err)
{
  memcpy(s->run->state.key, s->key, sizeof(s->key));
  return fs[0] ? build_state_layer(&s->run->state, fs, err) : 0;
}

/* What a failed step left: its files as a layer, and the box itself as a sandbox where it can be had. */
static void keep_failed(struct step *s, struct build_box *b, int result)
{
  struct build_run *run = s->run;
  struct err why = ERR_NONE;
  bool whole = build_keep_wanted(b, result) && !build_keep_hold(b, &why);
  if (!whole)
    build_box_stop(b, &why);
  run->fresh = true; /* a failed step is under no key that another build could draw */
  make_key(s, "failed");
  run->kept = !build_layer_keep(run, s->key, b, STR_NONE, &why);
  if (whole && build_keep_give(b, &why))
    build_say(run, LOG_WARN, "The box in which this failed is not kept, only its files are: %s", why.msg);
}

static int in_box(struct step *s, step_fn fn, bool writes, struct buf *out, struct err *err)
{
  struct build_run *run = s->run;
  struct build_box b;
  cleanup_buf struct buf config = BUF_INIT(4 << 20);
  build_state_config(&run->state, false, &config);
  cleanup_free char *layers = xstrdup(buf_z(&run->state.layers));
  int r = build_box_open(&b, run, layers, buf_z(&config), err);
  r = r ? r : fn(s, &b, out, err);
  if (r && run->recipe.keep) {
    keep_failed(s, &b, r);
    build_box_remove(&b);
    return r;
  }
  struct err why = ERR_NONE;
  int stopped = build_box_stop(&b, &why);
  if (!r && stopped)
    r = err_set(err, stopped, "%s", why.msg);
  if (!r)
    r = build_layer_keep(run, s->key, writes ? &b : NULL, out ? buf_str(out) : STR_NONE, err);
  build_box_remove(&b);
  return r;
}

/* `out` NULL: the step has no values. */
static int perform(struct step *s, const char *type, struct str text, step_fn fn, bool writes, struct buf *out,
                   struct err *err)
{
  char fs[DATA_DIR_SIZE];
  make_key(s, type);
  bool cached = build_layer_find(s->run, s->key, fs, out);
  tell(s, cached, text);
  if (cached)
    return advance(s, fs, err);
  int r = in_box(s, fn, writes, out, err);
  if (r && s->run->kept && build_layer_find(s->run, s->key, fs, NULL))
    advance(s, fs, &(struct err){0});
  if (r)
    return r;
  return build_layer_find(s->run, s->key, fs, NULL) ? advance(s, fs, err)
                                                    : err_set(err, -EIO, "the layer %s no longer exists", s->key);
}

/* ---- RUN ---- */

static int run_command(struct step *s, struct build_box *b, struct build_cmd *o, const char *what, struct err *err)
{
  o->prefix = s->label;
  int r = build_box_run(b, o, err);
  build_cmd_free(o);
  if (r == -ENOEXEC && str_starts(str_of(err->msg), STR("unauthenticated: "))) /* an unknown user, as clients know it */
    return err_wrap(err, "command failed");
  if (r)
    return r == -ECANCELED || r == -ETIMEDOUT || r == -ENOMEM ? r : err_wrap(err, "%s", what);
  if (!o->status)
    return 0;
  struct jail_stats st = {0};
  bool starved =
      o->status == 137 && !jail_stat(warden_instance(s->run->warden), b->name, b->dir, &st, NULL) && st.oom_kills;
  if (starved)
    return err_set(err, -EREMOTEIO, "%s: exit status %d, out of memory: the build has %u MB", what, o->status,
                   s->run->memory_mb);
  return err_set(err, -EREMOTEIO, "%s: exit status %d", what, o->status);
}

/* Certificates that a step has put where the image keeps local ones are trusted from then on. A tool of the image that
 * fails at it has said why in the log; the step has done its work. */
static int trust_certificates(struct step *s, struct build_box *b, struct err *err)
{
  const char *const argv[] = {AGENT, "trust", NULL};
  struct build_cmd o = {.cwd = "/", .argv = argv, .input = -1, .prefix = s->label};
  int r = build_box_run(b, &o, err);
  build_cmd_free(&o);
  if (!r && o.status)
    build_say(s->run, LOG_WARN, "%s update-ca-certificates failed: exit status %d", s->label, o.status);
  return r;
}

static int run_work(struct step *s, struct build_box *b, struct buf *out, struct err *err)
{
  struct build_run *run = s->run;
  const char *user = s->given->nargs > 1 && arg(s->given, 1).n ? argz(run, s->given, 1) : run->state.user;
  const char *command = argz(run, s->given, 0);
  const char *const argv[] = {"/bin/bash", "-l", "-c", command, NULL};
  struct build_cmd o = {.user = user, .cwd = run->state.workdir, .argv = argv, .input = -1};
  char what[300];
  snprintf(what, sizeof(what), "failed to run command '%.200s'", command);
  int r = run_command(s, b, &o, what, err);
  return r ? r : trust_certificates(s, b, err);
}

static int step_run(struct step *s, struct err *err)
{
  if (!s->given->nargs || !arg(s->given, 0).n)
    return err_set(err, -EINVAL, "RUN needs a command");
  struct str text = str_of(arena_fmt(&s->run->arena, "RUN " STR_FMT, STR_ARG(arg(s->given, 0))));
  return perform(s, "RUN", text, run_work, true, NULL, err);
}

/* ---- COPY ---- */

static int copy_work(struct step *s, struct build_box *b, struct buf *out, struct err *err)
{
  struct build_run *run = s->run;
  char path[DATA_PATH_SIZE];
  snprintf(path, sizeof(path), "%s/files/%s/" STR_FMT, warden_config(run->warden)->data, run->team,
           STR_ARG(s->given->files));
  cleanup_fd int archive = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (archive < 0)
    return err_set(err, -ENOENT, "the files of this step (hash " STR_FMT ") were not uploaded",
                   STR_ARG(s->given->files));
  const char *const argv[] = {AGENT,
                              "copy",
                              argz(run, s->given, 0),
                              argz(run, s->given, 1),
                              argz(run, s->given, 2),
                              argz(run, s->given, 3),
                              run->state.user ? run->state.user : "root",
                              NULL};
  struct build_cmd o = {.cwd = run->state.workdir, .argv = argv, .input = archive};
  char what[300];
  snprintf(what, sizeof(what), "failed to copy '%.100s' to '%.100s'", argv[2], argv[3]);
  int r = run_command(s, b, &o, what, err);
  return r ? r : trust_certificates(s, b, err);
}

static bool hex64(struct str s)
{
  for (size_t i = 0; i < s.n; i++)
    if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f')))
      return false;
  return s.n == 64;
}

static int step_copy(struct step *s, struct err *err)
{
  if (s->given->nargs < 2 || !arg(s->given, 1).n)
    return err_set(err, -EINVAL, "COPY needs a source and a destination");
  if (!hex64(s->given->files))
    return err_set(err, -EINVAL, "COPY needs the hash of its files");
  struct str text = str_of(
      arena_fmt(&s->run->arena, "COPY " STR_FMT " " STR_FMT, STR_ARG(arg(s->given, 0)), STR_ARG(arg(s->given, 1))));
  return perform(s, "COPY", text, copy_work, true, NULL, err);
}

/* ---- ENV ---- */

static int env_work(struct step *s, struct build_box *b, struct buf *out, struct err *err)
{
  size_t n = s->given->nargs / 2;
  const char **argv = arena_alloc(&s->run->arena, (n + 6) * sizeof(*argv));
  if (!argv)
    return err_set(err, -ENOMEM, "too many variables");
  size_t k = 0;
  argv[k++] = "/bin/bash";
  argv[k++] = "-l";
  argv[k++] = "-c";
  argv[k++] = "exec " AGENT " expand \"$@\"";
  argv[k++] = "expand";
  for (size_t i = 0; i < n; i++)
    argv[k++] = argz(s->run, s->given, 2 * i + 1);
  cleanup_buf struct buf said = BUF_INIT(2 << 20);
  struct build_cmd o = {.argv = argv, .input = -1, .capture = &said};
  int r = run_command(s, b, &o, "failed to expand the values", err);
  struct str rest = buf_str(&said);
  for (ptrdiff_t at; (at = str_search(rest, STR(VALUES))) >= 0;)
    rest = str_skip(rest, (size_t)at + sizeof(VALUES) - 1);
  buf_adds(out, rest);
  return r;
}

/* Values without a reference are what they are; only the others need a shell that knows. */
static bool any_reference(const struct recipe_step *g)
{
  for (size_t i = 1; i < g->nargs; i += 2)
    if (str_find(g->args[i], '$') >= 0)
      return true;
  return false;
}

static int env_set_all(struct step *s, struct str values, bool expanded, struct err *err)
{
  struct str value;
  for (size_t i = 0; i + 1 < s->given->nargs; i += 2) {
    struct str name = arg(s->given, i);
    value = arg(s->given, i + 1);
    if (expanded && !str_cut(values, 0, &value, &values))
      return err_set(err, -EPROTO, "the box returned %zu values, expected %zu", i / 2, s->given->nargs / 2);
    if (!name.n || str_find(name, '=') >= 0 || memchr(name.p, 0, name.n))
      return err_set(err, -EINVAL, "'" STR_FMT "' is not a variable name", STR_ARG(str_sub(name, 0, 100)));
    build_state_env(&s->run->state, name, value);
  }
  return 0;
}

/* Needs no box. Its key is kept all the same: the log says whether a build had this step before. */
static int env_plain(struct step *s, struct str text, struct err *err)
{
  char fs[DATA_DIR_SIZE];
  make_key(s, "ENV");
  bool cached = build_layer_find(s->run, s->key, fs, NULL);
  tell(s, cached, text);
  int r = env_set_all(s, STR_NONE, false, err);
  r = r || cached ? r : build_layer_keep(s->run, s->key, NULL, STR_NONE, err);
  return r ? r : advance(s, "", err);
}

static int step_env(struct step *s, struct err *err)
{
  cleanup_buf struct buf out = BUF_INIT(2 << 20), text = BUF_INIT(1 << 16);
  if (!s->given->nargs || s->given->nargs % 2)
    return err_set(err, -EINVAL, "ENV needs names and values in pairs, not %zu arguments", s->given->nargs);
  buf_addz(&text, "ENV");
  for (size_t i = 0; i < s->given->nargs; i++)
    buf_addf(&text, " " STR_FMT, STR_ARG(arg(s->given, i)));
  bool expanded = any_reference(s->given);
  if (!expanded)
    return env_plain(s, buf_str(&text), err);
  int r = perform(s, "ENV", buf_str(&text), env_work, false, &out, err);
  return r ? r : env_set_all(s, buf_str(&out), true, err);
}

/* ---- WORKDIR and USER ---- */

static int workdir_work(struct step *s, struct build_box *b, struct buf *out, struct err *err)
{
  struct build_run *run = s->run;
  const char *const argv[] = {AGENT, "workdir", run->state.workdir, run->state.user ? run->state.user : "root", NULL};
  struct build_cmd o = {.cwd = "/", .argv = argv, .input = -1};
  char what[300];
  snprintf(what, sizeof(what), "failed to make the working directory '%.200s'", run->state.workdir);
  return run_command(s, b, &o, what, err);
}

static int step_workdir(struct step *s, struct err *err)
{
  struct build_state *st = &s->run->state;
  struct str given = arg(s->given, 0);
  cleanup_buf struct buf path = BUF_INIT(4096);
  if (!given.n)
    return err_set(err, -EINVAL, "WORKDIR needs a path");
  int r =
      given.p[0] == '/' ? path_clean(given, &path) : path_join(str_of(st->workdir ? st->workdir : "/"), given, &path);
  if (r)
    return err_set(err, -ENAMETOOLONG, "WORKDIR: a path has at most 4096 bytes");
  char *before = steal(&st->workdir);
  build_state_text(&st->workdir, buf_str(&path));
  r = perform(s, "WORKDIR", str_of(arena_fmt(&s->run->arena, "WORKDIR %s", st->workdir)), workdir_work, true, NULL,
              err);
  free(before);
  return r;
}

/* Arguments: the name, "true" for sudo. An image without bash has busybox's adduser at best. */
static const char user_script[] =
    "set -e\n"
    "if ! id -u \"$1\" >/dev/null 2>&1; then\n"
    "  if command -v useradd >/dev/null; then useradd -m -s /bin/bash \"$1\"; else adduser -D -s /bin/bash \"$1\"; fi\n"
    "fi\n"
    "if [ \"$2\" = true ]; then\n"
    "  mkdir -p /etc/sudoers.d\n"
    "  printf '%s ALL=(ALL:ALL) NOPASSWD: ALL\\n' \"$1\" >\"/etc/sudoers.d/$1\"\n"
    "  chmod 0440 \"/etc/sudoers.d/$1\"\n"
    "fi\n";

static int user_work(struct step *s, struct build_box *b, struct buf *out, struct err *err)
{
  const char *name = argz(s->run, s->given, 0);
  const char *const argv[] = {"/bin/sh", "-c", user_script, "user", name, argz(s->run, s->given, 1), NULL};
  struct build_cmd o = {.cwd = "/", .argv = argv, .input = -1};
  char what[300];
  snprintf(what, sizeof(what), "failed to set the user '%.200s'", name);
  return run_command(s, b, &o, what, err);
}

static bool user_name(struct str s)
{
  for (size_t i = 0; i < s.n; i++) {
    char c = s.p[i];
    bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                (i && (c == '-' || c == '.'));
    if (!word)
      return false;
  }
  return s.n > 0 && s.n < 64;
}

static int step_user(struct step *s, struct err *err)
{
  struct str name = arg(s->given, 0);
  if (!user_name(name))
    return err_set(err, -EINVAL, "USER: '" STR_FMT "' is not a user name", STR_ARG(str_sub(name, 0, 100)));
  int r =
      perform(s, "USER", str_of(arena_fmt(&s->run->arena, "USER " STR_FMT, STR_ARG(name))), user_work, true, NULL, err);
  if (!r)
    build_state_text(&s->run->state.user, name);
  return r;
}

/* ---- the table ---- */

/* A copy of the step with the values of variables in its arguments. */
static int expand_args(struct build_run *run, const struct recipe_step *given, struct recipe_step *out, struct err *err)
{
  *out = *given;
  out->args = arena_alloc(&run->arena, (given->nargs + 1) * sizeof(*out->args));
  if (!out->args)
    return err_set(err, -ENOMEM, "the step has too many arguments");
  for (size_t i = 0; i < given->nargs; i++) {
    cleanup_buf struct buf text = BUF_INIT(64 << 10);
    if (build_state_expand(&run->state, given->args[i], &text))
      return err_set(err, -E2BIG, STR_FMT ": an argument exceeds 64 KiB when its variables are replaced",
                     STR_ARG(given->type));
    out->args[i] = str_of(arena_z(&run->arena, buf_str(&text)));
  }
  return 0;
}

int build_step(struct build_run *run, size_t i, struct err *err)
{
  static const struct {
    const char *type;
    int (*fn)(struct step *s, struct err *err);
    bool expands; /* variables in its arguments are replaced here; a shell does that for RUN, env_work for ENV */
  } types[] = {{"RUN", step_run, false}, {"COPY", step_copy, true}, {"ADD", step_copy, true},
               {"ENV", step_env, false}, {"ARG", step_env, false},  {"WORKDIR", step_workdir, true},
               {"USER", step_user, true}};
  struct step s = {.run = run, .given = &run->recipe.steps[i]};
  struct recipe_step expanded;
  char label[40];
  snprintf(label, sizeof(label), "[builder %zu/%zu]", i + 1, run->recipe.nsteps);
  s.label = label;
  run->fresh |= s.given->force;
  for (size_t k = 0; k < ARRAY_LEN(types); k++)
    if (str_is(s.given->type, types[k].type)) {
      int r = types[k].expands ? expand_args(run, s.given, &expanded, err) : 0;
      s.given = types[k].expands ? &expanded : s.given;
      return r ? r : types[k].fn(&s, err);
    }
  return err_set(err, -EINVAL, "steps of type '" STR_FMT "' are not supported: RUN, COPY, ENV, WORKDIR and USER are",
                 STR_ARG(str_sub(s.given->type, 0, 40)));
}

/* ---- the builder's own ---- */

static const char settle_script[] =
    "set -e\n"
    "[ -x /bin/bash ] || { echo 'the image has no /bin/bash, which templates need' >&2; exit 1; }\n"
    "if ! id -u user >/dev/null 2>&1; then\n"
    "  if command -v useradd >/dev/null; then useradd -m -s /bin/bash -u 1000 user 2>/dev/null || useradd -m -s "
    "/bin/bash user\n"
    "  else adduser -D -s /bin/bash user; fi\n"
    "fi\n"
    "mkdir -p /home/user && chown user: /home/user\n"
    "passwd -d user >/dev/null 2>&1 || true\n"
    "mkdir -p /etc/sudoers.d\n"
    "printf 'user ALL=(ALL:ALL) NOPASSWD: ALL\\n' >/etc/sudoers.d/user\n"
    "chmod 0440 /etc/sudoers.d/user\n";

static int settle_work(struct step *s, struct build_box *b, struct buf *out, struct err *err)
{
  const char *const argv[] = {"/bin/sh", "-c", settle_script, NULL};
  struct build_cmd o = {.cwd = "/", .argv = argv, .input = -1};
  return run_command(s, b, &o, "failed to prepare the image", err);
}

int build_settle(struct build_run *run, struct err *err)
{
  struct step s = {.run = run, .label = "[base]"};
  int r = perform(&s, "settle 1", STR("the user 'user'"), settle_work, true, NULL, err);
  if (r)
    return r;
  build_state_text(&run->state.user, STR("user"));
  build_state_text(&run->state.workdir, STR("/home/user"));
  return 0;
}
