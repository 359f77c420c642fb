/* SPDX-License-Identifier: Apache-2.0 */
/* Output of a cell as it comes, a chart as data, an exception as a value. */
#include <stdio.h>
#include <cloche.h>

static int print_text(const struct cloche_text *text, void *user)
{
  return fwrite(text->data, 1, text->len, user) != text->len;
}

static int print_chart(const struct cloche_result *result, void *user)
{
  if (result->chart)
    printf("a %s chart with %zu elements\n", result->chart->type_name, result->chart->element_count);
  return 0;
}

int main(void)
{
  static const char code[] = "import matplotlib.pyplot as plt\n"
                             "for i in range(3): print('line', i, flush=True)\n"
                             "plt.bar(['a', 'b'], [1, 2]); plt.show()\n"
                             "1 / 0";
  struct cloche *client = NULL;
  struct cloche_box *box = NULL;
  struct cloche_execution *run = NULL;
  struct cloche_error error = {0};
  const struct cloche_run options = {.size = sizeof options,
                                     .on_stdout = print_text,
                                     .on_stderr = print_text,
                                     .on_result = print_chart,
                                     .user = stdout};
  if (cloche_open(NULL, &client, &error) == CLOCHE_OK && cloche_create(client, NULL, &box, NULL, &error) == CLOCHE_OK &&
      cloche_run_code(box, code, &options, &run, CLOCHE_WITH(cloche_call, .timeout_ms = 60000), &error) == CLOCHE_OK)
    printf("caught %s: %s\n", run->error->name, run->error->value);
  else
    fprintf(stderr, "%s: %s\n", cloche_code_name(error.code), error.message);
  bool failed = !run;
  cloche_free(run);
  if (box)
    cloche_kill(client, cloche_box_id(box), NULL, NULL, NULL);
  cloche_box_free(box);
  cloche_error_clear(&error);
  cloche_close(client);
  return failed;
}
