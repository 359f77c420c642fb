/* SPDX-License-Identifier: Apache-2.0 */
/* template_commands.c - the remote form of `cloche template`: templates of a team on a named server, their builds and
 * tags. What needs the server's own disk (export, import, make, gc) is the local form's. */
#include "cli/remote/ask.h"
#include "cli/remote/commands.h"
#include "cli/remote/progress.h"

#include <stdio.h>
#include <time.h>

#define POLL_NS    500000000
#define TAGS_MOST  100
#define NAME_MOST  512
#define DOCKER_MAX ((size_t)1 << 20)

/* ---- which one ---- */

/* "name:tag" as its parts; the tag "default" where there is none. */
static int split_ref(const char *ref, char name[NAME_MOST], char tag[NAME_MOST])
{
  struct str head = str_of(ref), rest = STR("default");
  str_cut(str_of(ref), ':', &head, &rest);
  if (!rest.n)
    rest = STR("default");
  if (!head.n || str_copyz(head, name, NAME_MOST) || str_copyz(rest, tag, NAME_MOST))
    return complain("'%s' is no template: NAME, NAME:TAG or NAME:BUILD", ref), EXIT_USAGE;
  return 0;
}

/* The ID of a name; an ID stays one. */
static int find_id(struct remote *r, const struct args *args, const char *name, char id[NAME_MOST])
{
  cleanup_answer struct answer a = {0};
  cleanup_free char *path = path_of("/templates/aliases/{}", name);
  bool missing;
  int status = ask_whether(r, args, "GET", path, name, &a, &missing);
  struct str found = missing ? str_of(name) : json_text(json_get(a.json, "templateID"), str_of(name));
  return status ? status : str_copyz(found, id, NAME_MOST) ? complain("%s: the name is too long", name) : 0;
}

static int find_template(struct remote *r, const struct args *args, const char *name, char id[NAME_MOST],
                         struct answer *out)
{
  int status = find_id(r, args, name, id);
  cleanup_free char *path = path_of("/templates/{}", id);
  return status ? status : ask(r, args, "GET", path, NULL, name, out);
}

/* The build that a word behind NAME: means: a tag, an ID or the beginning of one. */
static int find_build(const struct answer *t, const struct answer *tags, const char *word, char build[NAME_MOST])
{
  size_t found = 0;
  for (const struct json *x = tags->json ? tags->json->kids : NULL; x; x = x->next)
    if (str_is(json_text(json_get(x, "tag"), STR_NONE), word))
      return str_copyz(json_text(json_get(x, "buildID"), STR_NONE), build, NAME_MOST);
  const struct json *builds = json_get(t->json, "builds");
  for (const struct json *b = builds ? builds->kids : NULL; b; b = b->next) {
    struct str id = json_text(json_get(b, "buildID"), STR_NONE);
    if (!str_starts(id, str_of(word)))
      continue;
    found++;
    str_copyz(id, build, NAME_MOST);
  }
  if (found == 1)
    return 0;
  return found ? complain("'%s' is the beginning of %zu builds: give more of it", word, found)
               : complain("no tag and no build '%s'; 'cloche template history' lists them", word);
}

struct place_of_build {
  char name[NAME_MOST], tag[NAME_MOST], id[NAME_MOST], build[NAME_MOST];
};

static int find_place(struct remote *r, const struct args *args, const char *ref, struct place_of_build *p)
{
  cleanup_answer struct answer t = {0}, tags = {0};
  int status = split_ref(ref, p->name, p->tag);
  status = status ? status : find_template(r, args, p->name, p->id, &t);
  if (status)
    return status;
  cleanup_free char *path = path_of("/templates/{}/tags", p->id);
  status = ask(r, args, "GET", path, NULL, ref, &tags);
  return status ? status : find_build(&t, &tags, p->tag, p->build);
}

/* ---- looking ---- */

