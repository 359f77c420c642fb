/* SPDX-License-Identifier: Apache-2.0 */
/* template_build.c - `cloche template build`: a build from the command line, its log as it comes.
 *
 * The same requests that gates send for the SDKs. Root may read the log where the builder writes it, so that is what is
 * shown. */
#include "cli/build_context.h"
#include "cli/shell.h"
#include "cli/template.h"
#include "cli/layer_tree.h"
#include "wire/buildlog.h"
#include "wire/dockerfile.h"
#include "wire/recipe.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#define LOOK_MS   200
#define MEMORY_MB 1024
#define KEPT_S    3600 /* life of the box of a failed build */

/* Files of a COPY step that the server may have to be given. */
struct parcel {
  char hash[65];
  struct context_files files;
  const struct context *context; /* where they lie */
};

struct build_plan {
  struct line *line;
  char team[UUID_SIZE], build[UUID_TEXT]; /* build: the one under way, or the last one */
  unsigned switches;                      /* bits of the flags that stages have, too */
  struct buf recipe, tags;
  struct str name;
  struct str start, ready;           /* of the command line */
  struct buf file_start, file_ready; /* of a Dockerfile, where the line says nothing */
  uint64_t cpus, memory_mb;
  bool has_base, keep;
  const char *directory; /* of files to copy */
  struct context context;
  VEC(struct stage *) stages; /* of a Dockerfile that were copied from */
  VEC(struct parcel) parcels;
};

struct stage {
  char *name; /* owned */
  struct context tree;
};

static int build_now(struct build_plan *o, struct str tags, struct err *err);

static void drop_parcels(struct build_plan *o)
{
  for (size_t i = 0; i < o->parcels.n; i++)
    context_files_free(&o->parcels.p[i].files);
  vec_free(&o->parcels);
  o->parcels.n = 0;
}

static void build_plan_free(struct build_plan *o)
{
  drop_parcels(o);
  for (size_t i = 0; i < o->stages.n; i++) {
    context_close(&o->stages.p[i]->tree);
    free(o->stages.p[i]->name);
    free(o->stages.p[i]);
  }
  vec_free(&o->stages);
  context_close(&o->context);
  buf_free(&o->recipe);
  buf_free(&o->tags);
  buf_free(&o->file_start);
  buf_free(&o->file_ready);
}

/* ---- words to a recipe ---- */

static void put_step(struct build_plan *o, const char *type, struct str first, struct str second)
{
  recipe_put(&o->recipe, RECIPE_STEP, str_of(type));
  recipe_put(&o->recipe, RECIPE_ARG, first);
  if (second.p)
    recipe_put(&o->recipe, RECIPE_ARG, second);
}

static int put_env(struct build_plan *o, struct str word, struct err *err)
{
  struct str name, value;
  if (!str_cut(word, '=', &name, &value) || !name.n)
    return err_set(err, -EINVAL, "--env needs NAME=VALUE, not '" STR_FMT "'", STR_ARG(word));
  put_step(o, "ENV", name, value);
  return 0;
}

static int put_base(struct build_plan *o, enum recipe_tag tag, struct str value, struct err *err)
{
  if (o->has_base)
    return err_set(err, -EINVAL, "'" STR_FMT "': a template begins with one thing, and another was named before",
                   STR_ARG(value));
  o->has_base = true;
  recipe_put(&o->recipe, tag, value);
  return 0;
}

/* ---- files ---- */

/* A stage is a build under a tag of the template's; its files are read as its boxes would see them. */
static int open_stage(struct build_plan *o, struct str name, const struct context **out, struct err *err)
{
  for (size_t i = 0; i < o->stages.n; i++)
    if (str_is(name, o->stages.p[i]->name))
      return *out = &o->stages.p[i]->tree, 0;
  cleanup_tpl struct tpl t = {0};
  cleanup_free char *ref = xasprintf(STR_FMT ":" STR_FMT, STR_ARG(o->name), STR_ARG(name));
  int r = tpl_find(o->line, o->team, ref, &t, err);
  int top = r ? r : tree_open(t.layers, err);
  if (top < 0)
    return top;
  struct stage *s = xcalloc(1, sizeof(*s));
  s->name = xstrndup(name.p, name.n);
  s->tree.top = top;
  str_copyz(name, s->tree.path, sizeof(s->tree.path));
  vec_push(&o->stages, s);
  *out = &s->tree;
  return 0;
}

