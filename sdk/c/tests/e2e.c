/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "e2e.h"

struct e2e e2e;

void e2e_fail(int line, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  int n = snprintf(e2e.why, sizeof e2e.why, "line %d: ", line);
  vsnprintf(e2e.why + n, sizeof e2e.why - (size_t)n, format, args);
  va_end(args);
  longjmp(e2e.out, 1);
}

static void put_json(const char *text)
{
  putchar('"');
  for (; *text; text++) {
    if (*text == '"' || *text == '\\')
      putchar('\\');
    if ((unsigned char)*text >= 0x20)
      putchar(*text);
    else
      printf("\\u%04x", *text);
  }
  putchar('"');
}

static bool passes(const struct e2e_case *one)
{
  if (setjmp(e2e.out) != 0)
    return false;
  one->run();
  return true;
}

/* "valgrind" stands for the cases that don't wait for much. */
static bool chosen(const char *name, const char *only)
{
  static const char *const slow[] = {"charts",   "large output", "descriptors",     "pipes",           "much output",
                                     "template", "pause and",    "several threads", "many operations", "https"};
  if (strcmp(only, "valgrind") != 0)
    return strstr(name, only) != NULL;
  for (size_t i = 0; i < sizeof slow / sizeof slow[0]; i++)
    if (strstr(name, slow[i]))
      return false;
  return true;
}

static int play(const struct e2e_case *cases, const char *only, int *count)
{
  int failed = 0;
  for (; cases->name; cases++) {
    if (only && !chosen(cases->name, only))
      continue;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    bool bad = !passes(cases);
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%s\n  ", (*count)++ ? "," : "");
    put_json(cases->name);
    printf(": ");
    if (bad)
      put_json(e2e.why);
    else
      printf("null");
    fprintf(stderr, "%s  %s (%.0f ms)%s%s\n", bad ? "FAIL" : "ok  ", cases->name,
            (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6, bad ? ": " : "",
            bad ? e2e.why : "");
    fflush(stdout);
    cloche_error_clear(&e2e.error);
    failed += bad;
  }
  return failed;
}

int main(int argc, char **argv)
{
  const struct e2e_case *all[] = {sandbox_cases, code_cases, file_cases, command_cases, loop_cases, keep_cases};
  const char *only = argc > 1 ? argv[1] : NULL;
  snprintf(e2e.unique, sizeof e2e.unique, "c%x%x", (unsigned)getpid(), (unsigned)time(NULL));
  if (cloche_open(NULL, &e2e.client, ERR) != CLOCHE_OK ||
      cloche_create(e2e.client, WITH(cloche_create, .timeout_s = 600), &e2e.box, NULL, ERR) != CLOCHE_OK) {
    fprintf(stderr, "%s: %s\n", cloche_code_name(e2e.error.code), e2e.error.message);
    return 2;
  }
  int failed = 0, count = 0;
  printf("{");
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    failed += play(all[i], only, &count);
  printf("}\n");
  cloche_kill(e2e.client, cloche_box_id(e2e.box), NULL, NULL, ERR);
  cloche_box_free(e2e.box);
  cloche_error_clear(ERR);
  cloche_close(e2e.client);
  return failed != 0;
}
