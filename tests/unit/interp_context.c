/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: turns, clients that leave, restart, deletion and the death of a kernel. */
#include "interp_lab.h"

#define DONE(n) "{\"ev\":\"count\",\"id\":" #n ",\"n\":" #n "}\n{\"ev\":\"done\",\"id\":" #n ",\"status\":\"ok\"}\n"

static void runs_take_turns_in_order(void **state)
{
  (void)state;
  struct lab l;
  struct client a = client_new("a"), b = client_new("b");
  lab_open(&l, "/bin/false", 10);
  context_submit(l.context, &a.run);
  context_submit(l.context, &b.run);
  lab_ready(&l);
  const char *heard = lab_heard(&l);
  assert_non_null(strstr(heard, "\"code\":\"a\""));
  assert_null(strstr(heard, "\"code\":\"b\""));
  lab_say(&l, DONE(1));
  lab_turn(&l);
  assert_true(a.ended);
  assert_false(b.ended);
  assert_non_null(strstr(lab_heard(&l), "\"code\":\"b\""));
  lab_say(&l, DONE(2));
  lab_turn(&l);
  assert_true(b.ended);
  buf_free(&a.seen);
  buf_free(&b.seen);
  lab_close(&l);
}

static void one_that_left_the_queue_is_never_sent(void **state)
{
  (void)state;
  struct lab l;
  struct client a = client_new("a"), b = client_new("b"), c = client_new("c");
  lab_open(&l, "/bin/false", 10);
  lab_ready(&l);
  context_submit(l.context, &a.run);
  context_submit(l.context, &b.run);
  context_submit(l.context, &c.run);
  run_abandon(&b.run);
  lab_heard(&l);
  lab_say(&l, DONE(1));
  lab_turn(&l);
  assert_non_null(strstr(lab_heard(&l), "\"code\":\"c\""));
  assert_false(b.ended);
  run_abandon(&c.run);
  buf_free(&a.seen);
  lab_close(&l);
}

static void one_that_left_keeps_the_turn_until_it_is_over(void **state)
{
  (void)state;
  struct lab l;
  struct client a = client_new("a"), b = client_new("b");
  int status;
  lab_open(&l, "/bin/false", 10);
  lab_ready(&l);
  context_submit(l.context, &a.run);
  context_submit(l.context, &b.run);
  lab_heard(&l);
  run_abandon(&a.run);
  /* The interrupt is SIGINT to the kernel's group: it ends the process that stands for it. */
  assert_int_equal(waitpid(l.pid, &status, 0), l.pid);
  assert_int_equal(WTERMSIG(status), SIGINT);
  assert_null(strstr(lab_heard(&l), "\"code\":\"b\""));
  lab_say(&l, "{\"ev\":\"stream\",\"id\":1,\"name\":\"stdout\",\"text\":\"x\"}\n" DONE(1));
  assert_non_null(strstr(lab_heard(&l), "\"code\":\"b\""));
  assert_int_equal(a.seen.n, 0);
  run_abandon(&b.run);
  lab_close(&l);
}

static void one_that_was_cut_off_runs_to_its_end(void **state)
{
  (void)state;
  struct lab l;
  struct client a = client_new("a"), b = client_new("b");
  int status;
  lab_open(&l, "/bin/false", 10);
  lab_ready(&l);
  context_submit(l.context, &a.run);
  context_submit(l.context, &b.run);
  lab_heard(&l);
  run_detach(&a.run);
  assert_int_equal(waitpid(l.pid, &status, WNOHANG), 0);
  assert_null(strstr(lab_heard(&l), "\"code\":\"b\""));
  lab_say(&l, "{\"ev\":\"stream\",\"id\":1,\"name\":\"stdout\",\"text\":\"x\"}\n" DONE(1));
  assert_non_null(strstr(lab_heard(&l), "\"code\":\"b\""));
  assert_int_equal(a.seen.n, 0);
  run_abandon(&b.run);
  assert_int_equal(waitpid(l.pid, &status, 0), l.pid);
  lab_close(&l);
}