static int list_run(struct args *args)
{
  static const struct column columns[] = {{"NAME", "names", COLUMN_FIRST},        {"ID", "templateID", COLUMN_TEXT},
                                          {"STATE", "buildStatus", COLUMN_TEXT},  {"CPUS", "cpuCount", COLUMN_TEXT},
                                          {"MEMORY MB", "memoryMB", COLUMN_TEXT}, {"BUILDS", "buildCount", COLUMN_TEXT},
                                          {"STARTED", "spawnCount", COLUMN_TEXT}, {"PUBLIC", "public", COLUMN_TEXT},
                                          {"CHANGED", "updatedAt", COLUMN_AGE}};
  struct remote r;
  cleanup_answer struct answer own = {0}, shared = {0};
  int status = remote_open(args, &r);
  if (status)
    return status;
  status = ask(&r, args, "GET", "/templates", NULL, NULL, &own);
  status = status ? status : ask(&r, args, "GET", "/default-templates", NULL, NULL, &shared);
  if (!status) { /* own ones first, then those that all teams have, as one list */
    cleanup_buf struct buf text = BUF_INIT(PRINT_MAX);
    struct json_error why;
    struct jw w = JW(&text);
    jw_open(&w, '[');
    for (int i = 0; i < 2; i++)
      for (const struct json *t = (i ? shared.json : own.json)->kids; t; t = t->next)
        jw_value(&w, t);
    jw_close(&w, ']');
    struct cloche_text both = {.data = buf_z(&text), .len = text.n}, *was = own.text;
    own.json = json_read(&own.arena, buf_str(&text), 0, &why);
    own.text = &both;
    status = own.json ? print_rows(args, &own, columns, ARRAY_LEN(columns)) : complain("the lists are too long");
    own.text = was;
  }
  remote_close(&r);
  return status;
}

static int show_run(struct args *args)
{
  static const struct column columns[] = {
      {"NAMES", "names", COLUMN_TEXT},       {"ID", "templateID", COLUMN_TEXT},
      {"PUBLIC", "public", COLUMN_TEXT},     {"CREATED", "createdAt", COLUMN_TIME},
      {"CHANGED", "updatedAt", COLUMN_TIME}, {"STARTED", "spawnCount", COLUMN_TEXT}};
  struct remote r;
  cleanup_answer struct answer a = {0};
  char id[NAME_MOST];
  int status = remote_open(args, &r);
  if (status)
    return status;
  status = find_template(&r, args, args->words[0], id, &a);
  status = status ? status : print_object(args, &a, columns, ARRAY_LEN(columns));
  remote_close(&r);
  return status;
}

static void add_tags(struct buf *out, const struct json *tags, struct str build)
{
  for (const struct json *x = tags ? tags->kids : NULL; x; x = x->next)
    if (str_eq(json_text(json_get(x, "buildID"), STR_NONE), build))
      buf_addf(out, "%s" STR_FMT, out->n ? " " : "", STR_ARG(json_text(json_get(x, "tag"), STR_NONE)));
}

static int print_history(const struct args *args, const struct answer *t, const struct answer *tags)
{
  static const char *const heads[] = {"BUILD", "STATE", "BEGAN", "TAGS"};
  struct table table = {.columns = ARRAY_LEN(heads)};
  cleanup_buf struct buf out = BUF_INIT(PRINT_MAX), json = BUF_INIT(PRINT_MAX);
  struct jw w = JW(&json);
  const struct json *builds = json_get(t->json, "builds");
  for (size_t i = 0; i < ARRAY_LEN(heads); i++)
    table_add(&table, heads[i]);
  jw_open(&w, '[');
  for (const struct json *b = builds ? builds->kids : NULL; b; b = b->next) {
    cleanup_buf struct buf names = BUF_INIT(65536);
    const char *const keys[] = {"buildID", "status", "createdAt"};
    struct str id = json_text(json_get(b, "buildID"), STR_NONE);
    add_tags(&names, tags->json, id);
    jw_open(&w, '{');
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
      struct str v = json_text(json_get(b, keys[i]), STR_NONE);
      cleanup_free char *text = xstrndup(v.p ? v.p : "", i == 2 ? MIN(v.n, (size_t)19) : v.n);
      table_add(&table, text);
      jw_key(&w, keys[i]);
      jw_str(&w, v);
    }
    table_add(&table, buf_z(&names));
    jw_key(&w, "tags");
    jw_open(&w, '[');
    for (const struct json *x = tags->json ? tags->json->kids : NULL; x; x = x->next)
      if (str_eq(json_text(json_get(x, "buildID"), STR_NONE), id))
        jw_str(&w, json_text(json_get(x, "tag"), STR_NONE));
    jw_close(&w, ']');
    jw_close(&w, '}');
  }
  jw_close(&w, ']');
  buf_addc(&json, '\n');
  table_print(&table, &out);
  table_free(&table);
  return print_out(args->json ? &json : &out);
}

