/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox_commands.c - `cloche new` and `snapshot`, and the remote forms of `ps`, `kill`, `pause`, `resume` and `fork`.
 */
#include "cli/remote/commands.h"
#include "cli/remote/remote.h"

#include <stdio.h>

#define PAGE       100
#define LIFE       3600 /* of resumed and copied sandboxes, as the local forms give them */
#define FORKS_MOST 100
#define PAIRS_MOST 256

/* ---- ps ---- */

/* Seconds from one time to another; -1 when one of them can't be read. */
static int64_t seconds_between(const char *from, const char *to)
{
  int64_t a = clock_wall_us(), b = a;
  if ((from && clock_parse(str_of(from), &a)) || (to && clock_parse(str_of(to), &b)))
    return -1;
  return (b - a) / 1000000;
}

static void add_duration(struct table *t, int64_t seconds)
{
  cleanup_buf struct buf b = BUF_INIT(64);
  duration_text(&b, seconds);
  table_add(t, buf_z(&b));
}

static void add_box(struct table *t, const struct cloche_box_info *box)
{
  bool running = box->state && !strcmp(box->state, "running");
  table_add(t, box->id);
  table_add(t, box->state ? box->state : "");
  table_add(t, box->alias && *box->alias ? box->alias : box->template_id ? box->template_id : "");
  add_duration(t, box->started_at ? seconds_between(box->started_at, NULL) : -1);
  add_duration(t, running && box->end_at ? seconds_between(NULL, box->end_at) : -1);
}

static int list_all(struct remote *r, struct table *table, struct jw *json)
{
  cleanup_free char *next = NULL;
  do {
    struct cloche_box_list *list = NULL;
    if (cloche_list(r->client, CLOCHE_WITH(cloche_list, .limit = PAGE, .next = next), &list, NULL, &r->error))
      return remote_failed(r, NULL);
    for (size_t i = 0; i < list->count; i++) {
      if (table)
        add_box(table, &list->items[i]);
      else
        jw_raw(json, str_of(list->items[i].raw));
    }
    free(next);
    next = list->next ? xstrdup(list->next) : NULL;
    cloche_free(list);
  } while (next);
  return 0;
}

static int ps_run(struct args *args)
{
  static const char *const heads[] = {"ID", "STATE", "TEMPLATE", "AGE", "LEFT"};
  struct remote r;
  struct table table = {.columns = ARRAY_LEN(heads)};
  cleanup_buf struct buf out = BUF_INIT(PRINT_MAX);
  struct jw json = JW(&out);
  int status = remote_open(args, &r);
  if (status)
    return status;
  if (args->json)
    jw_open(&json, '[');
  for (size_t i = 0; i < ARRAY_LEN(heads); i++)
    table_add(&table, heads[i]);
  status = list_all(&r, args->json ? NULL : &table, &json);
  if (args->json) {
    jw_close(&json, ']');
    buf_addc(&out, '\n');
  } else {
    table_print(&table, &out);
  }
  status = status ? status : print_out(&out);
  table_free(&table);
  remote_close(&r);
  return status;
}

/* ---- one request for each sandbox ---- */

typedef enum cloche_code verb_fn(struct remote *r, const struct args *args, const char *id);

static int each_box(const struct args *args, verb_fn *verb)
{
  struct remote r;
  int status = remote_open(args, &r), worst = 0;
  if (status)
    return status;
  for (size_t i = 0; i < args->word_count; i++)
    if (verb(&r, args, args->words[i]))
      worst = r.error.code ? remote_failed(&r, args->words[i]) : EXIT_FAILED; /* else it was told already */
  remote_close(&r);
  return worst;
}

static enum cloche_code kill_one(struct remote *r, const struct args *args, const char *id)
{
  bool existed = true;
  enum cloche_code code = cloche_kill(r->client, id, &existed, NULL, &r->error);
  if (code || existed)
    return code;
  complain("%s: no such sandbox", id);
  return CLOCHE_ENOTFOUND;
}

static enum cloche_code pause_one(struct remote *r, const struct args *args, const char *id)
{
  return cloche_pause(r->client, id, CLOCHE_WITH(cloche_pause, .without_memory = args->cold), NULL, NULL, &r->error);
}

static enum cloche_code resume_one(struct remote *r, const struct args *args, const char *id)
{
  struct cloche_box *box = NULL;
  enum cloche_code code = cloche_resume(
      r->client, id, CLOCHE_WITH(cloche_connect, .timeout_s = LIFE, .reboot = args->cold), &box, NULL, &r->error);
  cloche_box_free(box);
  return code;
}