static void those_that_were_cut_off_while_they_waited_keep_their_places(void **state)
{
  (void)state;
  struct lab l;
  struct client a = client_new("a"), b = client_new("b"), c = client_new("c"), d = client_new("d");
  lab_open(&l, "/bin/false", 10);
  lab_ready(&l);
  context_submit(l.context, &a.run);
  context_submit(l.context, &b.run);
  context_submit(l.context, &c.run);
  lab_heard(&l);
  run_detach(&b.run);
  run_detach(&c.run);
  run_detach(&a.run);
  b.run.code = c.run.code = STR("not any more");
  context_submit(l.context, &d.run);
  lab_say(&l, DONE(1));
  assert_non_null(strstr(lab_heard(&l), "\"code\":\"b\""));
  lab_say(&l, DONE(2));
  assert_non_null(strstr(lab_heard(&l), "\"code\":\"c\""));
  lab_say(&l, DONE(3));
  assert_non_null(strstr(lab_heard(&l), "\"code\":\"d\""));
  lab_say(&l, DONE(4));
  lab_heard(&l);
  assert_true(d.ended);
  assert_false(a.ended || b.ended || c.ended);
  buf_free(&d.seen);
  lab_close(&l);
}

static struct client client_named(const char *code)
{
  struct client c = client_new(code);
  snprintf(c.run.id, sizeof(c.run.id), "id-of-%s", code);
  return c;
}

static void an_interrupt_by_name_reaches_only_what_runs_under_it(void **state)
{
  (void)state;
  struct lab l;
  struct client a = client_named("a"), b = client_named("b");
  int status;
  lab_open(&l, "/bin/false", 10);
  lab_ready(&l);
  assert_false(context_interrupt(l.context, STR_NONE));
  context_submit(l.context, &a.run);
  context_submit(l.context, &b.run);
  lab_say(&l, "{\"ev\":\"count\",\"id\":1,\"n\":1}\n");
  lab_heard(&l);
  assert_false(context_interrupt(l.context, STR("id-of-c")));
  assert_false(contexts_interrupt(l.all, STR("")));
  assert_int_equal(waitpid(l.pid, &status, WNOHANG), 0);
  assert_true(contexts_interrupt(l.all, STR("id-of-a")));
  assert_int_equal(waitpid(l.pid, &status, 0), l.pid);
  assert_int_equal(WTERMSIG(status), SIGINT);
  lab_say(&l, "{\"ev\":\"stream\",\"id\":1,\"name\":\"stdout\",\"text\":\"x\"}\n"
              "{\"ev\":\"error\",\"id\":1,\"name\":\"KeyboardInterrupt\",\"value\":\"\",\"traceback\":\"\"}\n"
              "{\"ev\":\"done\",\"id\":1,\"status\":\"error\"}\n");
  assert_non_null(strstr(lab_heard(&l), "\"code\":\"b\""));
  assert_true(a.ended && client_saw(&a, "\"x\"") && client_saw(&a, "KeyboardInterrupt"));
  assert_false(b.ended);
  run_abandon(&b.run);
  buf_free(&a.seen);
  lab_close(&l);
}

static void one_that_waits_is_cancelled_by_name(void **state)
{
  (void)state;
  struct lab l;
  struct client a = client_named("a"), b = client_named("b"), c = client_named("c");
  int status;
  lab_open(&l, "/bin/false", 10);
  lab_ready(&l);
  context_submit(l.context, &a.run);
  context_submit(l.context, &b.run);
  context_submit(l.context, &c.run);
  lab_heard(&l);
  assert_true(context_interrupt(l.context, STR("id-of-b")));
  assert_true(b.ended && client_saw(&b, "ExecutionCancelled"));
  assert_false(context_interrupt(l.context, STR("id-of-b")));
  assert_int_equal(waitpid(l.pid, &status, WNOHANG), 0);
  lab_say(&l, DONE(1));
  assert_non_null(strstr(lab_heard(&l), "\"code\":\"c\""));
  run_abandon(&c.run);
  buf_free(&a.seen);
  buf_free(&b.seen);
  lab_close(&l);
}

