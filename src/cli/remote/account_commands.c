/* SPDX-License-Identifier: Apache-2.0 */
/* account_commands.c - what belongs to a team, of a named server: `cloche key`, `team`, `secret` and `open`; and what
 * its administrator sees: `cloche node`. A secret's value comes from a file, from standard input or from a prompt
 * without echo, never from an argument, which every process of the machine can read. */
#include "cli/remote/ask.h"
#include "cli/remote/commands.h"

#include <stdio.h>
#include <termios.h>

#define VALUE_MAX   65536
#define SECRET_PAGE 100

#define ADMIN_OPTION                                                                                                   \
  {                                                                                                                    \
    "admin-token", 0, "TOKEN", "the administrator's; better by the variable [CLOCHE_ADMIN_TOKEN]", OPTION_TEXT,        \
        offsetof(struct args, admin_token), 0, 0                                                                       \
  }

/* Opens, asks, prints a member of the answer or all of it. */
static int ask_once(const struct args *args, const char *method, const char *path, const char *body, const char *what,
                    const char *member)
{
  struct remote r;
  cleanup_answer struct answer a = {0};
  int status = remote_open(args, &r);
  if (status)
    return status;
  status = ask(&r, args, method, path, body, what, &a);
  status = status ? status : print_answer(args, &a, member);
  remote_close(&r);
  return status;
}

static int list_once(const struct args *args, const char *path, const struct column *columns, size_t n)
{
  struct remote r;
  cleanup_answer struct answer a = {0};
  int status = remote_open(args, &r);
  if (status)
    return status;
  status = ask(&r, args, "GET", path, NULL, NULL, &a);
  status = status ? status : print_rows(args, &a, columns, n);
  remote_close(&r);
  return status;
}

static void named_body(struct buf *out, const char *name)
{
  struct jw w = JW(out);
  jw_open(&w, '{');
  jw_key(&w, "name");
  jw_z(&w, name);
  jw_close(&w, '}');
}

/* ---- keys ---- */

static int key_list_run(struct args *args)
{
  static const struct column columns[] = {
      {"ID", "id", COLUMN_TEXT},          {"KEY", "mask.maskedValueSuffix", COLUMN_TEXT},
      {"AGE", "createdAt", COLUMN_AGE},   {"USED", "lastUsed", COLUMN_AGE},
      {"ENDS", "expiresAt", COLUMN_TIME}, {"NAME", "name", COLUMN_TEXT}};
  return list_once(args, "/api-keys", columns, ARRAY_LEN(columns));
}

static int key_create_run(struct args *args)
{
  cleanup_buf struct buf body = BUF_INIT(65536);
  named_body(&body, args->word_count ? args->words[0] : "made by cloche key create");
  return ask_once(args, "POST", args->token ? "/access-tokens" : "/api-keys", buf_z(&body), NULL,
                  args->token ? "token" : "key");
}

static int key_rename_run(struct args *args)
{
  cleanup_buf struct buf body = BUF_INIT(65536);
  cleanup_free char *path = path_of("/api-keys/{}", args->words[0]);
  named_body(&body, args->words[1]);
  return ask_once(args, "PATCH", path, buf_z(&body), args->words[0], NULL);
}

static int key_delete_run(struct args *args)
{
  cleanup_free char *path = path_of("/api-keys/{}", args->words[0]);
  return ask_once(args, "DELETE", path, NULL, args->words[0], NULL);
}

/* ---- teams ---- */

static const struct {
  const char *option, *member;
} limits[] = {{"boxes", "sandboxes"},
              {"creates", "createsPerSecond"},
              {"timeout", "timeoutSeconds"},
              {"cpus", "cpuCount"},
              {"memory", "memoryMB"},
              {"disk", "diskSizeMB"},
              {"total-memory", "totalMemoryMB"},
              {"storage", "storageMB"},
              {"paused", "pausedSandboxes"},
              {"snapshots", "snapshots"}};

static int put_limits(const struct args *args, struct jw *w)
{
  jw_key(w, "limits");
  jw_open(w, '{');
  for (size_t i = 0; i < args->given.n; i++) {
    const struct given *g = &args->given.p[i];
    uint64_t value;
    if (!strcmp(g->name, "isolation")) {
      jw_key(w, "isolation");
      jw_z(w, g->value);
      continue;
    }
    if (str_u64(str_of(g->value), &value) || value > INT32_MAX)
      return complain("--%s needs a whole number from 0 (the server's own limit), not '%s'", g->name, g->value),
             EXIT_USAGE;
    for (size_t k = 0; k < ARRAY_LEN(limits); k++)
      if (!strcmp(limits[k].option, g->name))
        jw_key(w, limits[k].member);
    jw_uint(w, value);
  }
  jw_close(w, '}');
  return 0;
}