static int put_copy(void *arg, const struct dockerfile_copy *c, struct err *err)
{
  struct build_plan *o = arg;
  struct parcel p = {.context = &o->context};
  struct str source = c->source;
  while (c->stage.n && source.n && source.p[0] == '/')
    source = str_skip(source, 1);
  source = c->stage.n && !source.n ? STR(".") : source;
  int r = c->stage.n           ? open_stage(o, c->stage, &p.context, err)
          : o->context.top < 0 ? context_open(&o->context, o->directory, err)
                               : 0;
  r = r ? r : context_find(p.context, source, &p.files, err);
  r = r ? r : context_hash(p.context, &p.files, source, c->target, p.hash, err);
  if (r) {
    context_files_free(&p.files);
    return r;
  }
  vec_push(&o->parcels, p);
  put_step(o, "COPY", source, c->target);
  recipe_put(&o->recipe, RECIPE_ARG, c->owner);
  recipe_put(&o->recipe, RECIPE_ARG, c->mode);
  recipe_put(&o->recipe, RECIPE_FILES, str_of(p.hash));
  return 0;
}

static int put_copied(struct build_plan *o, struct str word, struct err *err)
{
  ptrdiff_t at = str_rfind(word, ':');
  if (at <= 0 || (size_t)at + 1 == word.n)
    return err_set(err, -EINVAL, "--copy needs SOURCE:DESTINATION, not '" STR_FMT "'", STR_ARG(word));
  struct dockerfile_copy c = {
      str_sub(word, 0, (size_t)at), str_skip(word, (size_t)at + 1), STR(""), STR(""), STR(""), 0};
  return put_copy(o, &c, err);
}

/* ---- a Dockerfile ---- */

static const struct {
  const char *flag;
  enum recipe_tag tag;
} switches[] = {
    {"--force", RECIPE_FORCE}, {"--no-cache", RECIPE_FORCE}, {"--keep", RECIPE_KEEP}, {"--debug", RECIPE_DEBUG}};

static void put_switches(struct build_plan *o)
{
  for (size_t i = 0; i < ARRAY_LEN(switches); i++)
    if (o->switches & 1u << i)
      recipe_put(&o->recipe, switches[i].tag, STR(""));
}

static int file_from(void *arg, struct str base, bool stage, struct err *err)
{
  struct build_plan *o = arg;
  cleanup_free char *ref = xasprintf(STR_FMT ":" STR_FMT, STR_ARG(o->name), STR_ARG(base));
  return put_base(o, stage ? RECIPE_TEMPLATE : RECIPE_IMAGE, stage ? str_of(ref) : base, err);
}

static int file_stage(void *arg, struct str name, size_t line, struct err *err)
{
  struct build_plan *o = arg;
  int r = build_now(o, name, err);
  drop_parcels(o);
  buf_clear(&o->recipe);
  put_switches(o);
  o->has_base = false;
  return r;
}

static int file_step(void *arg, const char *type, const struct str *args, size_t n, struct err *err)
{
  struct build_plan *o = arg;
  recipe_put(&o->recipe, RECIPE_STEP, str_of(type));
  for (size_t i = 0; i < n; i++)
    recipe_put(&o->recipe, RECIPE_ARG, args[i]);
  return 0;
}

static int file_start(void *arg, struct str command, struct err *err)
{
  struct build_plan *o = arg;
  buf_clear(&o->file_start);
  buf_clear(&o->file_ready);
  if (command.n)
    buf_addz(&o->file_ready, "sleep 20");
  return buf_adds(&o->file_start, command) ? err_set(err, -E2BIG, "the start command is too long") : 0;
}

