/* SPDX-License-Identifier: Apache-2.0 */
/* Two operations at once in a program's own poll() loop; libuv and epoll programs do the same with cloche_fd(). */
#include <poll.h>
#include <stdio.h>
#include <cloche.h>

static void on_done(struct cloche_op *op, const struct cloche_error *error, void *user)
{
  if (error)
    fprintf(stderr, "%s: %s\n", cloche_code_name(error->code), error->message);
  --*(int *)user;
}

int main(void)
{
  struct cloche *client;
  struct cloche_box *box;
  struct cloche_error error = {0};
  if (cloche_open(NULL, &client, &error) || cloche_create(client, NULL, &box, NULL, &error)) {
    fprintf(stderr, "%s: %s\n", cloche_code_name(error.code), error.message);
    return 1;
  }
  int left = 2;
  struct cloche_execution *cell = NULL;
  struct cloche_command_result *command = NULL;
  struct cloche_op *ops[2] = {cloche_op_new(client, on_done, &left), cloche_op_new(client, on_done, &left)};
  cloche_run_code(box, "sum(range(10))", NULL, &cell, CLOCHE_WITH(cloche_call, .op = ops[0]), NULL);
  cloche_command(box, "sleep 0.2; uname", NULL, &command, CLOCHE_WITH(cloche_call, .op = ops[1]), NULL);
  while (left > 0) {
    struct pollfd fd = {.fd = cloche_fd(client), .events = POLLIN};
    poll(&fd, 1, cloche_timeout(client));
    cloche_drive(client);
  }
  if (cell && command)
    printf("both are done: %s, %s", cell->text, command->out.data);
  cloche_free(cell);
  cloche_free(command);
  cloche_op_free(ops[0]);
  cloche_op_free(ops[1]);
  cloche_kill(client, cloche_box_id(box), NULL, NULL, NULL);
  cloche_box_free(box);
  cloche_close(client);
  return 0;
}
