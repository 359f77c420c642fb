/* SPDX-License-Identifier: Apache-2.0 */
/* warden_helper.c - outside programs that fetch: their end comes in time, whatever they do. */
#include "unit.h"

#include "warden/core/helper_proc.h"
#include <stdio.h>

#define SOON_US 10000000

static int run(const char *script, unsigned seconds, const atomic_bool *cancelled, struct err *err)
{
  const char *const argv[] = {"sh", "-c", script, NULL};
  struct helper_proc c = {.argv = argv, .work = -1, .source = -1, .seconds = seconds, .cancelled = cancelled};
  return helper_proc_run(&c, err);
}

static void a_program_that_closes_its_output_and_lives_on_is_ended_in_time(void **state)
{
  struct err err = ERR_NONE;
  int64_t began = clock_mono_us();
  assert_int_equal(run("exec >&- 2>&-; exec sleep 60", 1, NULL, &err), -ETIMEDOUT);
  assert_true(clock_mono_us() - began < SOON_US);
  assert_string_equal(err.msg, "sh did not finish within 1 s");
}

static void a_silent_program_can_be_cancelled(void **state)
{
  struct err err = ERR_NONE;
  atomic_bool cancelled = true;
  int64_t began = clock_mono_us();
  assert_int_equal(run("exec >&- 2>&-; exec sleep 60", 60, &cancelled, &err), -ECANCELED);
  assert_true(clock_mono_us() - began < SOON_US);
}

static void one_that_closes_its_output_and_ends_well_has_ended_well(void **state)
{
  struct err err = ERR_NONE;
  assert_int_equal(run("echo done; exec >&- 2>&-; sleep 0.3", 60, NULL, &err), 0);
  assert_int_equal(run("exec >&- 2>&-; sleep 0.3; exit 3", 60, NULL, &err), -EIO);
  assert_string_equal(err.msg, "sh failed with status 3");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_program_that_closes_its_output_and_lives_on_is_ended_in_time),
      cmocka_unit_test(a_silent_program_can_be_cancelled),
      cmocka_unit_test(one_that_closes_its_output_and_ends_well_has_ended_well),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