static int seen_from(void *arg, struct str base, bool stage, struct err *err)
{
  return 0;
}

static int seen_step(void *arg, const char *type, const struct str *args, size_t n, struct err *err)
{
  return 0;
}

static int seen_copy(void *arg, const struct dockerfile_copy *copy, struct err *err)
{
  return 0;
}

static int seen_start(void *arg, struct str command, struct err *err)
{
  return 0;
}

static int seen_stage(void *arg, struct str name, size_t line, struct err *err)
{
  return 0;
}

/* Read once for what is wrong with it, before stages are built while it is read again. */
static int put_file(struct build_plan *o, const char *path, struct err *err)
{
  static const struct dockerfile_ops look = {seen_from, seen_step, seen_copy, seen_start, seen_stage},
                                     ops = {file_from, file_step, put_copy, file_start, file_stage};
  cleanup_buf struct buf text = BUF_INIT(DOCKERFILE_MAX);
  int r = file_read(path, &text);
  if (r)
    return err_set(err, r, "%s: %s", path, strerrordesc_np(-r));
  r = dockerfile_read(buf_str(&text), &look, o, err);
  return r ? r : dockerfile_read(buf_str(&text), &ops, o, err);
}

/* Where files to copy come from must be known before the first step that copies. */
static void find_directory(struct build_plan *o, int argc, char **argv, char own[PATH_MAX])
{
  const char *file = NULL, *directory = NULL;
  for (int i = 0; i + 1 < argc; i++) {
    file = strcmp(argv[i], "--file") ? file : argv[i + 1];
    directory = strcmp(argv[i], "--context") ? directory : argv[i + 1];
  }
  ptrdiff_t slash = file ? str_rfind(str_of(file), '/') : -1;
  snprintf(own, 4096, "%.*s", slash > 0 ? (int)slash : 1, slash >= 0 ? file : ".");
  o->directory = directory ? directory : own;
}

static int put_size(const char *option, struct str word, uint64_t *out, struct err *err)
{
  return str_u64(word, out) || !*out || *out > 1 << 24
             ? err_set(err, -EINVAL, "%s needs a number, not '" STR_FMT "'", option, STR_ARG(word))
             : 0;
}

/* Flags without a value; false when the word is none of them. */
static bool take_switch(struct build_plan *o, const char *word)
{
  for (size_t i = 0; i < ARRAY_LEN(switches); i++)
    if (!strcmp(switches[i].flag, word)) {
      o->switches |= 1u << i;
      o->keep |= switches[i].tag == RECIPE_KEEP;
      return true;
    }
  return false;
}

static int take_pair(struct build_plan *o, const char *flag, struct str value, struct err *err)
{
  static const struct {
    const char *flag, *step;
    enum recipe_tag tag; /* where it is no step */
  } pairs[] = {{"--run", "RUN", 0},
               {"--workdir", "WORKDIR", 0},
               {"--user", "USER", 0},
               {"--image", NULL, RECIPE_IMAGE},
               {"--from", NULL, RECIPE_TEMPLATE}};
  if (!strcmp(flag, "--env"))
    return put_env(o, value, err);
  if (!strcmp(flag, "--copy"))
    return put_copied(o, value, err);
  if (!strcmp(flag, "--file"))
    return put_file(o, value.p, err);
  if (!strcmp(flag, "--context"))
    return 0;
  if (!strcmp(flag, "--tag"))
    return buf_addf(&o->tags, "," STR_FMT, STR_ARG(value)) ? err_set(err, -E2BIG, "too many tags") : 0;
  if (!strcmp(flag, "--start") || !strcmp(flag, "--ready")) {
    *(flag[2] == 's' ? &o->start : &o->ready) = value;
    return 0;
  }
  if (!strcmp(flag, "--cpus"))
    return put_size("--cpus", value, &o->cpus, err);
  if (!strcmp(flag, "--memory"))
    return put_size("--memory", value, &o->memory_mb, err);
  for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
    if (strcmp(pairs[i].flag, flag))
      continue;
    if (!pairs[i].step)
      return put_base(o, pairs[i].tag, value, err);
    put_step(o, pairs[i].step, value, STR_NONE);
    return 0;
  }
  return err_set(err, -EINVAL, "no option '%s'; see cloche template --help", flag);
}