static void an_interrupt_waits_until_the_cell_has_begun(void **state)
{
  (void)state;
  struct lab l;
  struct client a = client_named("a");
  int status;
  lab_open(&l, "/bin/false", 10);
  lab_ready(&l);
  context_submit(l.context, &a.run);
  lab_heard(&l);
  assert_true(context_interrupt(l.context, STR_NONE));
  lab_turn(&l);
  assert_int_equal(waitpid(l.pid, &status, WNOHANG), 0);
  lab_say(&l, "{\"ev\":\"count\",\"id\":1,\"n\":1}\n");
  lab_heard(&l);
  assert_int_equal(waitpid(l.pid, &status, 0), l.pid);
  assert_int_equal(WTERMSIG(status), SIGINT);
  run_abandon(&a.run);
  buf_free(&a.seen);
  lab_close(&l);
}

static void one_that_was_cut_off_can_be_interrupted(void **state)
{
  (void)state;
  struct lab l;
  struct client a = client_named("a"), b = client_named("b");
  int status;
  lab_open(&l, "/bin/false", 10);
  lab_ready(&l);
  context_submit(l.context, &a.run);
  context_submit(l.context, &b.run);
  lab_say(&l, "{\"ev\":\"count\",\"id\":1,\"n\":1}\n");
  lab_heard(&l);
  run_detach(&a.run);
  run_detach(&b.run);
  assert_true(contexts_interrupt(l.all, STR("id-of-b")));
  assert_true(contexts_interrupt(l.all, STR("id-of-a")));
  assert_int_equal(waitpid(l.pid, &status, 0), l.pid);
  lab_say(&l, DONE(1));
  assert_null(strstr(lab_heard(&l), "\"code\":\"b\""));
  buf_free(&a.seen);
  lab_close(&l);
}

static void a_full_queue_takes_no_more(void **state)
{
  (void)state;
  struct lab l;
  struct client c[4];
  lab_open(&l, "/bin/false", 2);
  lab_ready(&l);
  for (int i = 0; i < 4; i++)
    c[i] = client_new("x");
  assert_int_equal(context_submit(l.context, &c[0].run), 0);
  assert_int_equal(context_submit(l.context, &c[1].run), 0);
  assert_int_equal(context_submit(l.context, &c[2].run), 0);
  assert_true(context_full(l.context));
  assert_int_equal(context_submit(l.context, &c[3].run), -EAGAIN);
  context_delete(l.context);
  lab_turn(&l);
  for (int i = 0; i < 3; i++) {
    assert_true(c[i].ended);
    assert_true(client_saw(&c[i], "UnexpectedEndOfExecution"));
    buf_free(&c[i].seen);
  }
  assert_null(contexts_default(l.all, "python"));
  lab_close(&l);
}

/* The relaunch runs a program that ends at once: two tries, then everyone who waits is ready why. */
static void a_kernel_that_cannot_start_fails_those_who_wait(void **state)
{
  (void)state;
  struct lab l;
  struct client a = client_new("a"), b = client_new("b");
  lab_open(&l, "/not/there", 10);
  lab_ready(&l);
  context_submit(l.context, &a.run);
  context_submit(l.context, &b.run);
  lab_heard(&l);
  lab_say(&l, "{\"ev\":\"count\",\"id\":1,\"n\":1}\n");
  lab_turn(&l);
  shutdown(l.sock, SHUT_RDWR);
  lab_sleep(&l, 400);
  assert_true(a.ended);
  assert_true(client_saw(&a, "\"name\":\"ContextRestarting\",\"value\":\"Context was restarted\""));
  lab_sleep(&l, 1500);
  reap_now();
  lab_sleep(&l, 1000);
  assert_true(b.ended);
  assert_true(client_saw(&b, "\"name\":\"ContextRestarting\""));
  buf_free(&a.seen);
  buf_free(&b.seen);
  lab_close(&l);
}