static int history_run(struct args *args)
{
  struct remote r;
  cleanup_answer struct answer t = {0}, tags = {0};
  char id[NAME_MOST];
  int status = remote_open(args, &r);
  if (status)
    return status;
  status = find_template(&r, args, args->words[0], id, &t);
  if (!status) {
    cleanup_free char *path = path_of("/templates/{}/tags", id);
    status = ask(&r, args, "GET", path, NULL, args->words[0], &tags);
  }
  status = status ? status : print_history(args, &t, &tags);
  remote_close(&r);
  return status;
}

/* The members of each row in their order, "-" for one that is missing. */
static void print_parts(struct buf *out, const struct json *list, const char *const *keys, size_t n)
{
  for (const struct json *row = list ? list->kids : NULL; row; row = row->next)
    for (size_t i = 0; i < n; i++) {
      struct str v = json_text(json_get(row, keys[i]), STR_NONE);
      text_clean(out, v.n || i + 1 == n ? v : STR("-"), 0);
      buf_addc(out, i + 1 < n ? ' ' : '\n');
    }
}

static int diff_run(struct args *args)
{
  struct remote r;
  struct place_of_build from, to;
  cleanup_answer struct answer a = {0};
  cleanup_buf struct buf out = BUF_INIT(PRINT_MAX);
  int status = remote_open(args, &r);
  if (status)
    return status;
  status = find_place(&r, args, args->words[0], &from);
  status = status ? status : find_place(&r, args, args->words[1], &to);
  if (!status && strcmp(from.id, to.id) != 0)
    status = (complain("builds of one template can be compared, not of two: %s, %s", from.name, to.name), EXIT_USAGE);
  if (!status) {
    cleanup_free char *path = path_of("/templates/{}/builds/{}/diff?from={}", to.id, to.build, from.build);
    status = ask(&r, args, "GET", path, NULL, args->words[1], &a);
  }
  if (!status && args->json) {
    status = print_answer(args, &a, NULL);
  } else if (!status) {
    static const char *const package[] = {"manager", "name", "from", "to"}, *const file[] = {"change", "path",
                                                                                             "detail"};
    print_parts(&out, json_get(a.json, "packages"), package, ARRAY_LEN(package));
    print_parts(&out, json_get(a.json, "files"), file, ARRAY_LEN(file));
    status = print_out(&out);
  }
  remote_close(&r);
  return status;
}

/* ---- changing ---- */

/* Words as an array that ends with NULL. */
static int tags_of(const struct args *args, const char *tags[TAGS_MOST + 1])
{
  if (args->word_count - 1 > TAGS_MOST)
    return complain("at most %d tags at once", TAGS_MOST), EXIT_USAGE;
  for (size_t i = 1; i < args->word_count; i++)
    tags[i - 1] = args->words[i];
  tags[args->word_count - 1] = NULL;
  return 0;
}

static int tag_or_untag(struct args *args, bool untag)
{
  struct remote r;
  const char *tags[TAGS_MOST + 1];
  int status = tags_of(args, tags);
  status = status ? status : remote_open(args, &r);
  if (status)
    return status;
  enum cloche_code code = untag ? cloche_tags_remove(r.client, args->words[0], tags, NULL, &r.error)
                                : cloche_tags_assign(r.client, args->words[0], tags, NULL, &r.error);
  if (code)
    status = remote_failed(&r, args->words[0]);
  else if (args->json)
    puts("{}");
  remote_close(&r);
  return status;
}

static int tag_run(struct args *args)
{
  return tag_or_untag(args, false);
}

static int untag_run(struct args *args)
{
  return tag_or_untag(args, true);
}