static bool is_size(const char *word)
{
  return !strcmp(word, "--cpus") || !strcmp(word, "--memory");
}

/* What holds for every stage of a Dockerfile, wherever it stands. */
static int read_common(struct build_plan *o, int argc, char **argv, struct err *err)
{
  int r = 0;
  for (int i = 0; !r && i < argc; i++)
    if (!take_switch(o, argv[i])) {
      r = is_size(argv[i]) && i + 1 < argc ? take_pair(o, argv[i], str_of(argv[i + 1]), err) : 0;
      i++;
    }
  put_switches(o);
  return r;
}

static int read_words(struct build_plan *o, int argc, char **argv, struct err *err)
{
  int r = read_common(o, argc, argv, err);
  for (int i = 0; !r && i < argc; i++) {
    if (take_switch(o, argv[i]))
      continue;
    if (i + 1 == argc)
      return err_set(err, -EINVAL, "'%s' needs a value", argv[i]);
    r = take_pair(o, argv[i], str_of(argv[i + 1]), err);
    i++;
  }
  if (!r && !o->has_base)
    recipe_put(&o->recipe, RECIPE_TEMPLATE, STR("base"));
  struct str start = o->start.p ? o->start : buf_str(&o->file_start),
             ready = o->ready.p || o->start.p ? o->ready : buf_str(&o->file_ready);
  if (start.n)
    recipe_put(&o->recipe, RECIPE_START, start);
  if (ready.n)
    recipe_put(&o->recipe, RECIPE_READY, ready);
  return r || !buf_failed(&o->recipe) ? r : err_set(err, -E2BIG, "the recipe exceeds %u bytes", RECIPE_MAX);
}

/* ---- the build ---- */

static void begin_file_request(const char *team, const struct parcel *p, enum wire_type type, const char *ref,
                               struct buf *b)
{
  wire_begin(b, type, 4, 0);
  wire_putz(b, W_TEAM, team);
  wire_putz(b, W_REF, ref);
  wire_putz(b, W_NAME, p->hash);
}

/* As a gate does it: a descriptor to write to, then its length, which names the file. */
static int send_parcel(struct line *l, const struct build_plan *o, const char *team, const char *ref,
                       const struct parcel *p, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  cleanup_fd int fd = -1;
  char id[UPLOAD_ID_SIZE];
  uint64_t bytes = 0;
  struct err why = ERR_NONE;
  begin_file_request(team, p, WIRE_FILE_LOOK, ref, &b);
  int r = admin_call(l, &b, NULL, NULL, err);
  if (r || wire_u64(buf_str(&b), W_COUNT, 0))
    return r;
  random_id(id, 20);
  begin_file_request(team, p, WIRE_FILE_OPEN, ref, &b);
  wire_putz(&b, W_ID, id);
  r = admin_fetch(l, &b, &fd, err);
  r = r ? r : context_pack(p->context, &p->files, fd, &bytes, err);
  begin_file_request(team, p, WIRE_FILE_CLOSE, ref, &b);
  wire_putz(&b, W_ID, id);
  if (!r)
    wire_put_u64(&b, W_COUNT, bytes);
  int closed = admin_call(l, &b, NULL, NULL, &why);
  return r || !closed ? r : err_set(err, closed, "%s", why.msg);
}

