/* SPDX-License-Identifier: Apache-2.0 */
/* template.c - `cloche template`: templates, their builds and tags, over the line to the running warden. */
#include "cli/template.h"
#include "cli/cli.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

static const char help[] =
    "cloche template - templates, their builds and tags\n\n"
    "Usage: cloche template list                        every template, with its default build\n"
    "       cloche template show REF                    one build: settings, environment, layers and their sizes\n"
    "       cloche template history NAME                its builds, newest first, and the tags that point to them\n"
    "       cloche template rollback NAME[:TAG] BUILD   point a tag (default: default) back to an earlier build;\n"
    "                                                   BUILD is an id, the beginning of one, or 'previous'\n"
    "       cloche template tag REF TAG...              more tags for the build that REF names\n"
    "       cloche template untag NAME TAG...           remove tags; the build stays\n"
    "       cloche template diff REF REF                files and packages that differ between two builds\n"
    "       cloche template export [--gzip] REF FILE    write a build as an OCI image; FILE.tar is an archive, else a "
    "layout;\n"
    "                                                   --gzip: packed for readers that do not know zstd\n"
    "       cloche template import FILE NAME            make a template of an OCI layout, an OCI archive or a docker "
    "archive\n"
    "       cloche template build NAME[:TAG] [OPTION...]  build one here; see below\n"
    "       cloche template make NAME...                make templates that Cloche has recipes for (desktop, claude, "
    "...), for\n"
    "                                                   all teams; see below\n"
    "       cloche template make --default              make the default templates, those that are not there yet "
    "(--debian-only: without a Python or npm registry)\n"
    "       cloche template make --list                 the recipes, and which templates are made\n"
    "       cloche template log NAME [BUILD]            the log of a build (default: the newest); waits while it is at "
    "work\n"
    "       cloche template cancel NAME [BUILD]         end builds of a template that wait or are at work\n"
    "       cloche template delete NAME                 remove a template that no sandbox uses, with its builds\n"
    "       cloche template gc [--dry-run] [--all]      remove cached layers, uploads and images that nothing needs "
    "and that\n"
    "                                                   were not used for `cache_days`; --all: for ten minutes\n\n"
    "A build's options, steps in the order given: --from REF, --image IMAGE or --file DOCKERFILE (else: --from base), "
    "--run COMMAND,\n"
    "--copy SOURCE:DESTINATION, --env NAME=VALUE, --workdir DIR, --user NAME; --context DIR: where files to copy are "
    "(else beside\n"
    "the Dockerfile, or here; .dockerignore is minded); --start COMMAND, --ready COMMAND; --cpus N, --memory MIB; "
    "--tag TAG: one\n"
    "more, and again; --no-cache or --force: take nothing from the cache; --keep: the box in which a build fails "
    "becomes a sandbox,\n"
    "as it stands, for cloche shell, and its files NAME:failed; --debug: finish even when the start command fails.\n\n"
    "make installs Debian packages and, for some recipes, npm packages from where this machine itself gets them, takes "
    "minutes\n"
    "once, and does nothing where the recipe has not changed since. The templates belong to no team and every team can "
    "use them,\n"
    "like base: Sandbox.create(\"desktop\"). A new build replaces the old one for new sandboxes.\n\n"
    "REF is [NAMESPACE/]NAME[:TAG]; in the place of TAG a build's id may stand. A bare NAME is a template of the first "
    "team (or of\n"
    "--team) and then one that all share.\n\n"
    "Nothing that a build, a tag, a snapshot, a paused or a running sandbox needs is ever removed by gc. A sandbox "
    "keeps the build\n"
    "it was made from, whatever happens to tags. An exported image carries the template's settings in a label, so that "
    "an import\n"
    "elsewhere gives the same template; any runtime for OCI images can run it, too.\n\n"
    "Options: --data DIR   the server's data directory [/var/lib/cloche]\n"
    "         --team ID    another team than the first one\n"
    "         --json       list and history: print JSON for programs";

/* ---- finding ---- */

struct team_query {
  struct str slug; /* or empty: the first */
  char *out;
};

static void team_item(struct str p, void *arg)
{
  struct team_query *w = arg;
  if (!w->out[0] && (!w->slug.n || str_eq(w->slug, wire_get(p, W_SLUG))))
    wire_copyz(p, W_TEAM, w->out, UUID_SIZE);
}