/* The build that the tag pointed to before the one it points to now. */
static int previous_build(struct remote *r, const struct args *args, const struct place_of_build *p,
                          char build[NAME_MOST])
{
  cleanup_answer struct answer a = {0};
  cleanup_free char *path = path_of("/templates/{}/tags/{}/assignments", p->id, p->tag);
  int status = ask(r, args, "GET", path, NULL, p->name, &a);
  const struct json *list = a.json && a.json->type == JSON_ARRAY ? a.json : json_get(a.json, "data");
  for (const struct json *x = list ? list->kids : NULL; !status && x; x = x->next) {
    struct str id = json_text(json_get(x, "buildId"), STR_NONE);
    if (id.n && !str_is(id, p->build))
      return str_copyz(id, build, NAME_MOST);
  }
  return status ? status : complain("%s:%s has pointed to one build only", p->name, p->tag);
}

static int rollback_run(struct args *args)
{
  struct remote r;
  struct place_of_build p;
  char build[NAME_MOST];
  int status = remote_open(args, &r);
  if (status)
    return status;
  status = find_place(&r, args, args->words[0], &p);
  if (!status && !strcmp(args->words[1], "previous")) {
    status = previous_build(&r, args, &p, build);
  } else if (!status) {
    cleanup_answer struct answer t = {0}, none = {0};
    status = find_template(&r, args, p.name, p.id, &t);
    status = status ? status : find_build(&t, &none, args->words[1], build);
  }
  if (!status) {
    cleanup_free char *target = xasprintf("%s:%s", p.name, build);
    const char *tags[] = {p.tag, NULL};
    status = cloche_tags_assign(r.client, target, tags, NULL, &r.error) ? remote_failed(&r, target) : 0;
  }
  if (!status && args->json)
    printf("{\"tag\":\"%s\",\"buildID\":\"%s\"}\n", p.tag, build);
  else if (!status)
    printf("%s:%s is %s now\n", p.name, p.tag, build);
  remote_close(&r);
  return status;
}

static int delete_run(struct args *args)
{
  struct remote r;
  bool existed = true;
  int status = remote_open(args, &r);
  if (status)
    return status;
  if (cloche_template_delete(r.client, args->words[0], &existed, NULL, &r.error))
    status = remote_failed(&r, args->words[0]);
  else if (!existed)
    status = complain("%s: no such template", args->words[0]);
  else if (args->json)
    puts("{}");
  remote_close(&r);
  return status;
}

static int publish(struct args *args, const char *body)
{
  struct remote r;
  cleanup_answer struct answer a = {0};
  char id[NAME_MOST];
  int status = remote_open(args, &r);
  if (status)
    return status;
  status = find_id(&r, args, args->words[0], id);
  if (!status) {
    cleanup_free char *path = path_of("/v2/templates/{}", id);
    status = ask(&r, args, "PATCH", path, body, args->words[0], &a);
  }
  status = status ? status : print_answer(args, &a, NULL);
  remote_close(&r);
  return status;
}

static int publish_run(struct args *args)
{
  return publish(args, "{\"public\":true}");
}

static int unpublish_run(struct args *args)
{
  return publish(args, "{\"public\":false}");
}

/* ---- building ---- */

struct build {
  struct progress progress;
  uint64_t steps, done; /* of the recipe; those that began */
  bool json, quiet;
  char last[128];
};

static void print_entry(bool json, const struct cloche_build_entry *e)
{
  cleanup_buf struct buf out = BUF_INIT(PRINT_MAX);
  struct jw w = JW(&out);
  if (json) {
    const struct cloche_pair members[] = {
        {"timestamp", e->timestamp}, {"level", e->level}, {"step", e->step}, {"message", e->message}};
    jw_open(&w, '{');
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
      jw_key(&w, members[i].name);
      jw_z(&w, members[i].value ? members[i].value : "");
    }
    jw_close(&w, '}');
  } else {
    text_clean(&out, str_trim(str_of(e->message)), CLEAN_LINES | CLEAN_COLOURS);
  }
  buf_addc(&out, '\n');
  print_out(&out);
}