static int team_list_run(struct args *args)
{
  static const struct column all[] = {{"ID", "teamID", COLUMN_TEXT},
                                      {"NAME", "name", COLUMN_TEXT},
                                      {"RUNNING", "runningSandboxes", COLUMN_TEXT},
                                      {"BOXES", "limits.sandboxes", COLUMN_TEXT},
                                      {"CREATES/S", "limits.createsPerSecond", COLUMN_TEXT},
                                      {"TIMEOUT", "limits.timeoutSeconds", COLUMN_TEXT},
                                      {"MEMORY MB", "limits.totalMemoryMB", COLUMN_TEXT},
                                      {"STORAGE MB", "limits.storageMB", COLUMN_TEXT}};
  struct remote r;
  cleanup_answer struct answer a = {0};
  bool admin = admin_token(args) != NULL;
  int status = admin ? remote_open_admin(args, &r) : remote_open(args, &r);
  if (status)
    return status;
  status = ask(&r, args, "GET", admin ? "/admin/teams" : "/teams", NULL, NULL, &a);
  for (struct json *team = a.json && !admin ? a.json->kids : NULL; team && args->json; team = team->next) {
    struct json *key = json_get(team, "apiKey"); /* the one that asked; no list needs to show it */
    if (key)
      *key = (struct json){.type = JSON_NULL, .key = key->key, .next = key->next};
  }
  if (!status && args->json) {
    cleanup_buf struct buf out = BUF_INIT(PRINT_MAX);
    json_put(&out, a.json, false);
    buf_addc(&out, '\n');
    status = print_out(&out);
  } else if (!status) {
    status = print_rows(args, &a, all, admin ? ARRAY_LEN(all) : 2);
  }
  remote_close(&r);
  return status;
}

static int put_team(struct args *args, const char *method, const char *path, const char *name, const char *what)
{
  struct remote r;
  cleanup_answer struct answer a = {0};
  cleanup_buf struct buf body = BUF_INIT(65536);
  struct jw w = JW(&body);
  jw_open(&w, '{');
  if (name) {
    jw_key(&w, "name");
    jw_z(&w, name);
  }
  int status = put_limits(args, &w);
  jw_close(&w, '}');
  status = status ? status : remote_open_admin(args, &r);
  if (status)
    return status;
  status = ask(&r, args, method, path, buf_z(&body), what, &a);
  status = status ? status : print_answer(args, &a, name ? "teamID" : NULL);
  remote_close(&r);
  return status;
}

static int team_create_run(struct args *args)
{
  return put_team(args, "POST", "/admin/teams", args->words[0], NULL);
}

static int team_limit_run(struct args *args)
{
  cleanup_free char *path = path_of("/admin/teams/{}", args->words[0]);
  return put_team(args, "PATCH", path, NULL, args->words[0]);
}

/* ---- nodes ---- */

static const struct column node_columns[] = {{"ID", "id", COLUMN_TEXT},
                                             {"STATUS", "status", COLUMN_TEXT},
                                             {"SINCE", "statusChangedAt", COLUMN_TIME},
                                             {"VERSION", "version", COLUMN_TEXT},
                                             {"SANDBOXES", "sandboxCount", COLUMN_TEXT},
                                             {"STARTING", "sandboxStartingCount", COLUMN_TEXT},
                                             {"CPUS", "metrics.cpuCount", COLUMN_TEXT},
                                             {"LOAD %", "metrics.cpuPercent", COLUMN_TEXT},
                                             {"MEMORY GIB", "metrics.memoryTotalBytes", COLUMN_GIB},
                                             {"USED GIB", "metrics.memoryUsedBytes", COLUMN_GIB}};

static int node_run(struct args *args, const char *id)
{
  struct remote r;
  cleanup_answer struct answer a = {0};
  cleanup_free char *path = id ? path_of("/nodes/{}", id) : xstrdup("/nodes");
  int status = remote_open_admin(args, &r);
  if (status)
    return status;
  status = ask(&r, args, "GET", path, NULL, id, &a);
  if (!status)
    status = id ? print_object(args, &a, node_columns, ARRAY_LEN(node_columns))
                : print_rows(args, &a, node_columns, ARRAY_LEN(node_columns));
  remote_close(&r);
  return status;
}

