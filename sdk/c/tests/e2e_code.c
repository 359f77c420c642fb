/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include "e2e.h"

static struct cloche_execution *ran(const char *code)
{
  struct cloche_execution *e;
  OK(cloche_run_code(e2e.box, code, NULL, &e, NULL, ERR));
  return e;
}

struct heard {
  char out[256], err[256], order[64];
  int results, errors;
};

static int on_out(const struct cloche_text *text, void *user)
{
  struct heard *h = user;
  strncat(h->out, text->data, sizeof h->out - strlen(h->out) - 1);
  strcat(h->order, "o");
  return 0;
}

static int on_err(const struct cloche_text *text, void *user)
{
  struct heard *h = user;
  strncat(h->err, text->data, sizeof h->err - strlen(h->err) - 1);
  strcat(h->order, "e");
  return 0;
}

static int on_result(const struct cloche_result *r, void *user)
{
  struct heard *h = user;
  h->results++;
  strcat(h->order, r->is_main ? "R" : "r");
  return 0;
}

static int on_error(const struct cloche_code_error *e, void *user)
{
  struct heard *h = user;
  h->errors++;
  strcat(h->order, "x");
  return 0;
}

static void a_cell_streams_output_results_and_its_error(void)
{
  struct heard h = {0};
  struct cloche_execution *e;
  const char *code = "import sys\nprint('one')\nprint('two', file=sys.stderr)\nfrom IPython.display import display\n"
                     "display('shown')\n1/0";
  OK(cloche_run_code(e2e.box, code,
                     WITH(cloche_run, .on_stdout = on_out, .on_stderr = on_err, .on_result = on_result,
                          .on_error = on_error, .user = &h),
                     &e, NULL, ERR));
  SAME(h.out, "one\n");
  SAME(h.err, "two\n");
  CHECK(h.results == 1 && h.errors == 1);
  CHECK(e->error && e->out_count == 1 && e->err_count == 1 && e->result_count == 1 && !e->text);
  SAME(e->error->name, "ZeroDivisionError");
  SAME(e->error->value, "division by zero");
  CHECK(strstr(e->error->traceback, "1/0") && e->out[0].timestamp && e->execution_count > 0);
  cloche_free(e);
}

static void every_format_arrives_as_it_was_sent(void)
{
  struct cloche_execution *e =
      ran("from IPython.display import display\n"
          "class All:\n"
          " def _repr_mimebundle_(self, include=None, exclude=None):\n"
          "  return {'text/plain':'t\\u00e9\\u2028\\U0001f600','text/html':'<b>h</b>','text/markdown':'*m*',"
          "'image/svg+xml':'<svg/>','image/png':'aGk=','image/jpeg':'aGo=','application/pdf':'aGw=',"
          "'text/latex':'$l$','application/json':{'a':[100.0,1e+22,12345678901234567890]},"
          "'application/javascript':'j()','e2b/data':{'x':[1.0]},'application/x-own':'mine'}\n"
          "All()");
  CHECK(e->result_count == 1 && !e->error);
  const struct cloche_result *r = &e->results[0];
  SAME(r->text, "té\u2028😀");
  SAME(r->html, "<b>h</b>");
  SAME(r->markdown, "*m*");
  SAME(r->svg, "<svg/>");
  SAME(r->png, "aGk=");
  SAME(r->jpeg, "aGo=");
  SAME(r->pdf, "aGw=");
  SAME(r->latex, "$l$");
  SAME(r->javascript, "j()");
  CHECK(strstr(r->json, "100.0") && strstr(r->json, "1e+22") && strstr(r->json, "12345678901234567890"));
  CHECK(strstr(r->data, "1.0") && strstr(r->extra, "application/x-own") && r->is_main);
  struct cloche_text *bytes;
  OK(cloche_decode(r->png, &bytes, ERR));
  CHECK(bytes->len == 2 && memcmp(bytes->data, "hi", 2) == 0);
  cloche_free(bytes);
  cloche_free(e);
}