int tpl_team(struct line *l, const char *team, struct str ref, char out[UUID_SIZE], struct err *err)
{
  struct str space, rest;
  struct team_query query = {.out = out};
  out[0] = 0;
  if (str_cut(ref, '/', &space, &rest))
    query.slug = space;
  else if (team[0])
    return str_copyz(str_of(team), out, UUID_SIZE);
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_TEAM_LIST, 1, 0);
  int r = admin_call(l, &b, team_item, &query, err);
  if (!r && !out[0]) { /* the shared ones belong to nobody on that list, and any team sees them */
    query.slug = STR_NONE;
    wire_begin(&b, WIRE_TEAM_LIST, 1, 0);
    r = admin_call(l, &b, team_item, &query, err);
  }
  return r;
}

static void tpl_read(struct str p, struct tpl *t)
{
  wire_copyz(p, W_TEMPLATE, t->id, sizeof(t->id));
  wire_copyz(p, W_TEAM, t->team, sizeof(t->team));
  wire_copyz(p, W_SLUG, t->slug, sizeof(t->slug));
  wire_copyz(p, W_ALIAS, t->name, sizeof(t->name));
  wire_copyz(p, W_BUILD, t->build, sizeof(t->build));
  t->public = wire_u64(p, W_PUBLIC, 0) != 0;
  t->cpus = (unsigned)wire_u64(p, W_CPUS, 0);
  t->memory_mb = (unsigned)wire_u64(p, W_MEMORY_MB, 0);
  t->disk_mb = (unsigned)wire_u64(p, W_DISK_MB, 0);
  t->spawns = wire_u64(p, W_SPAWNS, 0);
  t->builds = wire_u64(p, W_BUILDS, 0);
  t->created_us = (int64_t)wire_u64(p, W_CREATED, 0);
  t->updated_us = (int64_t)wire_u64(p, W_LAST, 0);
  struct str layers = wire_get(p, W_LAYERS), config = wire_get(p, W_CONFIG);
  t->layers = layers.p ? xstrndup(layers.p, layers.n) : NULL;
  t->config = config.p ? xstrndup(config.p, config.n) : NULL;
}

void tpl_free(struct tpl *t)
{
  free(t->layers);
  free(t->config);
}

int tpl_find(struct line *l, const char *team, const char *ref, struct tpl *out, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  char id[UUID_SIZE];
  *out = (struct tpl){0};
  int r = tpl_team(l, team, str_of(ref), id, err);
  if (r)
    return r;
  wire_begin(&b, WIRE_BUILD_SHOW, 1, 0);
  wire_putz(&b, W_TEAM, id);
  wire_putz(&b, W_REF, ref);
  r = admin_call(l, &b, NULL, NULL, err);
  if (!r)
    tpl_read(buf_str(&b), out);
  return r;
}

/* ---- printing ---- */

static const char *day(int64_t us, char text[CLOCK_TEXT])
{
  clock_text(us, text);
  text[19] = 0;
  text[10] = ' ';
  return text;
}

static const char *size_text(uint64_t bytes, char text[24])
{
  if (bytes < (uint64_t)1 << 20)
    snprintf(text, 24, "%llu KiB", (unsigned long long)(bytes + 1023) >> 10);
  else
    snprintf(text, 24, "%.1f MiB", (double)bytes / (1 << 20));
  return text;
}

static void print_template(struct str p, void *arg)
{
  char when[CLOCK_TEXT];
  cleanup_tpl struct tpl t = {0};
  cleanup_free char *name = NULL;
  tpl_read(p, &t);
  name = xasprintf("%s/%s", t.slug, t.name);
  printf("%-40s %-20s %-36s %6llu %7llu  %-7s %s\n", name, t.id, t.build[0] ? t.build : "-",
         (unsigned long long)t.builds, (unsigned long long)t.spawns, t.public ? "public" : "private",
         day(t.updated_us, when));
}

struct words {
  struct line *l;
  const char *team;
  int argc;
  char **argv;
  bool dry, all, gzip, json;
  struct err *err;
};