static int kill_run(struct args *args)
{
  return each_box(args, kill_one);
}

static int pause_run(struct args *args)
{
  return each_box(args, pause_one);
}

static int resume_run(struct args *args)
{
  return each_box(args, resume_one);
}

/* ---- new, fork, snapshot: they print an ID ---- */

static int print_ids(const struct args *args, const char *const *ids, size_t n, const char *key)
{
  cleanup_buf struct buf out = BUF_INIT(PRINT_MAX);
  struct jw w = JW(&out);
  if (args->json)
    jw_open(&w, '[');
  for (size_t i = 0; i < n; i++) {
    if (args->json) {
      jw_open(&w, '{');
      jw_key(&w, key);
      jw_z(&w, ids[i]);
      jw_close(&w, '}');
    } else {
      text_clean(&out, str_of(ids[i]), 0);
      buf_addc(&out, '\n');
    }
  }
  if (args->json) {
    jw_close(&w, ']');
    buf_addc(&out, '\n');
  }
  return print_out(&out);
}

/* NAME=VALUE of the options of one name. */
static int take_pairs(struct args *args, const char *option, struct cloche_pair *pairs, size_t *count)
{
  for (size_t i = 0; i < args->given.n; i++) {
    if (strcmp(args->given.p[i].name, option) != 0)
      continue;
    char *equals = strchr(args->given.p[i].value, '=');
    if (!equals || equals == args->given.p[i].value)
      return complain("--%s needs NAME=VALUE, not '%s'", option, args->given.p[i].value), EXIT_USAGE;
    if (*count == PAIRS_MOST)
      return complain("at most %d times --%s", PAIRS_MOST, option), EXIT_USAGE;
    *equals = 0; /* of argv, which is ours */
    pairs[(*count)++] = (struct cloche_pair){args->given.p[i].value, equals + 1};
  }
  return 0;
}

static int new_run(struct args *args)
{
  struct remote r;
  struct cloche_box *box = NULL;
  struct cloche_pair envs[PAIRS_MOST], metadata[PAIRS_MOST];
  size_t env_count = 0, metadata_count = 0;
  int status = take_pairs(args, "env", envs, &env_count);
  status = status ? status : take_pairs(args, "metadata", metadata, &metadata_count);
  status = status ? status : remote_open(args, &r);
  if (status)
    return status;
  const struct cloche_network network = {.size = sizeof(network), .no_internet = true};
  const struct cloche_create options = {.size = sizeof(options),
                                        .template_id = args->word_count ? args->words[0] : NULL,
                                        .timeout_s = (int)args->seconds,
                                        .envs = envs,
                                        .env_count = env_count,
                                        .metadata = metadata,
                                        .metadata_count = metadata_count,
                                        .network = args->no_internet ? &network : NULL,
                                        .pause_on_timeout = args->keep || args->auto_resume,
                                        .resume_on_traffic = args->auto_resume};
  if (cloche_create(r.client, &options, &box, NULL, &r.error)) {
    status = remote_failed(&r, args->word_count ? args->words[0] : NULL);
  } else {
    const char *id = cloche_box_id(box);
    status = print_ids(args, &id, 1, "sandboxID");
  }
  cloche_box_free(box);
  remote_close(&r);
  return status;
}

static int print_forks(const struct args *args, const struct cloche_fork_list *list)
{
  const char *ids[FORKS_MOST] = {0};
  size_t n = 0;
  int status = 0;
  for (size_t i = 0; i < list->count && n < ARRAY_LEN(ids); i++) {
    if (list->items[i].box)
      ids[n++] = cloche_box_id(list->items[i].box);
    else
      status = complain("%s", list->items[i].error ? list->items[i].error : "a copy failed");
  }
  int printed = print_ids(args, ids, n, "sandboxID");
  for (size_t i = 0; i < list->count; i++)
    cloche_box_free(list->items[i].box);
  return status ? status : printed;
}

static int fork_run(struct args *args)
{
  struct remote r;
  struct cloche_fork_list *list = NULL;
  uint64_t count = 1;
  if (args->word_count > 1 && (str_u64(str_of(args->words[1]), &count) || count < 1 || count > FORKS_MOST))
    return complain("expected how many copies, from 1 to %d, not '%s'", FORKS_MOST, args->words[1]), EXIT_USAGE;
  int status = remote_open(args, &r);
  if (status)
    return status;
  if (cloche_fork(r.client, args->words[0], (int)count, LIFE, &list, NULL, &r.error))
    status = remote_failed(&r, args->words[0]);
  else
    status = print_forks(args, list);
  cloche_free(list);
  remote_close(&r);
  return status;
}