static int on_log(const struct cloche_build_entry *e, void *user)
{
  struct build *b = user;
  if (e->step && *e->step && strcmp(e->step, b->last) != 0) {
    b->done++;
    snprintf(b->last, sizeof(b->last), "%s", e->step);
  }
  progress_end(&b->progress);
  print_entry(b->json, e);
  progress_steps(&b->progress, b->done ? b->done - 1 : 0, MAX(b->steps, b->done), str_of(e->message));
  return 0;
}

static int put_copy(struct cloche_recipe *recipe, const char *word)
{
  cleanup_free char *from = xstrdup(word);
  char *to = strrchr(from, ':');
  if (!to || to == from || !to[1])
    return complain("--copy needs SOURCE:DESTINATION, not '%s'", word), EXIT_USAGE;
  *to = 0;
  return cloche_recipe_copy(recipe, from, to + 1, NULL, NULL) ? complain("no memory") : 0;
}

static int put_env(struct cloche_recipe *recipe, const char *word)
{
  cleanup_free char *name = xstrdup(word);
  char *value = strchr(name, '=');
  if (!value || value == name)
    return complain("--env needs NAME=VALUE, not '%s'", word), EXIT_USAGE;
  *value = 0;
  return cloche_recipe_env(recipe, name, value + 1) ? complain("no memory") : 0;
}

static int put_given(struct cloche_recipe *recipe, const struct given *g, bool *based)
{
  const char *v = g->value;
  if (!strcmp(g->name, "copy"))
    return put_copy(recipe, v);
  if (!strcmp(g->name, "env"))
    return put_env(recipe, v);
  bool base = !strcmp(g->name, "from") || !strcmp(g->name, "image");
  if (base && *based)
    return complain("'%s': a template begins with one thing, and another was named before", v), EXIT_USAGE;
  *based |= base;
  enum cloche_code code = !strcmp(g->name, "from")      ? cloche_recipe_from_template(recipe, v)
                          : !strcmp(g->name, "image")   ? cloche_recipe_from_image(recipe, v)
                          : !strcmp(g->name, "run")     ? cloche_recipe_run(recipe, v, NULL)
                          : !strcmp(g->name, "workdir") ? cloche_recipe_workdir(recipe, v)
                          : !strcmp(g->name, "user")    ? cloche_recipe_user(recipe, v)
                                                        : CLOCHE_OK;
  return code ? complain("--%s %s: %s", g->name, v, cloche_code_name(code)) : 0;
}

/* What the (only) FROM of a Dockerfile names; empty: nothing. */
static struct str base_of(struct str text)
{
  struct str line, word, rest = STR_NONE;
  while (text.n) {
    str_cut(text, '\n', &line, &text);
    line = str_trim(line);
    if (str_istarts(line, STR("from ")) && !rest.n)
      rest = str_trim(str_skip(line, 5));
  }
  str_cut(rest, ' ', &word, &rest);
  return word;
}

/* A name of a template comes before that of an image, as in builds on the server itself. */
static int use_template(struct remote *r, struct cloche_recipe *recipe, struct str base)
{
  cleanup_free char *name = xstrndup(base.p ? base.p : "", base.n);
  bool there = false;
  if (!base.n || cloche_template_exists(r->client, name, &there, NULL, NULL) || !there)
    return 0;
  return cloche_recipe_from_template(recipe, name) ? complain("no memory") : 0;
}

static int put_dockerfile(struct remote *r, struct cloche_recipe *recipe, const struct args *args)
{
  cleanup_buf struct buf text = BUF_INIT(DOCKER_MAX);
  int e = file_read(args->file, &text);
  if (e)
    return complain("%s: %s", args->file, strerror(-e));
  struct str dir = path_dir(str_of(args->file));
  cleanup_free char *beside = xstrndup(dir.n ? dir.p : ".", dir.n ? dir.n : 1);
  if (cloche_recipe_context(recipe, args->context ? args->context : beside) ||
      cloche_recipe_dockerfile(recipe, buf_z(&text), &r->error))
    return remote_failed(r, args->file);
  return use_template(r, recipe, base_of(buf_str(&text)));
}