static int node_list_run(struct args *args)
{
  return node_run(args, NULL);
}

static int node_show_run(struct args *args)
{
  return node_run(args, args->words[0]);
}

static int node_change(struct args *args, const char *body)
{
  struct remote r;
  cleanup_answer struct answer a = {0};
  cleanup_free char *path = path_of("/nodes/{}", args->words[0]);
  int status = remote_open_admin(args, &r);
  if (status)
    return status;
  status = ask(&r, args, "POST", path, body, args->words[0], &a);
  status = status ? status : print_answer(args, &a, NULL);
  remote_close(&r);
  return status;
}

static int node_drain_run(struct args *args)
{
  return node_change(args, "{\"status\":\"draining\"}");
}

static int node_ready_run(struct args *args)
{
  return node_change(args, "{\"status\":\"ready\"}");
}

/* ---- secrets ---- */

static const struct column secret_columns[] = {
    {"ID", "secretID", COLUMN_TEXT},  {"NAME", "name", COLUMN_TEXT},        {"VERSION", "currentVersion", COLUMN_TEXT},
    {"AGE", "createdAt", COLUMN_AGE}, {"CHANGED", "updatedAt", COLUMN_AGE}, {"METADATA", "metadata", COLUMN_TEXT}};

static void add_secrets(const struct cloche_secret_list *list, struct table *table, struct jw *json)
{
  for (size_t i = 0; i < list->count; i++) {
    const struct cloche_secret *s = &list->items[i];
    cleanup_buf struct buf version = BUF_INIT(64);
    buf_addf(&version, "%lld", (long long)s->version);
    table_add(table, s->name);
    table_add(table, buf_z(&version));
    table_add(table, s->updated_at ? s->updated_at : s->created_at);
    jw_open(json, '{');
    const struct cloche_pair texts[] = {
        {"id", s->id}, {"name", s->name}, {"createdAt", s->created_at}, {"updatedAt", s->updated_at}};
    for (size_t k = 0; k < ARRAY_LEN(texts); k++) {
      jw_key(json, texts[k].name);
      jw_z(json, texts[k].value ? texts[k].value : "");
    }
    jw_key(json, "version");
    jw_int(json, s->version);
    jw_key(json, "metadata");
    jw_open(json, '{');
    for (size_t k = 0; k < s->metadata_count; k++) {
      jw_key(json, s->metadata[k].name);
      jw_z(json, s->metadata[k].value);
    }
    jw_close(json, '}');
    jw_close(json, '}');
  }
}

static int secret_list_run(struct args *args)
{
  struct remote r;
  struct table table = {.columns = 3};
  cleanup_free char *next = NULL;
  cleanup_buf struct buf text = BUF_INIT(PRINT_MAX), json = BUF_INIT(PRINT_MAX);
  struct jw w = JW(&json);
  int status = remote_open(args, &r);
  if (status)
    return status;
  table_add(&table, "NAME");
  table_add(&table, "VERSION");
  table_add(&table, "CHANGED");
  jw_open(&w, '[');
  do {
    struct cloche_secret_list *list = NULL;
    if (cloche_secrets(r.client, SECRET_PAGE, next, &list, NULL, &r.error)) {
      status = remote_failed(&r, NULL);
      break;
    }
    add_secrets(list, &table, &w);
    free(next);
    next = list->next ? xstrdup(list->next) : NULL;
    cloche_free(list);
  } while (next);
  jw_close(&w, ']');
  buf_addc(&json, '\n');
  table_print(&table, &text);
  table_free(&table);
  status = status ? status : print_out(args->json ? &json : &text);
  remote_close(&r);
  return status;
}

/* Asks without showing what is typed. */
static int prompt(struct buf *value)
{
  struct termios before, silent;
  if (tcgetattr(0, &before))
    return -errno;
  silent = before;
  silent.c_lflag &= ~(tcflag_t)ECHO;
  tcsetattr(0, TCSAFLUSH, &silent); /* before the prompt: what is typed after it counts */
  fputs("Value: ", stderr);
  char line[4096];
  bool got = fgets(line, sizeof(line), stdin) != NULL;
  tcsetattr(0, TCSAFLUSH, &before);
  fputc('\n', stderr);
  if (got)
    buf_adds(value, str_trim(str_of(line)));
  explicit_bzero(line, sizeof(line));
  return got ? 0 : -EIO;
}

