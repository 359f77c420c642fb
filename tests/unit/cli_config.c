/* SPDX-License-Identifier: Apache-2.0 */
/* cli_config.c - a setting lands in the struct of the role that reads it, in that field's unit; flags beat the
 * environment, the environment beats the file; and what is wrong is named. */
#include "unit.h"

#include "cli/config.h"
#include "cli/config_table.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

/* A directory with files, removed with all of them at the end. */
struct place {
  char dir[64], file[128];
};

static void place_put(const struct place *p, const char *name, const char *text)
{
  char path[256];
  snprintf(path, sizeof(path), "%s/%s", p->dir, name);
  assert_int_equal(file_write_atomic(path, text, strlen(text), 0600), 0);
}

static struct place place_make(const char *text)
{
  struct place p = {.dir = "/tmp/cloche-config-XXXXXX"};
  char drop_ins[128];
  assert_non_null(mkdtemp(p.dir));
  snprintf(p.file, sizeof(p.file), "%s/a.conf", p.dir);
  snprintf(drop_ins, sizeof(drop_ins), "%s.d", p.file);
  assert_int_equal(mkdir(drop_ins, 0700), 0);
  place_put(&p, "a.conf", text);
  return p;
}

static void place_remove(const struct place *p)
{
  assert_int_equal(path_remove_tree(AT_FDCWD, p->dir), 0);
}

static const char *from_of(const struct config *c, const char *name)
{
  return c->from[setting_place(setting_find(str_of(name)))];
}

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

static void drop_ins_win_by_name_over_the_file_and_lose_to_the_environment(void **state)
{
  struct place p = place_make("gates = 1\npool = 1\nboxes_max = 1\ndomain = a.test\n");
  place_put(&p, "a.conf.d/20-later.conf", "pool = 3 # as many as needed\n");
  place_put(&p, "a.conf.d/10-earlier.conf", "pool = 2\ngates = 2\ndomain = \"b # c\"   # a comment\n");
  place_put(&p, "a.conf.d/30-other.txt", "pool = 4\n");
  place_put(&p, "a.conf.d/.40-hidden.conf", "pool = 5\n");
  struct config c;
  struct err err = ERR_NONE;
  setenv("CLOCHE_BOXES_MAX", "9", 1);
  assert_int_equal(READ(&c, &err, "--config", p.file, "--nets-ready=3"), 0);
  unsetenv("CLOCHE_BOXES_MAX");
  assert_int_equal(c.warden.pool, 3);
  assert_int_equal(c.gates, 2);
  assert_int_equal(c.warden.boxes_max, 9);
  assert_string_equal(c.warden.domain, "b # c");
  char expected[256];
  snprintf(expected, sizeof(expected), "%s.d/20-later.conf:1", p.file);
  assert_string_equal(from_of(&c, "pool"), expected);
  snprintf(expected, sizeof(expected), "%s.d/10-earlier.conf:3", p.file);
  assert_string_equal(from_of(&c, "domain"), expected);
  assert_string_equal(from_of(&c, "boxes_max"), "CLOCHE_BOXES_MAX");
  assert_string_equal(from_of(&c, "nets_ready"), "--nets-ready");
  assert_string_equal(from_of(&c, "resolver"), "default");
  config_free(&c);
  place_remove(&p);
}

static void a_file_that_is_named_must_be_there(void **state)
{
  struct config c;
  struct err err = ERR_NONE;
  assert_int_equal(READ(&c, &err, "--config", "/nonexistent/cloche.conf"), -ENOENT);
  assert_non_null(strstr(err.msg, "config file /nonexistent/cloche.conf"));
  config_free(&c);
  assert_int_equal(READ(&c, &err, "--config", "none"), 0);
  config_free(&c);
}

static void collect(const char *text, void *arg)
{
  buf_addf(arg, "%s\n", text);
}

static void a_check_tells_all_mistakes_with_their_lines(void **state)
{
  struct place p = place_make("# fine\npool = many\nlog_level = info\nbox_max = 3\n[section]\n"
                              "domain = \"open\nlisten = 10.0.0.1\n\nteam_connections_max = 9000\n");
  place_put(&p, "a.conf.d/x.conf", "gates = 300\ndomain = a\tb\n");
  struct config c;
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  char *argv[] = {(char *)"serve", (char *)"--config", p.file};
  assert_int_equal(config_check(&c, 3, argv, collect, &b), 8);
  static const char *const says[] = {
      "a.conf:2: 'pool' must be a whole number from 0 to 1000, not 'many'",
      "a.conf:4: no setting 'box_max'; did you mean 'boxes_max'?",
      "a.conf:5: expected 'name = value', not '[section]'",
      "a.conf:6: 'domain' has an opening quote without its closing one",
      "a.conf.d/x.conf:1: 'gates' must be a whole number from 0 to 256, not '300'",
      "a.conf.d/x.conf:2: 'domain' contains a control character",
      "a.conf:9: 'team_connections_max' may be at most 5000",
      "a.conf:7: 'listen' must be ADDRESS:PORT, not '10.0.0.1'",
  };
  for (size_t i = 0; i < ARRAY_LEN(says); i++)
    assert_non_null(strstr(buf_z(&b), says[i]));
  config_free(&c);
  place_remove(&p);
}

static void a_wrong_token_is_not_repeated(void **state)
{
  struct config c;
  struct err err = ERR_NONE;
  char long_one[200];
  memset(long_one, 's', sizeof(long_one) - 1);
  long_one[sizeof(long_one) - 1] = 0;
  char flag[256];
  snprintf(flag, sizeof(flag), "--admin-token=%s", long_one);
  assert_int_equal(READ(&c, &err, flag), -EINVAL);
  assert_null(strstr(err.msg, "sss"));
  assert_non_null(strstr(err.msg, "'admin_token' is longer than 127 bytes"));
  config_free(&c);
}

