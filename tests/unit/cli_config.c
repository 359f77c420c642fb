/* SPDX-License-Identifier: Apache-2.0 */
/* cli_config.c - a setting lands in the struct of the role that reads it, in that field's unit; flags beat the
 * environment, the environment beats the file; and what is wrong is named. */
#include "unit.h"

#include "cli/config.h"
#include <stdio.h>

static int read_with(struct config *c, struct err *err, int argc, const char *const *words)
{
  char *argv[32] = {(char *)"serve"};
  for (int i = 0; i < argc; i++)
    argv[i + 1] = (char *)words[i];
  return config_read(c, argc + 1, argv, err);
}
#define READ(c, err, ...)                                                                                              \
  read_with(c, err, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), (const char *const[]){__VA_ARGS__})

static void values_land_in_the_units_of_their_fields(void **state)
{
  struct config c;
  struct err err = ERR_NONE;
  assert_int_equal(READ(&c, &err, "--boxes-max", "7", "--keep_ended_hours=3", "--build-keep-days", "2",
                        "--upload-max-mb", "5", "--zygotes", "0", "--net-rate", "99999999999", "--domain", "box.test",
                        "--interpreter-token", "compatible", "--disk-reserve-mb", "17", "--log-bytes", "4096"),
                   0);
  assert_int_equal(c.warden.boxes_max, 7);
  assert_int_equal(c.warden.keep_ended_s, 3 * 3600);
  assert_int_equal(c.warden.build_keep_s, 2 * 86400);
  assert_int_equal(c.gate.upload_max, (uint64_t)5 << 20);
  assert_false(c.warden.zygotes);
  assert_true(c.warden.internet);
  assert_true(c.warden.net_rate == 99999999999);
  assert_string_equal(c.warden.domain, "box.test");
  assert_true(c.gate.interpreter_compatible);
  assert_int_equal(c.warden.source.reserve_mb, 17);
  assert_int_equal(c.gate.log_bytes, 4096);
  assert_int_equal(c.warden.log_bytes, 4096);
  config_free(&c);
}

static void defaults_are_whole(void **state)
{
  struct config c;
  struct err err = ERR_NONE;
  assert_int_equal(read_with(&c, &err, 0, NULL), 0);
  assert_string_equal(c.listen, "127.0.0.1:3000");
  assert_string_equal(c.warden.data, "/var/lib/cloche");
  assert_string_equal(c.warden.admin_token, "");
  assert_string_equal(c.warden.checkpoint, "auto");
  assert_int_equal(c.gate.api_body_max, 16777216);
  assert_false(c.gate.interpreter_compatible);
  config_free(&c);
}

static void flags_beat_the_environment_and_that_the_file(void **state)
{
  char path[] = "/tmp/cloche-config-XXXXXX";
  int fd = mkstemp(path);
  static const char text[] = "# a comment\ngates = 3\npool = \"9\"\nboxes_max = 11\nadmin_token = \"of the file\"\n";
  assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
  close(fd);
  struct config c;
  struct err err = ERR_NONE;
  setenv("CLOCHE_GATES", "4", 1);
  setenv("CLOCHE_POOL", "8", 1);
  assert_int_equal(READ(&c, &err, "--config", path, "--gates", "5"), 0);
  unsetenv("CLOCHE_GATES");
  unsetenv("CLOCHE_POOL");
  assert_int_equal(c.gates, 5);
  assert_int_equal(c.warden.pool, 8);
  assert_int_equal(c.warden.boxes_max, 11);
  assert_string_equal(c.warden.admin_token, "of the file");
  config_drop_admin_token(&c);
  assert_string_equal(c.warden.admin_token, "");
  config_free(&c);
  unlink(path);
}

static void mistakes_are_named(void **state)
{
  static const struct {
    const char *flag, *value, *says;
  } table[] = {
      {"--gates", "257", "'gates' must be a whole number from 0 to 256, not '257'"},
      {"--gates", "-1", "not '-1'"},
      {"--boxes-max", "0", "from 1 to 30000"},
      {"--log-level", "loud", "'log_level' must be one of: debug info warn error; not 'loud'"},
      {"--checkpoint", "never", "'checkpoint' must be one of: auto frozen; not 'never'"},
      {"--interpreter-token", "", "'interpreter_token' must be one of: required compatible"},
      {"--boxes-mx", "3", "did you mean 'boxes_max'?"},
      {"--nothing-like-it", "3", "'cloche serve --help' lists them"},
      {"--team-connections-max", "5001", "'team_connections_max' may be at most 5000, half of 'connections_max'"},
      {"--image-uid", "64990", "contain 64990, which is 'gate_uid'"},
      {"--webhook-uid", "64763", "contain 64763, which is"},
      {"--resolver", "a text that is far too long for an address", "'resolver' is longer than 31 bytes"},
  };
  for (size_t i = 0; i < ARRAY_LEN(table); i++) {
    struct config c;
    struct err err = ERR_NONE;
    assert_int_equal(READ(&c, &err, table[i].flag, table[i].value), -EINVAL);
    assert_non_null(strstr(err.msg, table[i].says));
    config_free(&c);
  }
}

static void one_team_has_at_most_half_of_a_gate(void **state)
{
  struct config c;
  struct err err = ERR_NONE;
  assert_int_equal(READ(&c, &err, "--connections-max", "100"), 0);
  assert_int_equal(c.gate.team_connections_max, 50);
  config_free(&c);
  assert_int_equal(READ(&c, &err, "--connections-max", "20000", "--team-connections-max", "10000"), 0);
  assert_int_equal(c.gate.team_connections_max, 10000);
  config_free(&c);
  assert_int_equal(READ(&c, &err, "--team-connections-max", "0"), 0);
  assert_int_equal(c.gate.team_connections_max, 0);
  config_free(&c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_team_has_at_most_half_of_a_gate),
      cmocka_unit_test(values_land_in_the_units_of_their_fields),
      cmocka_unit_test(defaults_are_whole),
      cmocka_unit_test(flags_beat_the_environment_and_that_the_file),
      cmocka_unit_test(mistakes_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