static int read_value(const struct args *args, struct buf *value)
{
  int r = args->file ? file_read(args->file, value) : isatty(0) ? prompt(value) : fd_read_all(0, value);
  if (r == -ENOBUFS)
    return complain("the value is longer than %d bytes", VALUE_MAX);
  if (r)
    return complain("%s: %s", args->file ? args->file : "standard input", strerror(-r));
  while (value->n && (value->p[value->n - 1] == '\n' || value->p[value->n - 1] == '\r'))
    value->n--;
  return value->n ? 0 : (complain("the value is empty"), EXIT_USAGE);
}

static int secret_set_run(struct args *args)
{
  struct remote r;
  struct cloche_secret *secret = NULL;
  cleanup_buf struct buf value = BUF_INIT(VALUE_MAX);
  struct cloche_pair meta[64];
  size_t n = 0;
  for (size_t i = 0; i < args->given.n && n < ARRAY_LEN(meta); i++) {
    char *equals = strchr(args->given.p[i].value, '=');
    if (!equals || equals == args->given.p[i].value)
      return complain("--meta needs KEY=VALUE, not '%s'", args->given.p[i].value), EXIT_USAGE;
    *equals = 0;
    meta[n++] = (struct cloche_pair){args->given.p[i].value, equals + 1};
  }
  int status = read_value(args, &value);
  status = status ? status : remote_open(args, &r);
  if (status)
    return status;
  const char *name = args->words[0], *text = buf_z(&value);
  enum cloche_code code = cloche_secret_create(r.client, name, text, n ? meta : NULL, n, &secret, NULL, &r.error);
  if (code == CLOCHE_EEXISTS) {
    cloche_error_clear(&r.error);
    code = cloche_secret_update(r.client, name, text, n ? meta : NULL, n, &secret, NULL, &r.error);
  }
  if (code)
    status = remote_failed(&r, name);
  else if (args->json)
    printf("{\"version\":%lld}\n", (long long)secret->version);
  explicit_bzero(value.p, value.n);
  cloche_free(secret);
  remote_close(&r);
  return status;
}

static int secret_show_run(struct args *args)
{
  struct remote r;
  cleanup_answer struct answer a = {0};
  cleanup_free char *path = path_of("/secrets/{}", args->words[0]);
  int status = remote_open(args, &r);
  if (status)
    return status;
  status = ask(&r, args, "GET", path, NULL, args->words[0], &a);
  status = status ? status : print_object(args, &a, secret_columns, ARRAY_LEN(secret_columns));
  remote_close(&r);
  return status;
}

static int secret_rm_run(struct args *args)
{
  cleanup_free char *path = path_of("/secrets/{}", args->words[0]);
  return ask_once(args, "DELETE", path, NULL, args->words[0], NULL);
}

/* ---- the console ---- */

static int open_run(struct args *args)
{
  struct remote r;
  cleanup_answer struct answer a = {0};
  cleanup_buf struct buf out = BUF_INIT(4096), link = BUF_INIT(4096);
  int status = remote_open(args, &r);
  if (status)
    return status;
  const char *url = args->url              ? args->url
                    : r.profile.url        ? r.profile.url
                    : getenv("CLOCHE_URL") ? getenv("CLOCHE_URL")
                                           : getenv("E2B_API_URL");
  if (!url)
    status = (complain("where is the server? --url names it"), EXIT_USAGE);
  status = status ? status : ask(&r, args, "POST", "/console-links", NULL, NULL, &a);
  if (!status) {
    struct str base = str_of(url), code = json_text(json_get(a.json, "code"), STR_NONE);
    while (base.n && base.p[base.n - 1] == '/')
      base.n--;
    buf_addf(&link, STR_FMT "/#login=" STR_FMT, STR_ARG(base), STR_ARG(code));
    struct jw w = JW(&out);
    if (args->json) {
      jw_open(&w, '{');
      jw_key(&w, "url");
      jw_z(&w, buf_z(&link));
      jw_close(&w, '}');
    } else {
      text_clean(&out, buf_str(&link), 0);
    }
    buf_addc(&out, '\n');
    status = print_out(&out);
  }
  remote_close(&r);
  return status;
}

/* ---- tables ---- */

static const struct option_spec key_options[] = {
    {"token", 0, NULL, "create an access token (E2B_ACCESS_TOKEN) instead", OPTION_FLAG, offsetof(struct args, token),
     0, 0},
};
static const struct verb_spec key_verbs[] = {
    {"create", "[NAME]", "make a key and print it, this once", 0, 1, key_create_run},
    {"list", "", "the keys there are, by their last characters", 0, 0, key_list_run},
    {"rename", "ID NAME", "give a key another name", 2, 2, key_rename_run},
    {"delete", "ID", "a key stops working at once", 1, 1, key_delete_run},
};
const struct command_spec key_spec = {
    .name = "key",
    .summary = "make, list and delete API keys",
    .usage = "",
    .text = "Keys of the team that this command's own key belongs to.",
    .options = key_options,
    .option_count = ARRAY_LEN(key_options),
    .verbs = key_verbs,
    .verb_count = ARRAY_LEN(key_verbs),
};