static void a_role_gets_what_the_supervisor_has_but_no_token(void **state)
{
  struct config c, role;
  struct err err = ERR_NONE;
  assert_int_equal(READ(&c, &err, "--pool", "17", "--domain", "a \"quoted\" text", "--admin-token", "hidden",
                        "--connections-max", "100", "--keep-ended-hours", "5"),
                   0);
  cleanup_buf struct buf all = BUF_INIT(1 << 16), live = BUF_INIT(1 << 16);
  config_pack(&c, false, false, &all);
  assert_null(memmem(all.p, all.n, "hidden", 6));
  assert_int_equal(READ(&role, &err, "--role", "gate"), 0);
  assert_int_equal(config_unpack(&role, buf_str(&all), false, &err), 0);
  assert_int_equal(role.warden.pool, 17);
  assert_int_equal(role.gate.team_connections_max, 50);
  assert_int_equal(role.warden.keep_ended_s, 5 * 3600);
  assert_string_equal(role.warden.domain, "a \"quoted\" text");
  assert_string_equal(role.warden.admin_token, "");
  all.n -= 3;
  assert_int_equal(config_unpack(&role, buf_str(&all), false, &err), -EBADMSG);
  /* Of a running role only what may change does. */
  config_pack(&c, true, false, &live);
  config_free(&role);
  assert_int_equal(read_with(&role, &err, 0, NULL), 0);
  assert_int_equal(config_unpack(&role, buf_str(&live), true, &err), 0);
  assert_int_equal(role.warden.pool, 17);
  assert_string_equal(role.warden.domain, "");
  config_free(&role);
  config_free(&c);
}

struct seen {
  size_t taken, kept;
  char kept_name[64];
};

static void see(const char *name, const char *old, const char *new, const char *from, bool taken, void *arg)
{
  struct seen *s = arg;
  s->taken += taken;
  s->kept += !taken;
  if (!taken)
    snprintf(s->kept_name, sizeof(s->kept_name), "%s %s %s", name, old, new);
}

static void a_reload_takes_what_can_change_and_names_the_rest(void **state)
{
  struct config c, fresh;
  struct err err = ERR_NONE;
  struct seen s = {0};
  assert_int_equal(READ(&c, &err, "--pool", "1", "--data", "/tmp/a", "--log-level", "warn"), 0);
  assert_int_equal(READ(&fresh, &err, "--pool", "2", "--data", "/tmp/b", "--log-level", "debug", "--disk-reserve-mb",
                        "77", "--volumes-dir", "/tmp/a/volumes"),
                   0);
  assert_int_equal(config_adopt(&c, &fresh, see, &s), 3);
  assert_int_equal(s.taken, 3);
  assert_int_equal(s.kept, 1);
  assert_string_equal(s.kept_name, "data /tmp/a /tmp/b");
  assert_int_equal(c.warden.pool, 2);
  assert_int_equal(c.warden.source.reserve_mb, 77);
  assert_string_equal(c.log_level, "debug");
  assert_string_equal(c.warden.data, "/tmp/a");
  config_free(&fresh);
  config_free(&c);
}

static void the_packaged_file_sets_nothing_and_is_valid_without_its_marks(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 20), plain = BUF_INIT(1 << 20);
  char path[PATH_MAX];
  snprintf(path, sizeof(path), "%s/deploy/cloche.conf", getenv("SOURCE_ROOT"));
  assert_int_equal(file_read(path, &b), 0);
  struct str rest = buf_str(&b), line;
  size_t n = 0;
  for (; rest.n;) {
    str_cut(rest, '\n', &line, &rest);
    if (line.n < 2 || line.p[0] != '#' || line.p[1] == ' ')
      continue;
    buf_adds(&plain, str_skip(line, 1));
    buf_addc(&plain, '\n');
    n++;
  }
  size_t all;
  settings_table(&all);
  assert_int_equal(n, all);
  struct place p = place_make(buf_z(&plain));
  struct config c, defaults;
  struct err err = ERR_NONE;
  struct seen s = {0};
  assert_int_equal(READ(&c, &err, "--config", p.file), 0);
  assert_int_equal(read_with(&defaults, &err, 0, NULL), 0);
  assert_int_equal(config_adopt(&defaults, &c, see, &s), 0);
  assert_int_equal(s.kept, 0);
  config_free(&c);
  config_free(&defaults);
  place_remove(&p);
}

int main(void)
{
  setenv("CLOCHE_CONFIG", "none", 1); /* not this machine's */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_team_has_at_most_half_of_a_gate),
      cmocka_unit_test(values_land_in_the_units_of_their_fields),
      cmocka_unit_test(defaults_are_whole),
      cmocka_unit_test(flags_beat_the_environment_and_that_the_file),
      cmocka_unit_test(mistakes_are_named),
      cmocka_unit_test(drop_ins_win_by_name_over_the_file_and_lose_to_the_environment),
      cmocka_unit_test(a_file_that_is_named_must_be_there),
      cmocka_unit_test(a_check_tells_all_mistakes_with_their_lines),
      cmocka_unit_test(a_wrong_token_is_not_repeated),
      cmocka_unit_test(a_role_gets_what_the_supervisor_has_but_no_token),
      cmocka_unit_test(a_reload_takes_what_can_change_and_names_the_rest),
      cmocka_unit_test(the_packaged_file_sets_nothing_and_is_valid_without_its_marks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
