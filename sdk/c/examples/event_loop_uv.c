/* SPDX-License-Identifier: Apache-2.0 */
/* A cell and a timer of the program's own in one libuv loop: the descriptor is polled, and a timer stands for the time
 * at which the library wants to be driven. */
#include <stdio.h>
#include <uv.h>
#include <cloche.h>

struct program {
  struct cloche *client;
  struct cloche_box *box;
  struct cloche_execution *cell;
  uv_poll_t descriptor;
  uv_timer_t due, tick;
  int ticks;
};

static void drive(struct program *p);

static void on_due(uv_timer_t *timer)
{
  drive(timer->data);
}

static void drive(struct program *p)
{
  cloche_drive(p->client);
  int ms = cloche_timeout(p->client);
  if (ms >= 0 && uv_is_active((uv_handle_t *)&p->tick))
    uv_timer_start(&p->due, on_due, (uint64_t)ms, 0);
  else
    uv_timer_stop(&p->due);
}

static void on_readable(uv_poll_t *descriptor, int status, int events)
{
  drive(descriptor->data);
}

static void on_tick(uv_timer_t *timer)
{
  ((struct program *)timer->data)->ticks++;
}

static void on_done(struct cloche_op *op, const struct cloche_error *error, void *user)
{
  struct program *p = user;
  if (error)
    fprintf(stderr, "%s: %s\n", cloche_code_name(error->code), error->message);
  uv_poll_stop(&p->descriptor);
  uv_timer_stop(&p->tick);
}

static int run(struct program *p)
{
  uv_loop_t loop;
  uv_loop_init(&loop);
  uv_poll_init(&loop, &p->descriptor, cloche_fd(p->client));
  uv_timer_init(&loop, &p->due);
  uv_timer_init(&loop, &p->tick);
  p->descriptor.data = p->due.data = p->tick.data = p;
  struct cloche_op *op = cloche_op_new(p->client, on_done, p);
  uv_poll_start(&p->descriptor, UV_READABLE, on_readable);
  uv_timer_start(&p->tick, on_tick, 10, 10);
  cloche_run_code(p->box, "import time; time.sleep(0.3); 6 * 7", NULL, &p->cell, CLOCHE_WITH(cloche_call, .op = op),
                  NULL);
  drive(p);
  uv_run(&loop, UV_RUN_DEFAULT);
  uv_close((uv_handle_t *)&p->descriptor, NULL);
  uv_close((uv_handle_t *)&p->due, NULL);
  uv_close((uv_handle_t *)&p->tick, NULL);
  uv_run(&loop, UV_RUN_DEFAULT);
  cloche_op_free(op);
  return uv_loop_close(&loop);
}

int main(void)
{
  struct program p = {0};
  struct cloche_error error = {0};
  if (cloche_open(NULL, &p.client, &error) || cloche_create(p.client, NULL, &p.box, NULL, &error)) {
    fprintf(stderr, "%s: %s\n", cloche_code_name(error.code), error.message);
    return 1;
  }
  int failed = run(&p);
  if (p.cell)
    printf("%s, while the loop ticked %s\n", p.cell->text, p.ticks > 3 ? "on" : "never");
  failed |= !p.cell;
  cloche_free(p.cell);
  cloche_kill(p.client, cloche_box_id(p.box), NULL, NULL, NULL);
  cloche_box_free(p.box);
  cloche_close(p.client);
  return failed;
}