static int request(struct line *l, const struct build_plan *o, const char *team, struct str tags, const char *build,
                   struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  char id[TEMPLATE_ID_SIZE];
  random_id(id, 20);
  wire_begin(&b, WIRE_BUILD_REQUEST, 1, 0);
  wire_putz(&b, W_TEAM, team);
  wire_put(&b, W_REF, o->name);
  wire_put(&b, W_TAG, tags);
  wire_putz(&b, W_BUILD, build);
  wire_putz(&b, W_TEMPLATE, id);
  wire_put_u64(&b, W_CPUS, o->cpus);
  wire_put_u64(&b, W_MEMORY_MB, o->memory_mb);
  int r = admin_call(l, &b, NULL, NULL, err);
  if (r)
    return r;
  char template_id[TEMPLATE_ID_SIZE];
  wire_copyz(buf_str(&b), W_TEMPLATE, template_id, sizeof(template_id));
  for (size_t i = 0; i < o->parcels.n; i++)
    if ((r = send_parcel(l, o, team, template_id, &o->parcels.p[i], err)))
      return r;
  wire_begin(&b, WIRE_BUILD_START, 2, 0);
  wire_putz(&b, W_TEAM, team);
  wire_putz(&b, W_REF, template_id);
  wire_putz(&b, W_BUILD, build);
  wire_put(&b, W_RECIPE, buf_str(&o->recipe));
  r = admin_call(l, &b, NULL, NULL, err);
  printf("template %s, build %s\n", template_id, build);
  return r;
}

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
  interrupted = 1;
}

struct reading {
  size_t shown, at;
};

static int show_line(const struct buildlog_head *h, struct str message, void *arg)
{
  struct reading *r = arg;
  if (r->at++ < r->shown)
    return 0;
  r->shown = r->at;
  for (size_t i = 0; i < message.n; i++) /* what programs in the box print is not for this terminal to obey */
    putchar((unsigned char)message.p[i] >= 32 || message.p[i] == '\t' ? message.p[i] : ' ');
  putchar('\n');
  return 0;
}

static void show_log(const char *path, struct reading *r)
{
  cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
  r->at = 0;
  if (fd >= 0)
    buildlog_each(fd, show_line, r);
  fflush(stdout);
}

static void begin_build_request(struct buf *b, const char *team, const char *ref, const char *build)
{
  wire_begin(b, WIRE_BUILD_GET, 3, 0);
  wire_putz(b, W_TEAM, team);
  wire_putz(b, W_REF, ref);
  wire_putz(b, W_BUILD, build);
}

static int look(struct line *l, const char *team, const char *ref, const char *build, unsigned *state, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  begin_build_request(&b, team, ref, build);
  int r = admin_call(l, &b, NULL, NULL, err);
  struct str p = buf_str(&b), message = wire_get(p, W_MESSAGE), step = wire_get(p, W_STEP);
  *state = r ? JOB_ERROR : (unsigned)wire_u64(p, W_STATE, JOB_ERROR);
  if (!r && *state == JOB_ERROR)
    r = err_set(err, -EREMOTEIO, "step " STR_FMT ": " STR_FMT, STR_ARG(step), STR_ARG(message));
  return r;
}

/* The state is requested before the log is read, so that the last lines are not lost. */
int tpl_follow(struct line *l, const char *team, const char *ref, const char *build, struct err *err)
{
  struct reading reading = {0};
  cleanup_free char *path = xasprintf("%s/builds/%s.log", l->data, build);
  unsigned state;
  for (;;) {
    int r = look(l, team, ref, build, &state, err);
    show_log(path, &reading);
    if (r || state == JOB_READY)
      return r;
    if (interrupted) {
      interrupted = 0;
      tpl_cancel(l, team, build, NULL, err);
    }
    nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
  }
}

int tpl_cancel(struct line *l, const char *team, const char *build, uint64_t *count, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_BUILD_CANCEL, 5, 0);
  wire_putz(&b, W_TEAM, team);
  wire_putz(&b, W_BUILD, build);
  int r = admin_call(l, &b, NULL, NULL, err);
  if (!r && count)
    *count = wire_u64(buf_str(&b), W_COUNT, 0);
  return r;
}

/* An interrupt ends the build and not only the looking on: nobody else would. The log is still read to its end. */
static int build_watched(struct line *l, const struct build_plan *o, const char *team, const char *build,
                         struct err *err)
{
  struct sigaction before, own = {.sa_handler = interrupt};
  cleanup_free char *ref = xstrndup(o->name.p, o->name.n);
  sigaction(SIGINT, &own, &before);
  int r = tpl_follow(l, team, ref, build, err);
  sigaction(SIGINT, &before, NULL);
  return r;
}