static int list(struct words *w)
{
  static const struct json_field fields[] = {
      {"templateID", W_TEMPLATE, FIELD_TEXT},  {"namespace", W_SLUG, FIELD_TEXT},
      {"name", W_ALIAS, FIELD_TEXT},           {"buildID", W_BUILD, FIELD_TEXT},
      {"buildCount", W_BUILDS, FIELD_NUMBER},  {"spawnCount", W_SPAWNS, FIELD_NUMBER},
      {"public", W_PUBLIC, FIELD_FLAG},        {"cpuCount", W_CPUS, FIELD_NUMBER},
      {"memoryMB", W_MEMORY_MB, FIELD_NUMBER}, {"diskSizeMB", W_DISK_MB, FIELD_NUMBER},
      {"createdAt", W_CREATED, FIELD_TIME},    {"updatedAt", W_LAST, FIELD_TIME}};
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  if (w->json) {
    wire_begin(&b, WIRE_TEMPLATE_LIST, 1, 0);
    return admin_print_json(w->l, &b, fields, ARRAY_LEN(fields), w->err);
  }
  printf("%-40s %-20s %-36s %6s %7s  %-7s %s\n", "NAME", "ID", "DEFAULT BUILD", "BUILDS", "SPAWNS", "", "UPDATED");
  wire_begin(&b, WIRE_TEMPLATE_LIST, 1, 0);
  return admin_call(w->l, &b, print_template, NULL, w->err);
}

static uint64_t summed;

static int add_size(const char *path, const struct stat *st, int kind, struct FTW *at)
{
  summed += (uint64_t)st->st_blocks * 512;
  return 0;
}

static uint64_t tree_bytes(const char *path)
{
  summed = 0;
  nftw(path, add_size, 64, FTW_PHYS | FTW_MOUNT);
  return summed;
}

static void print_layers(const char *layers)
{
  struct str rest = str_of(layers ? layers : ""), line;
  while (rest.n) {
    char path[PATH_MAX], size[24];
    str_cut(rest, '\n', &line, &rest);
    if (!str_copyz(line, path, sizeof(path)))
      printf("  %10s  %s\n", size_text(tree_bytes(path), size), path);
  }
}

static int show(struct words *w)
{
  char when[CLOCK_TEXT];
  cleanup_tpl struct tpl t;
  int r = tpl_find(w->l, w->team, w->argv[2], &t, w->err);
  if (r)
    return r;
  printf("name      %s/%s (%s)\nid        %s\nbuild     %s\n", t.slug, t.name, t.public ? "public" : "private", t.id,
         t.build);
  printf("created   %s UTC\nupdated   %s UTC\n", day(t.created_us, when), day(t.updated_us, when));
  printf("sandbox   %u cpu, %u MiB memory, %u MiB disk\nspawned   %llu times\n", t.cpus, t.memory_mb, t.disk_mb,
         (unsigned long long)t.spawns);
  printf("settings  %s\nlayers, top first\n", t.config ? t.config : "(too large to show)");
  print_layers(t.layers);
  return 0;
}

/* ---- history ---- */

struct past {
  char build[UUID_SIZE];
  char tags[512];
  int64_t created_us;
  unsigned cpus, memory_mb, state;
};

struct pasts {
  VEC(struct past) list;
};

static void past_build(struct str p, void *arg)
{
  struct pasts *all = arg;
  struct past one = {.created_us = (int64_t)wire_u64(p, W_CREATED, 0),
                     .cpus = (unsigned)wire_u64(p, W_CPUS, 0),
                     .memory_mb = (unsigned)wire_u64(p, W_MEMORY_MB, 0),
                     .state = (unsigned)wire_u64(p, W_STATE, JOB_READY)};
  wire_copyz(p, W_BUILD, one.build, sizeof(one.build));
  vec_push(&all->list, one);
}

static void past_tag(struct str p, void *arg)
{
  struct pasts *all = arg;
  for (size_t i = 0; i < all->list.n; i++) {
    struct past *one = &all->list.p[i];
    size_t n = strlen(one->tags);
    if (str_is(wire_get(p, W_BUILD), one->build))
      snprintf(one->tags + n, sizeof(one->tags) - n, "%s" STR_FMT, n ? " " : "", STR_ARG(wire_get(p, W_TAG)));
  }
}

