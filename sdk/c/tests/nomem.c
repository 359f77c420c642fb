/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation of the library fails in turn: each call is made again and again, with its first, second, third ...
 * allocation failing, until one is made in which none is left to fail. Whatever happens in between is CLOCHE_ENOMEM,
 * and the client stays usable. Run under ASan it also shows that nothing is lost on those ways. libcurl's own
 * allocations are not touched (the linker wraps the library's).
 */
#include <stdlib.h>
#include "e2e.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t n);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t n);

static long countdown = -1; /* -1: nothing fails */
static bool failed_one;

static bool fails_now(void)
{
  if (countdown < 0 || countdown-- > 0)
    return false;
  countdown = -1;
  failed_one = true;
  return true;
}

void *__wrap_malloc(size_t size)
{
  return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
  return fails_now() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
  return fails_now() ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
  return fails_now() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t n)
{
  return fails_now() ? NULL : __real_strndup(text, n);
}

struct e2e e2e;

#define C e2e.client
#define B e2e.box

static enum cloche_code try_open(void)
{
  struct cloche *c = NULL;
  enum cloche_code code = cloche_open(WITH(cloche_config, .user_agent = "nomem", .ca_file = "x"), &c, ERR);
  cloche_close(c);
  return code;
}

static enum cloche_code try_connect(void)
{
  struct cloche_box *box = NULL;
  enum cloche_code code = cloche_connect(C, cloche_box_id(B), NULL, &box, NULL, ERR);
  cloche_box_free(box);
  return code;
}

static enum cloche_code try_info(void)
{
  struct cloche_box_info *info = NULL;
  enum cloche_code code = cloche_info(C, cloche_box_id(B), &info, NULL, ERR);
  cloche_free(info);
  return code;
}

static enum cloche_code try_list(void)
{
  struct cloche_box_list *list = NULL;
  const struct cloche_pair metadata[] = {{"a b", "c"}};
  enum cloche_code code =
      cloche_list(C, WITH(cloche_list, .metadata = metadata, .metadata_count = 1, .limit = 1), &list, NULL, ERR);
  cloche_free(list);
  return code;
}

static enum cloche_code try_cell(void)
{
  struct cloche_execution *e = NULL;
  enum cloche_code code = cloche_run_code(
      B, "import sys\nprint('a'); print('b', file=sys.stderr)\n{'application/json': 1}\n1/0", NULL, &e, NULL, ERR);
  cloche_free(e);
  return code;
}

static enum cloche_code try_chart(void)
{
  struct cloche_execution *e = NULL;
  static const char code_text[] =
      "class Chart:\n def _repr_mimebundle_(self, include=None, exclude=None):\n  return {'text/plain': 'c', "
      "'e2b/chart': {'type': 'superchart', 'title': '', 'elements': [{'type': 'line', 'title': 'l', 'x_ticks': [1.0], "
      "'x_tick_labels': ['1'], 'elements': [{'label': 'a', 'points': [[1.0, 'x']]}], 'cloche': {'type': 'contour', "
      "'levels': [1.0], 'elements': [{'paths': [[[1.0, 2.0]]], 'columns': {'x': [1], 'z': [[1]]}, 'encoding': {'x': "
      "{'bin': True}}}], 'lines': [{'points': [[1.0]]}], 'sampled': [{'of': 9}]}}]}}\nChart()";
  enum cloche_code code = cloche_run_code(B, code_text, NULL, &e, NULL, ERR);
  if (code == CLOCHE_OK &&
      (!e->results[0].chart || e->results[0].chart->chart_count != 1 || !e->results[0].chart->charts[0].detail))
    code = CLOCHE_EPROTO;
  cloche_free(e);
  return code;
}

static enum cloche_code try_contexts(void)
{
  struct cloche_context_list *list = NULL;
  enum cloche_code code = cloche_contexts(B, &list, NULL, ERR);
  cloche_free(list);
  return code;
}

static enum cloche_code try_command(void)
{
  struct cloche_command_result *r = NULL;
  const struct cloche_pair envs[] = {{"A", "b"}};
  enum cloche_code code = cloche_command(
      B, "echo out; echo err >&2; exit 1",
      WITH(cloche_command, .envs = envs, .env_count = 1, .user_name = "user", .tag = "t"), &r, NULL, ERR);
  cloche_free(r);
  return code;
}

static enum cloche_code try_process(void)
{
  struct cloche_process *p = NULL;
  struct cloche_command_result *r = NULL;
  enum cloche_code code = cloche_start(B, "cat", WITH(cloche_command, .stdin_open = true), &p, NULL, ERR);
  if (code == CLOCHE_OK)
    code = cloche_stdin(B, cloche_process_pid(p), "x", 1, NULL, ERR);
  if (code == CLOCHE_OK)
    code = cloche_signal(B, cloche_process_pid(p), 9, NULL, NULL, ERR);
  if (code == CLOCHE_OK)
    code = cloche_wait(p, &r, NULL, ERR);
  cloche_free(r);
  cloche_process_free(p);
  return code;
}

static enum cloche_code try_processes(void)
{
  struct cloche_process_list *list = NULL;
  enum cloche_code code = cloche_processes(B, &list, NULL, ERR);
  cloche_free(list);
  return code;
}

static enum cloche_code try_write(void)
{
  struct cloche_entry *entry = NULL;
  const struct cloche_pair metadata[] = {{"k", "v"}};
  enum cloche_code code = cloche_write(B, "nomem/f", "1", 1,
                                       WITH(cloche_file, .metadata = metadata, .metadata_count = 1), &entry, NULL, ERR);
  cloche_free(entry);
  return code;
}

static enum cloche_code try_read(void)
{
  struct cloche_text *text = NULL;
  enum cloche_code code = cloche_read(B, "/etc/hostname", WITH(cloche_file, .user_name = "user"), &text, NULL, ERR);
  cloche_free(text);
  return code;
}

static enum cloche_code try_files(void)
{
  struct cloche_entry_list *list = NULL;
  struct cloche_entry *entry = NULL;
  enum cloche_code code = cloche_list_dir(B, "/etc/apt", 2, NULL, &list, NULL, ERR);
  if (code == CLOCHE_OK)
    code = cloche_stat(B, "/etc", WITH(cloche_file, .user_name = "root"), &entry, NULL, ERR);
  cloche_free(list);
  cloche_free(entry);
  return code;
}

static int stop_watch(void *user)
{
  return 1;
}

static enum cloche_code try_watch(void)
{
  enum cloche_code code = cloche_watch(B, "/tmp", WITH(cloche_watch, .on_start = stop_watch), NULL, ERR);
  return code == CLOCHE_ECANCELED ? CLOCHE_OK : code;
}

static enum cloche_code try_git(void)
{
  struct cloche_git_status *status = NULL;
  struct cloche_git_branches *branches = NULL;
  enum cloche_code code = cloche_git_status(B, "/tmp/nomem", NULL, &status, NULL, ERR);
  if (code == CLOCHE_OK)
    code = cloche_git_branches(B, "/tmp/nomem", WITH(cloche_git, .git_user = "u", .git_password = "p"), &branches, NULL,
                               ERR);
  cloche_free(status);
  cloche_free(branches);
  return code;
}

static enum cloche_code try_error(void)
{
  struct cloche_text *text = NULL;
  enum cloche_code code = cloche_read(B, "/no/such", NULL, &text, NULL, ERR);
  return code == CLOCHE_ENOTFOUND ? CLOCHE_OK : code;
}

static enum cloche_code try_urls(void)
{
  char *host = NULL, *url = NULL;
  enum cloche_code code = cloche_host(B, 80, &host, ERR);
  if (code == CLOCHE_OK)
    code = cloche_download_url(B, "a b", "user", 60, &url, ERR);
  cloche_free(host);
  cloche_free(url);
  return code;
}

static enum cloche_code try_recipe(void)
{
  struct cloche_recipe *r = cloche_recipe_new();
  if (!r)
    return CLOCHE_ENOMEM;
  enum cloche_code code = cloche_recipe_dockerfile(
      r,
      "FROM debian\nENV A=1 B=\"2 3\"\nRUN [\"echo\", \"x\"]\nRUN <<E\ntrue\nE\nCOPY --chown=a f g /d/\nUSER u\n"
      "WORKDIR /w\nENTRYPOINT [\"a\"]\nCMD b\n",
      ERR);
  cloche_recipe_free(r);
  return code;
}

static enum cloche_code try_build(void)
{
  struct cloche_recipe *r = cloche_recipe_new();
  if (!r)
    return CLOCHE_ENOMEM;
  struct cloche_build_info *info = NULL;
  enum cloche_code code = cloche_recipe_from_template(r, "base");
  if (code == CLOCHE_OK)
    code = cloche_recipe_context(r, "/etc");
  if (code == CLOCHE_OK)
    code = cloche_recipe_copy(r, "hostname", "/tmp/", NULL, NULL);
  if (code == CLOCHE_OK)
    code = cloche_build(C, r, "nomem", NULL, &info, NULL, ERR);
  cloche_free(info);
  cloche_recipe_free(r);
  return code;
}

static enum cloche_code try_templates(void)
{
  struct cloche_template_list *list = NULL;
  struct cloche_tag_list *tags = NULL;
  enum cloche_code code = cloche_templates(C, &list, NULL, ERR);
  if (code == CLOCHE_OK)
    code = cloche_tags(C, "nomem", &tags, NULL, ERR);
  cloche_free(list);
  cloche_free(tags);
  return code;
}

static enum cloche_code try_events(void)
{
  struct cloche_event_list *list = NULL;
  struct cloche_log_list *logs = NULL;
  struct cloche_metric_list *metrics = NULL;
  enum cloche_code code = cloche_events(C, cloche_box_id(B), NULL, &list, NULL, ERR);
  if (code == CLOCHE_OK)
    code = cloche_logs(C, cloche_box_id(B), WITH(cloche_log_options, .limit = 3), &logs, NULL, ERR);
  if (code == CLOCHE_OK)
    code = cloche_metrics(C, cloche_box_id(B), 0, 0, &metrics, NULL, ERR);
  cloche_free(list);
  cloche_free(logs);
  cloche_free(metrics);
  return code;
}

static enum cloche_code try_request(void)
{
  struct cloche_text *answer = NULL;
  const struct cloche_pair headers[] = {{"X-Other", "1"}};
  enum cloche_code code = cloche_request(
      C, "GET", "/templates", WITH(cloche_request, .headers = headers, .header_count = 1), &answer, NULL, ERR);
  cloche_free(answer);
  return code;
}

static void ignore_done(struct cloche_op *op, const struct cloche_error *error, void *user)
{
  *(enum cloche_code *)user = error ? error->code : CLOCHE_OK;
}

static enum cloche_code try_op(void)
{
  enum cloche_code ended = CLOCHE_EPROTO;
  struct cloche_command_result *r = NULL;
  struct cloche_op *op = cloche_op_new(C, ignore_done, &ended);
  if (!op)
    return CLOCHE_ENOMEM;
  enum cloche_code code = cloche_command(B, "true", NULL, &r, WITH(cloche_call, .op = op), ERR);
  if (code == CLOCHE_OK && cloche_op_wait(op, ERR) != ended)
    code = CLOCHE_EPROTO;
  else if (code == CLOCHE_OK)
    code = ended;
  cloche_op_free(op);
  cloche_free(r);
  return code;
}

static const struct {
  const char *name;
  enum cloche_code (*run)(void);
} tries[] = {{"opening", try_open},
             {"connecting", try_connect},
             {"info", try_info},
             {"listing", try_list},
             {"running code", try_cell},
             {"charts", try_chart},
             {"contexts", try_contexts},
             {"a command", try_command},
             {"a process", try_process},
             {"a list of processes", try_processes},
             {"writing a file", try_write},
             {"reading a file", try_read},
             {"listing files", try_files},
             {"watching", try_watch},
             {"git", try_git},
             {"an error", try_error},
             {"addresses", try_urls},
             {"a Dockerfile", try_recipe},
             {"a build", try_build},
             {"templates", try_templates},
             {"events", try_events},
             {"a request", try_request},
             {"an op", try_op}};

/* NULL: passed. */
static const char *each_fails(enum cloche_code (*run)(void), long *count)
{
  static char why[256];
  for (long k = 0; k < 5000; k++) {
    failed_one = false;
    countdown = k;
    enum cloche_code code = run();
    countdown = -1;
    bool clean = code == CLOCHE_ENOMEM || code == CLOCHE_OK;
    if (!clean || (!failed_one && code != CLOCHE_OK)) {
      snprintf(why, sizeof why, "with allocation %ld failed it gave %s (%s)", k, cloche_code_name(code),
               e2e.error.message ? e2e.error.message : "");
      return why;
    }
    cloche_error_clear(ERR);
    if (!failed_one) {
      *count += k;
      return NULL;
    }
  }
  return "it never ends";
}

int main(void)
{
  if (cloche_open(NULL, &C, ERR) || cloche_create(C, WITH(cloche_create, .timeout_s = 300), &B, NULL, ERR) ||
      cloche_git_init(B, "/tmp/nomem", NULL, NULL, NULL, ERR)) {
    fprintf(stderr, "%s: %s\n", cloche_code_name(e2e.error.code), e2e.error.message);
    return 2;
  }
  int bad = 0;
  long count = 0;
  printf("{");
  for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
    const char *why = each_fails(tries[i].run, &count);
    printf("%s\n  \"%s survives every failed allocation\": %s%s%s", i ? "," : "", tries[i].name, why ? "\"" : "",
           why ? why : "null", why ? "\"" : "");
    fprintf(stderr, "%s  %s%s%s\n", why ? "FAIL" : "ok  ", tries[i].name, why ? ": " : "", why ? why : "");
    bad += why != NULL;
  }
  printf("}\n");
  fprintf(stderr, "%ld allocations failed in turn\n", count);
  cloche_template_delete(C, "nomem", NULL, NULL, NULL);
  cloche_kill(C, cloche_box_id(B), NULL, NULL, NULL);
  cloche_box_free(B);
  cloche_error_clear(ERR);
  cloche_close(C);
  return bad != 0;
}