/* ---- what a failed one left ---- */

/* The build under the tag `failed`, "" when there is none. */
static void find_failed_box(struct line *l, const struct build_plan *o, const char *team, char build[UUID_SIZE])
{
  struct err err = ERR_NONE;
  cleanup_tpl struct tpl t = {0};
  cleanup_free char *ref = xasprintf(STR_FMT ":failed", STR_ARG(o->name));
  bool there = !tpl_find(l, team, ref, &t, &err);
  snprintf(build, 40, "%s", there ? t.build : "");
}

/* The sandbox that the box of the failed step has become; "" when there is none. */
static void find_kept_box(struct line *l, const struct build_plan *o, const char *team, const char *job,
                          char id[BOX_ID_SIZE])
{
  struct err err = ERR_NONE;
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  cleanup_free char *ref = xstrndup(o->name.p, o->name.n);
  begin_build_request(&b, team, ref, job);
  if (admin_call(l, &b, NULL, NULL, &err) || wire_copyz(buf_str(&b), W_ID, id, BOX_ID_SIZE))
    id[0] = 0;
}

/* A box of it, to look around in: the very one, or where that is gone (it ran out of memory) one of its files. An older
 * build's remains are not what is asked for. */
static void open_failed_box(struct line *l, const struct build_plan *o, const char *team, const char *job,
                            const char *before)
{
  struct err err = ERR_NONE;
  char build[UUID_SIZE], id[BOX_ID_SIZE];
  find_kept_box(l, o, team, job, id);
  if (id[0]) {
    printf("the box in which it failed is sandbox %s, as it stands: cloche shell %s; its files are " STR_FMT
           ":failed\n",
           id, id, STR_ARG(o->name));
    return;
  }
  cleanup_free char *ref = xasprintf(STR_FMT ":failed", STR_ARG(o->name));
  find_failed_box(l, o, team, build);
  if (!build[0] || !strcmp(build, before))
    printf("the build failed before it had written anything that could be kept\n");
  else if (shell_box(l, team, ref, KEPT_S, id, &err))
    printf("what it left is %s; a sandbox of it could not be made: %s\n", ref, err.msg);
  else
    printf("what it left is %s, and sandbox %s of it lives for an hour: cloche shell %s\n", ref, id, id);
}

static int build_now(struct build_plan *o, struct str tags, struct err *err)
{
  uuid4(o->build);
  if (buf_failed(&o->recipe))
    return err_set(err, -E2BIG, "the recipe exceeds %u bytes", RECIPE_MAX);
  int r = request(o->line, o, o->team, tags, o->build, err);
  return r ? r : build_watched(o->line, o, o->team, o->build, err);
}

int tpl_build(struct line *l, const char *team, int argc, char **argv, struct err *err)
{
  char before[UUID_SIZE], directory[PATH_MAX];
  struct str tag;
  struct build_plan o = {.line = l,
                         .recipe = BUF_INIT(RECIPE_MAX),
                         .tags = BUF_INIT(4096),
                         .file_start = BUF_INIT(RECIPE_MAX),
                         .file_ready = BUF_INIT(64),
                         .cpus = 2,
                         .memory_mb = MEMORY_MB,
                         .context.top = -1};
  bool tagged = str_cut(str_of(argv[0]), ':', &o.name, &tag);
  buf_adds(&o.tags, tagged ? tag : STR("default"));
  find_directory(&o, argc - 1, argv + 1, directory);
  int r = tpl_team(l, team, o.name, o.team, err);
  if (!r) {
    find_failed_box(l, &o, o.team, before);
    r = read_words(&o, argc - 1, argv + 1, err);
  }
  r = r ? r : build_now(&o, buf_str(&o.tags), err);
  if (r == -EREMOTEIO && o.keep)
    open_failed_box(l, &o, o.team, o.build, before);
  build_plan_free(&o);
  return r;
}