static const char *state_name(unsigned state)
{
  return state == JOB_READY ? "ready" : state == JOB_ERROR ? "failed" : state == JOB_BUILDING ? "building" : "waiting";
}

static int newest_first(const void *a, const void *b)
{
  int64_t x = ((const struct past *)a)->created_us, y = ((const struct past *)b)->created_us;
  return x < y ? 1 : x > y ? -1 : 0;
}

static int call_about(struct words *w, enum wire_type type, const struct tpl *t, void (*item)(struct str, void *),
                      void *arg)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, type, 1, 0);
  wire_putz(&b, W_TEAM, t->team);
  wire_putz(&b, W_REF, t->id);
  return admin_call(w->l, &b, item, arg, w->err);
}

static int read_past(struct words *w, const struct tpl *t, struct pasts *all)
{
  int r = call_about(w, WIRE_TEMPLATE_BUILDS, t, past_build, all);
  r = r ? r : call_about(w, WIRE_TEMPLATE_TAGS, t, past_tag, all);
  if (all->list.n)
    qsort(all->list.p, all->list.n, sizeof(*all->list.p), newest_first);
  return r;
}

/* The template of a name alone: a tag that is not there, or none at all, must not hide its history. */
static int find_named(struct words *w, const char *ref, struct tpl *t)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  char team[UUID_SIZE];
  *t = (struct tpl){0};
  int r = tpl_team(w->l, w->team, str_of(ref), team, w->err);
  if (r)
    return r;
  wire_begin(&b, WIRE_TEMPLATE_TAGS, 1, 0);
  wire_putz(&b, W_TEAM, team);
  wire_putz(&b, W_REF, ref);
  r = admin_call(w->l, &b, NULL, NULL, w->err);
  if (!r)
    tpl_read(buf_str(&b), t);
  return r;
}

static int print_past_json(const struct pasts *all)
{
  cleanup_buf struct buf out = BUF_INIT((size_t)64 << 20);
  struct jw j = JW(&out);
  jw_open(&j, '[');
  for (size_t i = 0; i < all->list.n; i++) {
    const struct past *p = &all->list.p[i];
    struct str rest = str_of(p->tags), tag;
    char when[CLOCK_TEXT];
    clock_text(p->created_us, when);
    jw_open(&j, '{');
    jw_key(&j, "buildID");
    jw_z(&j, p->build);
    jw_key(&j, "status");
    jw_z(&j, state_name(p->state));
    jw_key(&j, "createdAt");
    jw_z(&j, when);
    jw_key(&j, "tags");
    jw_open(&j, '[');
    while (rest.n) {
      str_cut(rest, ' ', &tag, &rest);
      jw_str(&j, tag);
    }
    jw_close(&j, ']');
    jw_close(&j, '}');
  }
  jw_close(&j, ']');
  buf_addc(&out, '\n');
  return fd_write_all(1, out.p, out.n);
}

static int history(struct words *w)
{
  cleanup_tpl struct tpl t;
  struct pasts all = {0};
  int r = find_named(w, w->argv[2], &t);
  r = r ? r : read_past(w, &t, &all);
  if (!r && w->json)
    r = print_past_json(&all);
  else if (!r)
    printf("%-36s  %-19s %4s %7s  %-8s %s\n", "BUILD", "CREATED (UTC)", "CPUS", "MEM MB", "STATE", "TAGS");
  for (size_t i = 0; !r && !w->json && i < all.list.n; i++) {
    char when[CLOCK_TEXT];
    const struct past *p = &all.list.p[i];
    printf("%-36s  %-19s %4u %7u  %-8s %s\n", p->build, day(p->created_us, when), p->cpus, p->memory_mb,
           state_name(p->state), p->tags);
  }
  vec_free(&all.list);
  return r;
}

/* ---- tags ---- */

static bool has_tag(const char *tags, struct str tag)
{
  struct str rest = str_of(tags), one;
  while (rest.n) {
    str_cut(rest, ' ', &one, &rest);
    if (str_eq(one, tag))
      return true;
  }
  return false;
}