static int make_recipe(struct remote *r, const struct args *args, struct cloche_recipe *recipe, uint64_t *steps)
{
  bool based = args->file != NULL;
  int status = args->file ? put_dockerfile(r, recipe, args) : 0;
  if (!status && args->context && !args->file && cloche_recipe_context(recipe, args->context))
    status = complain("no memory");
  for (size_t i = 0; !status && i < args->given.n; i++) {
    status = !strcmp(args->given.p[i].name, "tag") ? 0 : put_given(recipe, &args->given.p[i], &based);
    *steps += !strcmp(args->given.p[i].name, "run") || !strcmp(args->given.p[i].name, "copy");
  }
  if (!status && !based && cloche_recipe_from_template(recipe, "base"))
    status = complain("no memory");
  if (!status && (args->start || args->ready) && cloche_recipe_start(recipe, args->start, args->ready))
    status = complain("no memory");
  return status;
}

static int build_it(struct remote *r, const struct args *args, struct cloche_recipe *recipe, uint64_t steps)
{
  struct build b = {.steps = steps, .json = args->json};
  const char *tags[TAGS_MOST + 1] = {0};
  struct cloche_build_info *info = NULL;
  size_t n = 1; /* --tag is one more, not another one than the name's or default */
  const char *own = strchr(args->words[0], ':');
  tags[0] = own ? own + 1 : "default";
  for (size_t i = 0; i < args->given.n && n < TAGS_MOST; i++)
    if (!strcmp(args->given.p[i].name, "tag"))
      tags[n++] = args->given.p[i].value;
  const struct cloche_build options = {.size = sizeof(options),
                                       .tags = n > 1 ? tags : NULL,
                                       .cpu_count = (int)args->cpus,
                                       .memory_mb = (int)args->memory,
                                       .force = args->no_cache,
                                       .isolation = args->isolation,
                                       .on_log = on_log,
                                       .user = &b};
  progress_begin(&b.progress, str_of(args->words[0]));
  enum cloche_code code = cloche_build(r->client, recipe, args->words[0], &options, &info, NULL, &r->error);
  progress_end(&b.progress);
  if (code)
    return remote_failed(r, args->words[0]);
  if (args->json)
    printf("{\"templateID\":\"%s\",\"buildID\":\"%s\",\"status\":\"ready\"}\n", info->template_id, info->build_id);
  else
    printf("%s is ready: template %s, build %s\n", args->words[0], info->template_id, info->build_id);
  cloche_free(info);
  return 0;
}

static int build_run(struct args *args)
{
  struct remote r;
  struct cloche_recipe *recipe = cloche_recipe_new();
  uint64_t steps = 0;
  int status = remote_open(args, &r);
  if (!status) {
    status = make_recipe(&r, args, recipe, &steps);
    status = status ? status : build_it(&r, args, recipe, steps);
    remote_close(&r);
  }
  cloche_recipe_free(recipe);
  return status;
}

/* Prints what came since, until the build has ended. */
static int follow_log(struct remote *r, const struct args *args, const char *id, const char *build)
{
  for (int offset = 0;;) {
    struct cloche_build_info *info = NULL;
    if (cloche_build_status(r->client, id, build, offset, &info, NULL, &r->error))
      return remote_failed(r, build);
    for (size_t i = 0; i < info->log_count; i++)
      print_entry(args->json, &info->logs[i]);
    offset += (int)info->log_count;
    bool failed = !strcmp(info->status, "error"), more = info->log_count > 0;
    bool over = failed || !strcmp(info->status, "ready");
    if (over && !more && failed)
      complain("%s: %s", build, info->reason ? info->reason : "the build failed");
    cloche_free(info);
    if (over && !more)
      return failed ? EXIT_FAILED : 0;
    if (!more)
      nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
  }
}

static int log_run(struct args *args)
{
  struct remote r;
  cleanup_answer struct answer t = {0}, none = {0};
  char id[NAME_MOST], build[NAME_MOST] = "";
  int status = remote_open(args, &r);
  if (status)
    return status;
  status = find_template(&r, args, args->words[0], id, &t);
  const struct json *builds = json_get(t.json, "builds");
  if (!status && args->word_count > 1)
    status = find_build(&t, &none, args->words[1], build);
  else if (!status && builds && builds->kids)
    status = str_copyz(json_text(json_get(builds->kids, "buildID"), STR_NONE), build, sizeof(build));
  else if (!status)
    status = complain("%s has no build", args->words[0]);
  status = status ? status : follow_log(&r, args, id, build);
  remote_close(&r);
  return status;
}

