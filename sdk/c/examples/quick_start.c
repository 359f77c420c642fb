/* SPDX-License-Identifier: Apache-2.0 */
/* The quick start of docs/sdk-c.md: a sandbox, two cells that share a variable, the end. */
#include <stdio.h>
#include <cloche.h>

int main(void)
{
  struct cloche *client;
  struct cloche_box *box;
  struct cloche_execution *run;
  struct cloche_error error = {0};
  if (cloche_open(NULL, &client, &error) || cloche_create(client, NULL, &box, NULL, &error) ||
      cloche_run_code(box, "x = 41", NULL, NULL, NULL, &error) ||
      cloche_run_code(box, "print('hello'); x + 1", NULL, &run, NULL, &error)) {
    fprintf(stderr, "%s: %s\n", cloche_code_name(error.code), error.message);
    return 1;
  }
  printf("%s%s\n", run->out[0].data, run->text);
  cloche_free(run);
  cloche_kill(client, cloche_box_id(box), NULL, NULL, NULL);
  cloche_box_free(box);
  cloche_close(client);
  return 0;
}