/* An id, its unique beginning, or 'previous': the finished one before what the tag points to. */
static int choose(const struct pasts *all, const char *word, struct str tag, char out[UUID_SIZE], struct err *err)
{
  size_t hits = 0;
  bool behind = false, previous = !strcmp(word, "previous");
  for (size_t i = 0; i < all->list.n; i++) {
    const struct past *p = &all->list.p[i];
    if (p->state != JOB_READY)
      continue;
    if ((previous && behind && !hits) || (strlen(word) >= 4 && str_starts(str_of(p->build), str_of(word)))) {
      memcpy(out, p->build, UUID_SIZE);
      hits++;
    }
    behind |= has_tag(p->tags, tag);
  }
  if (hits == 1)
    return 0;
  if (hits)
    return err_set(err, -ENOENT, "'%s' is the beginning of several builds; give more of it", word);
  if (previous)
    return err_set(err, -ENOENT,
                   "no finished build is older than the one '" STR_FMT
                   "' points to; cloche template history lists them",
                   STR_ARG(tag));
  return err_set(err, -ENOENT, "no finished build '%s'; cloche template history lists them", word);
}

static int put_tag(struct words *w, const struct tpl *t, const char *build, const char *tags)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  cleanup_free char *ref = xasprintf("%s:%s", t->id, build);
  wire_begin(&b, WIRE_TAG_PUT, 1, 0);
  wire_putz(&b, W_TEAM, t->team);
  wire_putz(&b, W_REF, ref);
  wire_putz(&b, W_TAG, tags);
  return admin_call(w->l, &b, NULL, NULL, w->err);
}

static int rollback(struct words *w)
{
  struct str name, tag;
  char build[UUID_SIZE], text[130], bare[300];
  cleanup_tpl struct tpl t;
  struct pasts all = {0};
  if (!str_cut(str_of(w->argv[2]), ':', &name, &tag))
    tag = STR("default");
  if (str_copyz(name, bare, sizeof(bare)) || str_copyz(tag, text, sizeof(text)))
    return err_set(w->err, -EINVAL, "'%s' is too long", w->argv[2]);
  int r = find_named(w, bare, &t);
  r = r ? r : read_past(w, &t, &all);
  r = r ? r : choose(&all, w->argv[3], tag, build, w->err);
  r = r ? r : put_tag(w, &t, build, text);
  if (!r)
    printf("%s/%s:%s is build %s\n", t.slug, t.name, text, build);
  vec_free(&all.list);
  return r;
}

static void join(struct buf *b, int argc, char **argv)
{
  for (int i = 0; i < argc; i++)
    buf_addf(b, "%s%s", i ? "," : "", argv[i]);
}

static int tag_build(struct words *w)
{
  cleanup_buf struct buf tags = BUF_INIT(4096);
  cleanup_tpl struct tpl t;
  join(&tags, w->argc - 3, w->argv + 3);
  int r = tpl_find(w->l, w->team, w->argv[2], &t, w->err);
  r = r ? r : put_tag(w, &t, t.build, buf_z(&tags));
  if (!r)
    printf("%s\n", t.build);
  return r;
}

static int untag(struct words *w)
{
  cleanup_buf struct buf tags = BUF_INIT(4096), b = BUF_INIT(WIRE_MAX);
  cleanup_tpl struct tpl t;
  join(&tags, w->argc - 3, w->argv + 3);
  int r = find_named(w, w->argv[2], &t);
  if (r)
    return r;
  wire_begin(&b, WIRE_TAG_DELETE, 1, 0);
  wire_putz(&b, W_TEAM, t.team);
  wire_putz(&b, W_REF, t.id);
  wire_put(&b, W_TAG, buf_str(&tags));
  return admin_call(w->l, &b, NULL, NULL, w->err);
}

static int delete (struct words *w)
{
  cleanup_tpl struct tpl t;
  int r = find_named(w, w->argv[2], &t);
  return r ? r : call_about(w, WIRE_TEMPLATE_DELETE, &t, NULL, NULL);
}

/* ---- the rest ---- */

static int diff(struct words *w)
{
  cleanup_tpl struct tpl a = {0}, b = {0};
  int r = tpl_find(w->l, w->team, w->argv[2], &a, w->err);
  r = r ? r : tpl_find(w->l, w->team, w->argv[3], &b, w->err);
  return r ? r : tpl_diff(&a, &b, w->err);
}