/* ---- tables ---- */

#define STEP(name, value, text)                                                                                        \
  {                                                                                                                    \
    name, 0, value, text, OPTION_MANY, 0, 0, 0                                                                         \
  }
static const struct option_spec template_options[] = {
    {"file", 'f', "DOCKERFILE", "build: from a Dockerfile", OPTION_TEXT, offsetof(struct args, file), 0, 0},
    {"context", 0, "DIR", "build: where files to copy are [beside the Dockerfile, or here]", OPTION_TEXT,
     offsetof(struct args, context), 0, 0},
    STEP("from", "REF", "build: begin with a template [base]"),
    STEP("image", "IMAGE", "build: begin with an image of a registry"),
    STEP("run", "COMMAND", "build: a step; steps are done in the order given"),
    STEP("copy", "SOURCE:DEST", "build: a step that copies files"),
    STEP("env", "NAME=VALUE", "build: a step that sets a variable"),
    STEP("workdir", "DIR", "build: a step that changes the directory"),
    STEP("user", "NAME", "build: a step that changes the user"),
    STEP("tag", "TAG", "build: one more tag; may be given again"),
    {"start", 0, "COMMAND", "build: runs in every sandbox of the template", OPTION_TEXT, offsetof(struct args, start),
     0, 0},
    {"ready", 0, "COMMAND", "build: says when the start command is ready", OPTION_TEXT, offsetof(struct args, ready), 0,
     0},
    {"cpus", 0, "N", "build: processors of its sandboxes", OPTION_NUMBER, offsetof(struct args, cpus), 1, 1024},
    {"memory", 0, "MIB", "build: memory of its sandboxes", OPTION_NUMBER, offsetof(struct args, memory), 128, 1048576},
    {"isolation", 0, "TIER", "build: tier of its sandboxes, process or microvm [the team's]", OPTION_TEXT,
     offsetof(struct args, isolation), 0, 0},
    {"no-cache", 0, NULL, "build: take nothing from the cache", OPTION_FLAG, offsetof(struct args, no_cache), 0, 0},
};
static const struct verb_spec template_verbs[] = {
    {"list", "", "the team's templates, and those that all share", 0, 0, list_run},
    {"show", "NAME", "one of them", 1, 1, show_run},
    {"history", "NAME", "its builds, newest first, and their tags", 1, 1, history_run},
    {"build", "NAME[:TAG]", "build one; its log as it comes", 1, 1, build_run},
    {"log", "NAME [BUILD]", "the log of a build [the newest]; waits while it is at work", 1, 2, log_run},
    {"tag", "REF TAG...", "more tags for the build that REF names", 2, SIZE_MAX, tag_run},
    {"untag", "NAME TAG...", "remove tags; the build stays", 2, SIZE_MAX, untag_run},
    {"rollback", "NAME[:TAG] BUILD", "point a tag back to a build, or to 'previous'", 2, 2, rollback_run},
    {"diff", "REF REF", "packages, settings and files that differ between two builds", 2, 2, diff_run},
    {"publish", "NAME", "every team can use it", 1, 1, publish_run},
    {"unpublish", "NAME", "the team's own again", 1, 1, unpublish_run},
    {"delete", "NAME", "remove it with its builds", 1, 1, delete_run},
};
const struct command_spec template_spec = {
    .name = "template",
    .summary = "templates: build, tags, history, diff",
    .usage = "",
    .text = "REF is NAME, NAME:TAG or NAME:BUILD; a build may be shortened. A build prints its log; on a terminal the\n"
            "last line shows how far it is. Root on the server itself has more: export, import, make, gc, cancel.",
    .options = template_options,
    .option_count = ARRAY_LEN(template_options),
    .verbs = template_verbs,
    .verb_count = ARRAY_LEN(template_verbs),
};