static void charts_are_structs(void)
{
  struct cloche_execution *e = ran("import matplotlib.pyplot as plt\n"
                                   "plt.figure(); plt.plot([1,2,3],[4,5,6],label='l'); plt.title('T'); "
                                   "plt.xlabel('Time (s)'); plt.show()\n"
                                   "plt.figure(); plt.bar(['A','B'],[10,20.5]); plt.show()\n"
                                   "plt.figure(); plt.pie([90,10],labels=['n','o']); plt.show()\n"
                                   "plt.figure(); plt.boxplot([[1,2,3,4,50]],patch_artist=True); plt.show()\n"
                                   "fig, ax = plt.subplots(2); ax[0].plot([1]); ax[1].scatter([1],[2]); plt.show()");
  CHECK(!e->error && e->result_count == 5);
  const struct cloche_chart *c = e->results[0].chart;
  CHECK(c && c->type == CLOCHE_CHART_LINE && c->element_count == 1 && c->elements[0].point_count == 3);
  SAME(c->title, "T");
  SAME(c->x.unit, "s");
  SAME(c->elements[0].points[1].y.text, "5.0");
  CHECK(c->elements[0].points[1].y.number == 5.0 && c->x.tick_count == c->x.tick_label_count);
  c = e->results[1].chart;
  CHECK(c && c->type == CLOCHE_CHART_BAR && c->element_count == 2);
  SAME(c->elements[1].label, "B");
  SAME(c->elements[1].value.text, "20.5");
  c = e->results[2].chart;
  CHECK(c && c->type == CLOCHE_CHART_PIE && c->elements[0].angle.number == 324.0);
  c = e->results[3].chart;
  CHECK(c && c->type == CLOCHE_CHART_BOX_AND_WHISKER && c->elements[0].outlier_count == 1);
  c = e->results[4].chart;
  CHECK(c && c->type == CLOCHE_CHART_SUPERCHART && c->chart_count == 2);
  CHECK(c->charts[1].type == CLOCHE_CHART_SCATTER && c->charts[1].raw[0] == '{');
  cloche_free(e);
}

static void charts_of_further_kinds_are_structs(void)
{
  struct cloche_execution *e = ran("import matplotlib.pyplot as plt\n"
                                   "plt.figure(); plt.hist([1,1,2],bins=2); plt.show()\n"
                                   "plt.figure(); plt.imshow([[1,2],[3,4],[5,6]]); plt.show()\n"
                                   "plt.figure(); plt.errorbar([1,2],[3,4],yerr=0.5); plt.show()\n"
                                   "plt.figure(); plt.contour([[1,2],[3,4]]); plt.show()\n"
                                   "plt.figure(); plt.axes(projection='polar').plot([0,1],[1,2]); plt.show()\n"
                                   "plt.figure(); plt.axes(projection='3d').scatter([1],[2],[3]); plt.show()");
  CHECK(!e->error && e->result_count == 6);
  const struct cloche_chart *c = e->results[0].chart;
  CHECK(c && c->type == CLOCHE_CHART_BAR && c->detail && c->detail->type == CLOCHE_DETAIL_HISTOGRAM);
  SAME(c->kind, "histogram");
  SAME(c->detail->orientation, "vertical");
  CHECK(c->detail->elements[0].bins.count == 2 && c->detail->elements[0].bins.items[0].items[2].number == 2.0);
  const struct cloche_chart_detail *d = e->results[1].chart->detail;
  CHECK(d && d->type == CLOCHE_DETAIL_HEATMAP && d->elements[0].row_total == 3 && d->elements[0].column_total == 2);
  CHECK(d->elements[0].values.count == 3 && d->elements[0].values.items[2].items[1].number == 6.0);
  d = e->results[2].chart->detail;
  CHECK(d && d->type == CLOCHE_DETAIL_ERROR_BAR && d->elements[0].y_errors.items[1].items[0].number == 0.5);
  CHECK(!d->elements[0].x_errors.items && d->x.tick_count > 1);
  d = e->results[3].chart->detail;
  CHECK(d && d->type == CLOCHE_DETAIL_CONTOUR && d->element_count > 1 && d->elements[1].paths.count);
  d = e->results[4].chart->detail;
  CHECK(d && d->type == CLOCHE_DETAIL_POLAR && d->elements[0].points.items[1].items[1].number == 2.0);
  SAME(d->of, "line");
  d = e->results[5].chart->detail;
  CHECK(d && d->type == CLOCHE_DETAIL_SCATTER_3D && d->elements[0].points.items[0].count == 3);
  cloche_free(e);
}

static void languages_and_variables(void)
{
  struct cloche_execution *e;
  const struct cloche_pair envs[] = {{"SAID", "a\"b $c"}};
  OK(cloche_run_code(e2e.box, "console.log('js'); 2 + 3", WITH(cloche_run, .language = "javascript"), &e, NULL, ERR));
  SAME(e->text, "5");
  cloche_free(e);
  OK(cloche_run_code(e2e.box, "import os; os.environ['SAID']", WITH(cloche_run, .envs = envs, .env_count = 1), &e, NULL,
                     ERR));
  SAME(e->text, "a\"b $c");
  cloche_free(e);
  FAILS(CLOCHE_EINVAL,
        cloche_run_code(e2e.box, "1", WITH(cloche_run, .language = "r", .context_id = "x"), &e, NULL, ERR));
}

