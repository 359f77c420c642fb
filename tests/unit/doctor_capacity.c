/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of capacity, and the shape of the doctor's JSON. */
#include "doctor/doctor.h"
#include "unit.h"

static struct capacity_input roomy(void)
{
  return (struct capacity_input){.memory = 8192ull << 20,
                                 .disk = 100ull << 30,
                                 .inodes = 10000000,
                                 .processes = 1000000,
                                 .open_files = 1000000,
                                 .ids = 30000,
                                 .boxes_max = 1000000,
                                 .running_memory = 1024ull << 20};
}

static void memory_bounds_running_boxes(void **state)
{
  struct capacity_input in = roomy();
  struct capacity c;
  capacity_of(&in, &c);
  assert_int_equal(c.idle, 2048);
  assert_int_equal(c.running, 8);
  assert_string_equal(c.idle_bound, "memory");
  assert_string_equal(c.running_bound, "memory");
}

static void the_scarcest_resource_is_named(void **state)
{
  struct capacity c;
  struct capacity_input in = roomy();
  in.boxes_max = 5;
  capacity_of(&in, &c);
  assert_int_equal(c.idle, 5);
  assert_int_equal(c.running, 5);
  assert_string_equal(c.idle_bound, "boxes_max");
  in = roomy();
  in.disk = 2ull << 30;
  capacity_of(&in, &c);
  assert_int_equal(c.running, 2);
  assert_string_equal(c.running_bound, "disk");
  assert_string_equal(c.idle_bound, "memory");
  in = roomy();
  in.inodes = 64;
  capacity_of(&in, &c);
  assert_int_equal(c.idle, 2);
  assert_int_equal(c.running, 0);
  assert_string_equal(c.idle_bound, "inodes");
  in = roomy();
  in.processes = 640;
  capacity_of(&in, &c);
  assert_int_equal(c.idle, 53);
  assert_string_equal(c.idle_bound, "processes");
}

static void a_filesystem_without_a_number_of_inodes_is_not_bounded_by_them(void **state)
{
  struct capacity c;
  struct capacity_input in = roomy();
  in.inodes = UINT64_MAX;
  capacity_of(&in, &c);
  for (size_t i = 0; i < c.n; i++)
    assert_string_not_equal(c.bounds[i].resource, "inodes");
}

static struct doctor_report sample(void)
{
  struct doctor_report r = {.host = {.kernel = "6.1.0", .system = "a \"system\"", .cpus = 2, .cgroups = "v2"}, .n = 2};
  struct capacity_input in = roomy();
  capacity_of(&in, &r.capacity);
  r.checks[0] = (struct jail_check){.id = "first", .name = "the first", .detail = "fine"};
  r.checks[1] = (struct jail_check){
      .id = "second", .name = "the second", .health = JAIL_WORSE, .detail = "so and so", .remedy = "do this"};
  return r;
}

static void the_json_has_the_documented_shape(void **state)
{
  struct doctor_report r = sample();
  cleanup_buf struct buf b = BUF_INIT(DOCTOR_JSON_MAX);
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct json_error why;
  doctor_put_json(&r, &b);
  struct json *v = json_read(&a, buf_str(&b), 0, &why);
  assert_non_null(v);
  int64_t n = 0;
  assert_int_equal(json_int(json_get(v, "version"), &n), 0);
  assert_int_equal(n, 1);
  assert_true(str_is(json_text(json_get(v, "health"), STR("")), "less"));
  struct json *host = json_get(v, "host");
  assert_true(str_is(json_text(json_get(host, "system"), STR("")), "a \"system\""));
  assert_true(str_is(json_text(json_get(host, "controlGroups"), STR("")), "v2"));
  struct json *check = json_get(v, "checks")->kids->next;
  assert_true(str_is(json_text(json_get(check, "id"), STR("")), "second"));
  assert_true(str_is(json_text(json_get(check, "health"), STR("")), "less"));
  assert_true(str_is(json_text(json_get(check, "remedy"), STR("")), "do this"));
  struct json *capacity = json_get(v, "capacity");
  assert_int_equal(json_int(json_get(capacity, "running"), &n), 0);
  assert_int_equal(n, 8);
  assert_true(str_is(json_text(json_get(capacity, "runningBound"), STR("")), "memory"));
  assert_true(json_is(json_get(capacity->kids ? json_get(capacity, "bounds")->kids : NULL, "available"), JSON_NUMBER));
}

static void one_broken_check_makes_the_report_no(void **state)
{
  struct doctor_report r = sample();
  r.checks[0].health = JAIL_BROKEN;
  assert_int_equal(doctor_health(&r), JAIL_BROKEN);
  r.n = 0;
  assert_int_equal(doctor_health(&r), JAIL_FINE);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_bounds_running_boxes),
      cmocka_unit_test(the_scarcest_resource_is_named),
      cmocka_unit_test(a_filesystem_without_a_number_of_inodes_is_not_bounded_by_them),
      cmocka_unit_test(the_json_has_the_documented_shape),
      cmocka_unit_test(one_broken_check_makes_the_report_no),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