static int snapshot_run(struct args *args)
{
  struct remote r;
  struct cloche_snapshot *snapshot = NULL;
  int status = remote_open(args, &r);
  if (status)
    return status;
  if (cloche_snapshot(r.client, args->words[0],
                      CLOCHE_WITH(cloche_snapshot_options, .name = args->name, .without_memory = args->cold), &snapshot,
                      NULL, &r.error))
    status = remote_failed(&r, args->words[0]);
  else
    status = print_ids(args, &snapshot->id, 1, "snapshotID");
  cloche_free(snapshot);
  remote_close(&r);
  return status;
}

/* ---- tables ---- */

#define COLD_OPTION(text)                                                                                              \
  {                                                                                                                    \
    "cold", 0, NULL, text, OPTION_FLAG, offsetof(struct args, cold), 0, 0                                              \
  }

static const struct option_spec pause_options[] = {COLD_OPTION("keep files alone, not memory")};
static const struct option_spec resume_options[] = {COLD_OPTION("start from the files alone")};
static const struct option_spec snapshot_options[] = {
    {"name", 0, "NAME", "a name for the snapshot", OPTION_TEXT, offsetof(struct args, name), 0, 0},
    COLD_OPTION("keep files alone, not memory"),
};
static const struct option_spec new_options[] = {
    {"timeout", 't', "SECONDS", "it lives so long [300]", OPTION_NUMBER, offsetof(struct args, seconds), 1, 2592000},
    {"keep", 0, NULL, "pause it at the end of that time instead of ending it", OPTION_FLAG, offsetof(struct args, keep),
     0, 0},
    {"auto-resume", 0, NULL, "the same, and requests to it resume it", OPTION_FLAG, offsetof(struct args, auto_resume),
     0, 0},
    {"env", 'e', "NAME=VALUE", "a variable of its processes; may be given again", OPTION_MANY, 0, 0, 0},
    {"metadata", 'm', "NAME=VALUE", "shown in lists and events; may be given again", OPTION_MANY, 0, 0, 0},
    {"no-internet", 0, NULL, "it reaches nothing outside", OPTION_FLAG, offsetof(struct args, no_internet), 0, 0},
};

const struct command_spec new_spec = {
    .name = "new",
    .summary = "create a sandbox and print its ID",
    .usage = "[TEMPLATE]",
    .text = "The template is a name, name:tag, an ID or a snapshot [code-interpreter-v1].",
    .options = new_options,
    .option_count = ARRAY_LEN(new_options),
    .most_words = 1,
    .run = new_run,
};
const struct command_spec ps_spec = {
    .name = "ps",
    .summary = "list sandboxes",
    .usage = "",
    .text = "Lists the running and paused sandboxes of the key's team.",
    .run = ps_run,
};
const struct command_spec kill_spec = {
    .name = "kill",
    .summary = "end sandboxes",
    .usage = "ID...",
    .text = "Ends sandboxes, also paused ones.",
    .least_words = 1,
    .most_words = SIZE_MAX,
    .run = kill_run,
};
const struct command_spec pause_spec = {
    .name = "pause",
    .summary = "pause sandboxes",
    .usage = "ID...",
    .text = "Keeps memory and files until they are resumed.",
    .options = pause_options,
    .option_count = ARRAY_LEN(pause_options),
    .least_words = 1,
    .most_words = SIZE_MAX,
    .run = pause_run,
};
const struct command_spec resume_spec = {
    .name = "resume",
    .summary = "resume paused sandboxes",
    .usage = "ID...",
    .text = "They live for another hour.",
    .options = resume_options,
    .option_count = ARRAY_LEN(resume_options),
    .least_words = 1,
    .most_words = SIZE_MAX,
    .run = resume_run,
};
const struct command_spec fork_spec = {
    .name = "fork",
    .summary = "copy a running sandbox",
    .usage = "ID [COUNT]",
    .text = "Prints the IDs of the copies, which live for an hour.",
    .least_words = 1,
    .most_words = 2,
    .run = fork_run,
};
const struct command_spec snapshot_spec = {
    .name = "snapshot",
    .summary = "keep a sandbox's state to create others from",
    .usage = "ID",
    .text = "Prints an ID that 'cloche new' takes as a template.",
    .options = snapshot_options,
    .option_count = ARRAY_LEN(snapshot_options),
    .least_words = 1,
    .most_words = 1,
    .run = snapshot_run,
};
