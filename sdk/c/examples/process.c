/* SPDX-License-Identifier: Apache-2.0 */
/* A command in the background that is given input and waited for. */
#include <stdio.h>
#include <cloche.h>

int main(void)
{
  struct cloche *client = NULL;
  struct cloche_box *box = NULL;
  struct cloche_process *process = NULL;
  struct cloche_command_result *result = NULL;
  struct cloche_error error = {0};
  bool ok = cloche_open(NULL, &client, &error) == CLOCHE_OK &&
            cloche_create(client, CLOCHE_WITH(cloche_create, .template_id = "base"), &box, NULL, &error) == CLOCHE_OK &&
            cloche_start(box, "read word; echo told: $word", CLOCHE_WITH(cloche_command, .stdin_open = true), &process,
                         NULL, &error) == CLOCHE_OK &&
            cloche_stdin(box, cloche_process_pid(process), "hello\n", 6, NULL, &error) == CLOCHE_OK &&
            cloche_wait(process, &result, CLOCHE_WITH(cloche_call, .timeout_ms = 10000), &error) == CLOCHE_OK;
  if (ok)
    printf("%sexit code %d\n", result->out.data, result->exit_code);
  else
    fprintf(stderr, "%s: %s\n", cloche_code_name(error.code), error.message);
  cloche_free(result);
  cloche_process_free(process);
  if (box)
    cloche_kill(client, cloche_box_id(box), NULL, NULL, NULL);
  cloche_box_free(box);
  cloche_error_clear(&error);
  cloche_close(client);
  return !ok;
}