#define LIMIT(option, value, text)                                                                                     \
  {                                                                                                                    \
    option, 0, value, text, OPTION_MANY, 0, 0, 0                                                                       \
  }
static const struct option_spec team_options[] = {
    LIMIT("boxes", "N", "running sandboxes at once; 0 here and below: the server's own limit"),
    LIMIT("creates", "N", "creates per second"),
    LIMIT("timeout", "SECONDS", "longest life of one run"),
    LIMIT("cpus", "N", "processors of the largest sandbox"),
    LIMIT("memory", "MIB", "memory of the largest sandbox"),
    LIMIT("disk", "MIB", "disk of the largest sandbox"),
    LIMIT("total-memory", "MIB", "memory of all running sandboxes together"),
    LIMIT("storage", "MIB", "uploads, snapshots and paused sandboxes together"),
    LIMIT("paused", "N", "paused sandboxes"),
    LIMIT("snapshots", "N", "snapshots"),
    LIMIT("isolation", "TIER", "process, microvm or default: of sandboxes whose create and template name none"),
    ADMIN_OPTION,
};
static const struct verb_spec team_verbs[] = {
    {"list", "", "the key's team; with the administrator's token all", 0, 0, team_list_run},
    {"create", "NAME", "a new team; prints its ID", 1, 1, team_create_run},
    {"limit", "ID", "changes the limits that are given", 1, 1, team_limit_run},
};
const struct command_spec team_spec = {
    .name = "team",
    .summary = "teams and their limits",
    .usage = "",
    .text = "create and limit need the administrator's token.",
    .options = team_options,
    .option_count = ARRAY_LEN(team_options),
    .verbs = team_verbs,
    .verb_count = ARRAY_LEN(team_verbs),
};

static const struct option_spec node_options[] = {ADMIN_OPTION};
static const struct verb_spec node_verbs[] = {
    {"list", "", "the machines, with their load and sandboxes", 0, 0, node_list_run},
    {"show", "ID", "one of them", 1, 1, node_show_run},
    {"drain", "ID", "no new sandboxes there from now on", 1, 1, node_drain_run},
    {"ready", "ID", "it takes sandboxes again", 1, 1, node_ready_run},
};
const struct command_spec node_spec = {
    .name = "node",
    .summary = "the machines of the server",
    .usage = "",
    .text = "Needs the administrator's token ('admin_token' of the server's settings).",
    .options = node_options,
    .option_count = ARRAY_LEN(node_options),
    .verbs = node_verbs,
    .verb_count = ARRAY_LEN(node_verbs),
};

static const struct option_spec secret_options[] = {
    {"file", 0, "FILE", "set: the value is this file's, without line ends behind it", OPTION_TEXT,
     offsetof(struct args, file), 0, 0},
    {"meta", 0, "KEY=VALUE", "set: kept with it and shown; may be given again", OPTION_MANY, 0, 0, 0},
};
static const struct verb_spec secret_verbs[] = {
    {"list", "", "the secrets there are; values are never shown", 0, 0, secret_list_run},
    {"set", "NAME", "a new secret, or a new version of one", 1, 1, secret_set_run},
    {"get-metadata", "NAME", "what is known of one", 1, 1, secret_show_run},
    {"rm", "NAME", "delete it; sandboxes lose it at once", 1, 1, secret_rm_run},
};
const struct command_spec secret_spec = {
    .name = "secret",
    .summary = "values for requests of sandboxes",
    .usage = "",
    .text = "Values that requests of sandboxes are given on their way out and that sandboxes never hold. 'set' takes\n"
            "the value from --file, from standard input, or asks for it without showing it.",
    .options = secret_options,
    .option_count = ARRAY_LEN(secret_options),
    .verbs = secret_verbs,
    .verb_count = ARRAY_LEN(secret_verbs),
};

const struct command_spec open_spec = {
    .name = "open",
    .summary = "a link that signs a browser in to the web console",
    .usage = "",
    .text = "Prints the link. It works once, for minutes, and holds no API key.",
    .own_url = true,
    .run = open_run,
};
