/* SPDX-License-Identifier: Apache-2.0 */
/* The event-loop face, threads, cancelling. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>
#include "e2e.h"

static void drive_until(const int *left)
{
  for (int turns = 0; *left > 0; turns++) {
    struct pollfd p = {.fd = cloche_fd(e2e.client), .events = POLLIN};
    poll(&p, 1, cloche_timeout(e2e.client));
    OK(cloche_drive(e2e.client));
    CHECK(turns < 100000);
  }
}

static void count_down(struct cloche_op *op, const struct cloche_error *error, void *user)
{
  --*(int *)user;
}

static void many_operations_run_in_one_loop(void)
{
  enum { N = 24 };
  struct cloche_op *ops[N];
  struct cloche_execution *cells[N] = {0};
  struct cloche_command_result *commands[N] = {0};
  int left = N;
  for (int i = 0; i < N; i++) {
    char text[64];
    ops[i] = cloche_op_new(e2e.client, count_down, &left);
    struct cloche_call call = {.size = sizeof call, .op = ops[i]};
    snprintf(text, sizeof text, i % 2 ? "echo %d; sleep 0.1" : "%d", i);
    if (i % 2)
      OK(cloche_command(e2e.box, text, NULL, &commands[i], &call, ERR));
    else
      OK(cloche_run_code(e2e.box, text, NULL, &cells[i], &call, ERR));
    CHECK(!cloche_op_done(ops[i]));
  }
  drive_until(&left);
  for (int i = 0; i < N; i++) {
    CHECK(cloche_op_done(ops[i]) && cloche_op_error(ops[i])->code == CLOCHE_OK);
    CHECK(atoi(i % 2 ? commands[i]->out.data : cells[i]->text) == i);
    cloche_free(commands[i]);
    cloche_free(cells[i]);
    cloche_op_free(ops[i]);
  }
}

struct chain {
  struct cloche_box *box;
  struct cloche_execution *cell;
  struct cloche_op *op;
  int left;
};

static void chain_killed(struct cloche_op *op, const struct cloche_error *error, void *user)
{
  ((struct chain *)user)->left = error ? -1 : 0;
  cloche_op_free(op);
}

static void chain_ran(struct cloche_op *op, const struct cloche_error *error, void *user)
{
  struct chain *chain = user;
  chain->left = 1;
  cloche_op_free(op);
  op = cloche_op_new(e2e.client, chain_killed, chain);
  if (error || cloche_kill(e2e.client, cloche_box_id(chain->box), NULL, WITH(cloche_call, .op = op), NULL))
    chain->left = -1;
}

static void chain_made(struct cloche_op *op, const struct cloche_error *error, void *user)
{
  struct chain *chain = user;
  chain->left = 2;
  cloche_op_free(op);
  op = cloche_op_new(e2e.client, chain_ran, chain);
  if (error || cloche_run_code(chain->box, "40 + 2", NULL, &chain->cell, WITH(cloche_call, .op = op), NULL))
    chain->left = -1;
}

static void callbacks_start_what_comes_next(void)
{
  struct chain chain = {.left = 3};
  struct cloche_op *op = cloche_op_new(e2e.client, chain_made, &chain);
  OK(cloche_create(e2e.client, NULL, &chain.box, WITH(cloche_call, .op = op), ERR));
  drive_until(&chain.left);
  CHECK(chain.left == 0);
  SAME(chain.cell->text, "42");
  cloche_free(chain.cell);
  cloche_box_free(chain.box);
}

static void an_op_can_be_cancelled_freed_and_used_again(void)
{
  struct cloche_command_result *r = NULL;
  struct cloche_op *op = cloche_op_new(e2e.client, NULL, NULL);
  struct cloche_call call = {.size = sizeof call, .op = op};
  OK(cloche_command(e2e.box, "sleep 60", NULL, &r, &call, ERR));
  FAILS(CLOCHE_EINVAL, cloche_command(e2e.box, "true", NULL, &r, &call, ERR));
  cloche_op_cancel(op);
  CHECK(cloche_op_done(op) && cloche_op_error(op)->code == CLOCHE_ECANCELED);
  OK(cloche_command(e2e.box, "echo again", NULL, &r, &call, ERR));
  OK(cloche_op_wait(op, ERR));
  SAME(r->out.data, "again\n");
  cloche_free(r);
  OK(cloche_command(e2e.box, "sleep 60", NULL, &r, &call, ERR));
  cloche_op_free(op); /* under way */
  OK(cloche_drive(e2e.client));
}