static int ready_code = 99;

static void on_ready(struct context_wait *w, int code, const char *why)
{
  (void)w, (void)why;
  ready_code = code;
}

static void a_ready_context_tells_at_once_and_a_cancelled_wait_is_silent(void **state)
{
  (void)state;
  struct lab l;
  struct context_wait w = {.ready = on_ready}, gone = {.ready = on_ready};
  lab_open(&l, "/bin/false", 10);
  ready_code = 99;
  context_warm(l.context, &gone);
  context_wait_cancel(&gone);
  lab_ready(&l);
  assert_int_equal(ready_code, 99);
  context_warm(l.context, &w);
  assert_int_equal(ready_code, 0);
  lab_close(&l);
}

static void languages_have_many_names(void **state)
{
  (void)state;
  static const char *const names[][2] = {
      {" Python ", "python"}, {"", "python"}, {"PY", "python"},         {"js", "javascript"}, {"TS", "typescript"},
      {"sh", "bash"},         {"R", "r"},     {"NodeJS", "javascript"}, {"cobol", "cobol"},   {"ipython", "python"}};
  char out[32];
  for (size_t i = 0; i < ARRAY_LEN(names); i++) {
    assert_int_equal(kernel_language(str_of(names[i][0]), out, sizeof(out)), 0);
    assert_string_equal(out, names[i][1]);
  }
  assert_true(kernel_language(STR("a name that is far too long to be a language"), out, sizeof(out)) < 0);
}

static void an_absent_language_tells_what_it_needs(void **state)
{
  (void)state;
  char dir[] = "/tmp/interp_spec.XXXXXX", path[96];
  struct err err = ERR_NONE;
  static const char text[] = "{\"language\":\"r\",\"argv\":[\"/x\"],\"requires\":[\"/not/there\"],\"needs\":\"R 4.5\"}";
  assert_non_null(mkdtemp(dir));
  snprintf(path, sizeof(path), "%s/r", dir);
  assert_int_equal(path_mkdirs(path, 0700), 0);
  snprintf(path, sizeof(path), "%s/r/kernel.json", dir);
  assert_int_equal(file_write_atomic(path, text, sizeof(text) - 1, 0600), 0);
  setenv("CLOCHE_KERNELS", dir, 1);
  setenv("CLOCHE_JUPYTER_PATH", "/not/there", 1);
  struct kernel_specs *specs = kernel_specs_new();
  assert_null(kernel_specs_find(specs, "r", &err));
  assert_non_null(strstr(err.msg, "R 4.5"));
  assert_null(kernel_specs_find(specs, "cobol", &err));
  assert_non_null(strstr(err.msg, "install that kernel"));
  kernel_specs_free(specs);
  path_remove_tree(AT_FDCWD, dir);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs_take_turns_in_order),
      cmocka_unit_test(one_that_left_the_queue_is_never_sent),
      cmocka_unit_test(one_that_left_keeps_the_turn_until_it_is_over),
      cmocka_unit_test(one_that_was_cut_off_runs_to_its_end),
      cmocka_unit_test(those_that_were_cut_off_while_they_waited_keep_their_places),
      cmocka_unit_test(an_interrupt_by_name_reaches_only_what_runs_under_it),
      cmocka_unit_test(one_that_waits_is_cancelled_by_name),
      cmocka_unit_test(an_interrupt_waits_until_the_cell_has_begun),
      cmocka_unit_test(one_that_was_cut_off_can_be_interrupted),
      cmocka_unit_test(a_full_queue_takes_no_more),
      cmocka_unit_test(a_kernel_that_cannot_start_fails_those_who_wait),
      cmocka_unit_test(a_ready_context_tells_at_once_and_a_cancelled_wait_is_silent),
      cmocka_unit_test(languages_have_many_names),
      cmocka_unit_test(an_absent_language_tells_what_it_needs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