static void contexts_have_states_of_their_own(void)
{
  struct cloche_context *context;
  struct cloche_context_list *list;
  struct cloche_execution *e;
  OK(cloche_context_create(e2e.box, "python", "/tmp", &context, NULL, ERR));
  SAME(context->cwd, "/tmp");
  OK(cloche_run_code(e2e.box, "own = 1", WITH(cloche_run, .context_id = context->id), NULL, NULL, ERR));
  e = ran("own");
  CHECK(e->error && strcmp(e->error->name, "NameError") == 0);
  cloche_free(e);
  OK(cloche_contexts(e2e.box, &list, NULL, ERR));
  CHECK(list->count >= 3);
  SAME(list->items[list->count - 1].id, context->id);
  cloche_free(list);
  OK(cloche_context_restart(e2e.box, context->id, NULL, ERR));
  OK(cloche_run_code(e2e.box, "own", WITH(cloche_run, .context_id = context->id), &e, NULL, ERR));
  CHECK(e->error);
  cloche_free(e);
  OK(cloche_context_remove(e2e.box, context->id, NULL, ERR));
  FAILS(CLOCHE_ENOTFOUND, cloche_run_code(e2e.box, "1", WITH(cloche_run, .context_id = context->id), &e, NULL, ERR));
  cloche_free(context);
}

static int interrupt_now(const struct cloche_text *text, void *user)
{
  bool interrupted = false;
  if (cloche_interrupt(e2e.box, NULL, &interrupted, NULL, NULL) == CLOCHE_OK)
    *(bool *)user = interrupted;
  return 0;
}

static void a_callback_may_interrupt_its_own_cell(void)
{
  bool interrupted = false;
  struct cloche_execution *e;
  OK(cloche_run_code(e2e.box, "import time\nprint('go', flush=True)\ntime.sleep(60)",
                     WITH(cloche_run, .on_stdout = interrupt_now, .user = &interrupted), &e, WITHIN(20000), ERR));
  CHECK(interrupted && e->error);
  SAME(e->error->name, "KeyboardInterrupt");
  CHECK(e->execution_id && e->execution_id[0]);
  cloche_free(e);
}

static int stop(const struct cloche_text *text, void *user)
{
  return 1;
}

static void a_deadline_or_a_callback_ends_a_cell(void)
{
  struct cloche_execution *e;
  FAILS(CLOCHE_ETIMEOUT, cloche_run_code(e2e.box, "import time; time.sleep(60)", NULL, &e, WITHIN(500), ERR));
  FAILS(CLOCHE_ECANCELED, cloche_run_code(e2e.box, "print(1, flush=True)\nimport time; time.sleep(60)",
                                          WITH(cloche_run, .on_stdout = stop), &e, NULL, ERR));
  e = ran("'next'");
  SAME(e->text, "next");
  cloche_free(e);
}

static void large_output_arrives_whole(void)
{
  struct cloche_execution *e = ran("print('x' * 5_000_000); 'y' * 3_000_000");
  size_t sum = 0;
  for (size_t i = 0; i < e->out_count; i++)
    sum += e->out[i].len;
  CHECK(sum == 5000001 && strlen(e->text) == 3000000);
  cloche_free(e);
}

/* A cell that prints for ever would take all of the memory. */
static void output_beyond_the_bound_ends_the_cell(void)
{
  struct cloche *small;
  struct cloche_box *box;
  struct cloche_execution *e = NULL;
  OK(cloche_open(WITH(cloche_config, .max_answer = 1 << 20), &small, ERR));
  OK(cloche_connect(small, cloche_box_id(e2e.box), NULL, &box, NULL, ERR));
  FAILS(CLOCHE_EPROTO, cloche_run_code(box, "while True: print('x' * 10000)", NULL, &e, NULL, ERR));
  CHECK(!e && strstr(e2e.error.message, "more than 1048576 bytes"));
  OK(cloche_run_code(box, "'next'", NULL, &e, NULL, ERR));
  SAME(e->text, "next");
  cloche_free(e);
  cloche_box_free(box);
  cloche_close(small);
}

const struct e2e_case code_cases[] = {
    {"a cell streams output, results and its error", a_cell_streams_output_results_and_its_error},
    {"every format arrives as it was sent", every_format_arrives_as_it_was_sent},
    {"charts are structs", charts_are_structs},
    {"charts of further kinds are structs", charts_of_further_kinds_are_structs},
    {"languages and variables", languages_and_variables},
    {"contexts have states of their own", contexts_have_states_of_their_own},
    {"a callback may interrupt its own cell", a_callback_may_interrupt_its_own_cell},
    {"a deadline or a callback ends a cell", a_deadline_or_a_callback_ends_a_cell},
    {"large output arrives whole", large_output_arrives_whole},
    {"output beyond the bound ends the cell", output_beyond_the_bound_ends_the_cell},
    {0}};