static int make(struct words *w)
{
  return tpl_make(w->l, w->argc - 2, w->argv + 2, w->err);
}

static int build(struct words *w)
{
  return tpl_build(w->l, w->team, w->argc - 2, w->argv + 2, w->err);
}

/* The newest, or the one whose id begins so. */
static int build_log(struct words *w)
{
  cleanup_tpl struct tpl t;
  struct pasts all = {0};
  int r = find_named(w, w->argv[2], &t);
  r = r ? r : read_past(w, &t, &all);
  size_t i = 0;
  while (!r && w->argc > 3 && i < all.list.n && !str_starts(str_of(all.list.p[i].build), str_of(w->argv[3])))
    i++;
  if (!r && i == all.list.n)
    r = err_set(w->err, -ENOENT, "no build '%s' of %s; cloche template history lists them",
                w->argc > 3 ? w->argv[3] : "", w->argv[2]);
  r = r ? r : tpl_follow(w->l, t.team, t.id, all.list.p[i].build, w->err);
  vec_free(&all.list);
  return r;
}

static int cancel(struct words *w)
{
  cleanup_tpl struct tpl t;
  struct pasts all = {0};
  uint64_t total = 0, one = 0;
  int r = find_named(w, w->argv[2], &t);
  r = r ? r : read_past(w, &t, &all);
  for (size_t i = 0; !r && i < all.list.n; i++, one = 0) {
    const struct past *p = &all.list.p[i];
    bool chosen = w->argc == 3 || str_starts(str_of(p->build), str_of(w->argv[3]));
    if (chosen && p->state != JOB_READY && p->state != JOB_ERROR)
      r = tpl_cancel(w->l, t.team, p->build, &one, w->err);
    total += one;
  }
  vec_free(&all.list);
  if (!r)
    printf("cancelled %llu\n", (unsigned long long)total);
  return r;
}

static int export(struct words *w)
{
  cleanup_tpl struct tpl t;
  int r = tpl_find(w->l, w->team, w->argv[2], &t, w->err);
  return r ? r : tpl_export(&t, w->argv[3], w->gzip, w->err);
}

static int call_import(struct words *w, const char *team, const char *kind, const char *path, struct tpl *out)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  cleanup_free char *image = xasprintf("%s:%s", kind, path);
  struct timeval patience = {.tv_sec =
                                 0}; /* none: unpacking takes as long as it takes, the server has limits of its own */
  setsockopt(w->l->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  wire_begin(&b, WIRE_TEMPLATE_IMPORT, 1, 0);
  wire_putz(&b, W_TEAM, team);
  wire_putz(&b, W_REF, w->argv[3]);
  wire_putz(&b, W_NAME, image);
  int r = admin_call(w->l, &b, NULL, NULL, w->err);
  if (!r)
    tpl_read(buf_str(&b), out);
  return r;
}

/* A directory is a layout; a file is an archive of one kind or the other. */
static int import(struct words *w)
{
  char path[PATH_MAX], team[UUID_SIZE];
  struct stat st;
  cleanup_tpl struct tpl t = {0};
  if (!realpath(w->argv[2], path) || stat(path, &st))
    return err_errno(w->err, "%s", w->argv[2]);
  if (strchr(path, ':'))
    return err_set(w->err, -EINVAL, "'%s': a path with a colon can't be named as an image; rename it first", path);
  int r = tpl_team(w->l, w->team, str_of(w->argv[3]), team, w->err);
  if (r)
    return r;
  r = call_import(w, team, S_ISDIR(st.st_mode) ? "oci" : "oci-archive", path, &t);
  struct err first = *w->err;
  if (r && r != -EINVAL && S_ISREG(st.st_mode) && (r = call_import(w, team, "docker-archive", path, &t))) {
    struct err second = *w->err;
    return err_set(w->err, r, "'%s' can't be imported; as an OCI archive: %.200s; as a docker archive: %.200s", path,
                   first.msg, second.msg);
  }
  if (r)
    return err_wrap(w->err, "'%s' can't be imported", path);
  printf("%s/%s is build %s\n", t.slug, t.name, t.build);
  return 0;
}

struct waste {
  VEC(char *) paths;
};

static void waste_item(struct str p, void *arg)
{
  struct waste *all = arg;
  struct str name = wire_get(p, W_NAME);
  vec_push(&all->paths, xstrndup(name.p, name.n));
}