static struct cloche_cancel *on_alarm_cancel;

static void on_alarm(int signal_number)
{
  cloche_cancel_fire(on_alarm_cancel);
}

static void *fire_later(void *arg)
{
  cloche_cancel_fire(arg);
  return NULL;
}

static void another_thread_or_a_signal_cancels_a_blocking_call(void)
{
  struct cloche_command_result *r;
  struct cloche_cancel *cancel = cloche_cancel_new(e2e.client);
  struct cloche_call call = {.size = sizeof call, .cancel = cancel};
  pthread_t thread;
  pthread_create(&thread, NULL, fire_later, cancel);
  FAILS(CLOCHE_ECANCELED, cloche_command(e2e.box, "sleep 60", NULL, &r, &call, ERR));
  pthread_join(thread, NULL);
  FAILS(CLOCHE_ECANCELED, cloche_command(e2e.box, "true", NULL, &r, &call, ERR));
  cloche_cancel_reset(cancel);
  on_alarm_cancel = cancel;
  signal(SIGALRM, on_alarm);
  setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = 50000}, NULL);
  FAILS(CLOCHE_ECANCELED, cloche_command(e2e.box, "sleep 60", NULL, &r, &call, ERR));
  signal(SIGALRM, SIG_DFL);
  cloche_cancel_free(cancel);
}

static void *blocking_cells(void *arg)
{
  int *bad = arg;
  for (int i = 0; i < 10; i++) {
    struct cloche_command_result *r = NULL;
    struct cloche_text *text = NULL;
    if (cloche_command(e2e.box, "echo same", NULL, &r, NULL, NULL) || strcmp(r->out.data, "same\n") != 0 ||
        cloche_read(e2e.box, "/etc/hostname", NULL, &text, NULL, NULL))
      ++*bad;
    cloche_free(r);
    cloche_free(text);
  }
  return NULL;
}

static void several_threads_share_a_client(void)
{
  pthread_t threads[6];
  int bad[6] = {0};
  for (int i = 0; i < 6; i++)
    pthread_create(&threads[i], NULL, blocking_cells, &bad[i]);
  for (int i = 0; i < 6; i++) {
    pthread_join(threads[i], NULL);
    CHECK(bad[i] == 0);
  }
}

static int block_in_callback(const struct cloche_text *text, void *user)
{
  struct cloche_command_result *r = NULL;
  if (cloche_command(e2e.box, "echo inner", NULL, &r, NULL, NULL) == CLOCHE_OK)
    strcat(user, r->out.data);
  cloche_free(r);
  return 0;
}

static void a_callback_may_block_in_another_call(void)
{
  char heard[64] = "";
  struct cloche_command_result *r;
  OK(cloche_command(e2e.box, "echo outer", WITH(cloche_command, .on_stdout = block_in_callback, .user = heard), &r,
                    NULL, ERR));
  SAME(heard, "inner\n");
  SAME(r->out.data, "outer\n");
  cloche_free(r);
}

const struct e2e_case loop_cases[] = {
    {"many operations run in one loop", many_operations_run_in_one_loop},
    {"callbacks start what comes next", callbacks_start_what_comes_next},
    {"an op can be cancelled, freed and used again", an_op_can_be_cancelled_freed_and_used_again},
    {"another thread or a signal cancels a blocking call", another_thread_or_a_signal_cancels_a_blocking_call},
    {"several threads share a client", several_threads_share_a_client},
    {"a callback may block in another call", a_callback_may_block_in_another_call},
    {0}};
