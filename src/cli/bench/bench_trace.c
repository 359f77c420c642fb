/* SPDX-License-Identifier: Apache-2.0 */
/* bench_trace.c - `cloche bench --trace create`: the time of creates, split by what the server says in Server-Timing
 * (names and milliseconds in order, `name;dur=1.234`) and what is left for the way there and back. */
#include "cli/bench/bench.h"

#include "cli/cli.h"
#include <stdio.h>

#define STEPS 24

struct step {
  char name[48];
  double sum;
  unsigned n;
};

static struct step steps[STEPS];
static size_t nsteps;

static void step_add(struct str name, double ms)
{
  size_t i = 0;
  while (i < nsteps && !str_is(name, steps[i].name))
    i++;
  if (i == STEPS || (i == nsteps && str_copyz(name, steps[i].name, sizeof(steps[i].name))))
    return;
  nsteps = MAX(nsteps, i + 1);
  steps[i].sum += ms;
  steps[i].n++;
}

/* Adds the steps of one answer and returns their sum. */
static double read_timing(const char *text)
{
  struct str rest = str_of(text), part, name, value;
  double sum = 0;
  while (rest.n) {
    str_cut(rest, ',', &part, &rest);
    str_cut(str_trim(part), ';', &name, &value);
    char number[32];
    if (!str_starts(value, STR("dur=")) || str_copyz(str_skip(value, 4), number, sizeof(number)))
      continue;
    double ms = strtod(number, NULL);
    step_add(name, ms);
    sum += ms;
  }
  return sum;
}

int trace_create(struct bench *b)
{
  cleanup_client struct client c;
  struct err err = ERR_NONE;
  unsigned n = scaled(b, 20);
  client_open(&c, b);
  for (unsigned i = 0; i < n + 1; i++) {
    struct bench_box g;
    space_out(b);
    if (bench_box_create(&c, &g, &err))
      return usage_error("bench: %s", err.msg), 1;
    double total = call_ms(&c.call);
    bool told = c.call.timing[0];
    if (i) /* the first one pays for the connection */
      step_add(STR("request and answer on their way"), total - read_timing(c.call.timing)),
          step_add(STR("the whole create"), total);
    if (bench_box_kill(&c, &g, &err))
      return usage_error("bench: %s", err.msg), 1;
    if (!told)
      return usage_error("bench: this server does not say where the time goes (no Server-Timing)"), 1;
  }
  for (size_t i = 0; i < nsteps; i++)
    printf("%9.1f us  %s\n", steps[i].sum / steps[i].n * 1000, steps[i].name);
  printf("mean of %u creates, %u ms apart\n", n, b->pause_ms);
  return 0;
}