static int request_gc(struct words *w, bool dry, struct waste *all)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_GC, 1, 0);
  wire_put_u64(&b, W_MODE, dry);
  if (w->all)
    wire_put_u64(&b, W_TIMEOUT, 0);
  return admin_call(w->l, &b, all ? waste_item : NULL, all, w->err);
}

/* A dry run first, for the sizes; what became needed in between stays. */
static int gc(struct words *w)
{
  struct waste all = {0};
  char size[24];
  uint64_t total = 0;
  int r = request_gc(w, true, &all);
  for (size_t i = 0; i < all.paths.n; i++) {
    uint64_t bytes = tree_bytes(all.paths.p[i]);
    total += bytes;
    printf("%10s  %s\n", size_text(bytes, size), all.paths.p[i]);
    free(all.paths.p[i]);
  }
  if (!r && !w->dry)
    r = request_gc(w, false, NULL);
  if (!r)
    printf("%s %zu things, %s\n", w->dry ? "would remove" : "removed", all.paths.n, size_text(total, size));
  vec_free(&all.paths);
  return r;
}

static const struct {
  const char *name;
  int words, most; /* behind the verb */
  int (*run)(struct words *w);
} verbs[] = {{"list", 0, 0, list},         {"show", 1, 1, show},       {"history", 1, 1, history},
             {"rollback", 2, 2, rollback}, {"tag", 2, 100, tag_build}, {"untag", 2, 100, untag},
             {"diff", 2, 2, diff},         {"export", 2, 2, export},   {"import", 2, 2, import},
             {"build", 1, 10000, build},   {"delete", 1, 1, delete},   {"gc", 0, 0, gc},
             {"log", 1, 2, build_log},     {"cancel", 1, 2, cancel},   {"make", 1, 100, make}};

static int run(struct words *w)
{
  const char *names[ARRAY_LEN(verbs)];
  for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
    names[i] = verbs[i].name;
    if (strcmp(verbs[i].name, w->argv[1]))
      continue;
    if (w->argc - 2 < verbs[i].words || w->argc - 2 > verbs[i].most)
      return err_set(w->err, -EINVAL, "'template %s' takes other arguments; see cloche template --help", w->argv[1]);
    return verbs[i].run(w);
  }
  const char *near = did_you_mean(w->argv[1], names, ARRAY_LEN(names));
  return near ? err_set(w->err, -EINVAL, "no verb '%s'; did you mean '%s'?", w->argv[1], near)
              : err_set(w->err, -EINVAL, "no verb '%s'; see cloche template --help", w->argv[1]);
}

static void take_flags(struct words *w, int *argc, char **argv, char team[UUID_SIZE])
{
  int to = 1;
  for (int i = 1; i < *argc; i++) {
    if (!strcmp(argv[i], "--team") && i + 1 < *argc)
      str_copyz(str_of(argv[++i]), team, UUID_SIZE);
    else if (!strcmp(argv[i], "--json"))
      w->json = true;
    else if (!strcmp(argv[i], "--dry-run"))
      w->dry = true;
    else if (!strcmp(argv[i], "--gzip"))
      w->gzip = true;
    else if (!strcmp(argv[i], "--all"))
      w->all = true;
    else
      argv[to++] = argv[i];
  }
  *argc = to;
}

int template_main(int argc, char **argv)
{
  struct line l;
  struct err err = ERR_NONE;
  char team[UUID_SIZE] = "";
  struct words w = {.l = &l, .team = team, .err = &err};
  if (argc < 2 || !strcmp(argv[1], "--help")) {
    puts(help);
    return argc < 2 ? 2 : 0;
  }
  take_flags(&w, &argc, argv, team);
  int r = admin_open(&l, &argc, argv, &err);
  w.argc = argc;
  w.argv = argv;
  r = r ? r : argc < 2 ? err_set(&err, -EINVAL, "a verb is missing; see cloche template --help") : run(&w);
  admin_close(&l);
  bool unknown = r == -ENOENT && str_starts(str_of(err.msg), STR("template '"));
  return r ? usage_error("%s%s", err.msg, unknown ? "; cloche template list names all" : ""), 1 : 0;
}
