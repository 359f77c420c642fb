/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's hands in a real file system and with real processes: walks, watches, spawns, init. */
#include "unit.h"

#include "agent/pid1.h"

#include "agent/agent.h"
#include "agent/envd/entry.h"
#include "agent/envd/init.h"
#include "agent/envd/messages.h"
#include "agent/reap.h"
#include "agent/envd/resolve.h"
#include "agent/envd/file_sink.h"
#include "agent/spawn.h"
#include "agent/trust.h"
#include "agent/envd/watch.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char dir[64];
static struct user me;

static int setup(void **state)
{
  snprintf(dir, sizeof(dir), "/tmp/cloche-unit-XXXXXX");
  me = (struct user){.uid = getuid(), .gid = getgid(), .home = "/", .ngroups = 0};
  spawn_prepare();
  signal(SIGPIPE, SIG_IGN);
  return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
  return path_remove_tree(AT_FDCWD, dir);
}

static char *at(const char *name)
{
  static char path[8][256];
  static int turn;
  turn = (turn + 1) % 8;
  snprintf(path[turn], sizeof(path[turn]), "%s/%s", dir, name);
  return path[turn];
}

static void put(const char *name, const char *text)
{
  int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  assert_true(fd >= 0);
  assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
  close(fd);
}

/* ---- walking ---- */

static void a_walk_goes_depth_first_in_byte_order(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  cleanup_userdb struct userdb db;
  cleanup_buf struct buf names = BUF_INIT(4096);
  struct rpc_list found = {0};
  assert_int_equal(resolve_mkdirs(at("walk/sub1/deep"), &me), 0);
  assert_int_equal(resolve_mkdirs(at("walk/sub2"), &me), 0);
  put("walk/file1", "x");
  put("walk/Zfile", "x");
  put("walk/sub1/a", "x");
  assert_int_equal(symlink("sub1", at("walk/tolink")), 0);
  userdb_load(&db);
  assert_int_equal(entry_walk(at("walk/"), 2, &db, &a, &found), 0);
  for (size_t i = 0; i < found.n; i++) {
    struct msg_entry *e = ((struct msg_entry **)found.p)[i];
    assert_true(str_starts(e->path, str_of(at("walk/"))));
    buf_addf(&names, STR_FMT " ", STR_ARG(str_skip(e->path, strlen(at("walk/")))));
  }
  assert_string_equal(buf_z(&names), "Zfile file1 sub1 sub1/a sub1/deep sub2 tolink ");
  struct msg_entry *link = ((struct msg_entry **)found.p)[6];
  assert_int_equal(link->type, ENTRY_DIRECTORY);
  assert_true(link->has_target);
  assert_true(str_is(link->target, at("walk/sub1")));
}

static void a_broken_link_is_an_entry_without_a_type(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  cleanup_userdb struct userdb db;
  struct msg_entry e;
  userdb_load(&db);
  assert_int_equal(symlink("nowhere", at("broken")), 0);
  assert_int_equal(entry_fill(at("broken"), &db, &a, &e), 0);
  assert_int_equal(e.type, ENTRY_UNSPECIFIED);
  assert_int_equal(e.mode, 0);
  assert_true(str_is(e.target, at("broken")));
  assert_true(str_is(e.permissions, "Lrwxrwxrwx"));
  assert_int_equal(entry_fill(at("missing"), &db, &a, &e), -ENOENT);
}

/* ---- watching ---- */

static void note(uint32_t type, struct str name, void *arg)
{
  static const char letters[] = "?CWRNM"; /* create, write, remove, rename, chmod */
  buf_addf(arg, "%c:" STR_FMT " ", letters[type], STR_ARG(name));
}

static void saw(struct watch *w, const char *wanted)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  assert_int_equal(watch_read(w, note, &b), 0);
  assert_string_equal(buf_z(&b), wanted);
}

static void upload(const char *name, const char *text)
{
  struct rpc_list none = {0};
  struct sink s = {.user = &me, .metadata = &none, .announced = -1};
  assert_int_equal(sink_open(&s, at(name)), 0);
  assert_int_equal(sink_write(&s, str_sub(str_of(text), 0, 1)), 0);
  assert_int_equal(sink_write(&s, str_skip(str_of(text), 1)), 0);
  assert_int_equal(sink_close(&s), 0);
}

static void an_uploaded_file_makes_exactly_three_events(void **state)
{
  struct watch *w;
  assert_int_equal(mkdir(at("up"), 0755), 0);
  assert_int_equal(watch_open(at("up"), false, false, &w), 0);
  upload("up/new.txt", "content");
  saw(w, "C:new.txt M:new.txt W:new.txt ");
  upload("up/empty.txt", "");
  saw(w, "C:empty.txt M:empty.txt ");
  assert_int_equal(rename(at("up/new.txt"), at("up/old.txt")), 0);
  assert_int_equal(unlink(at("up/old.txt")), 0);
  saw(w, "N:new.txt C:old.txt R:old.txt ");
  assert_int_equal(unlink(at("up/empty.txt")), 0);
  assert_int_equal(rmdir(at("up")), 0);
  saw(w, "R:empty.txt R:. ");
  watch_close(w);
}

static void a_recursive_watch_follows_new_and_renamed_directories(void **state)
{
  struct watch *w;
  assert_int_equal(resolve_mkdirs(at("tree/a"), &me), 0);
  assert_int_equal(watch_open(at("tree"), true, false, &w), 0);
  put("tree/a/f", "x");
  saw(w, "C:a/f W:a/f ");
  assert_int_equal(rename(at("tree/a"), at("tree/b")), 0);
  saw(w, "N:a C:b ");
  put("tree/b/f", "y");
  saw(w, "W:b/f ");
  assert_int_equal(resolve_mkdirs(at("outside/x"), &me), 0);
  put("outside/x/g", "z");
  assert_int_equal(rename(at("outside"), at("tree/in")), 0);
  saw(w, "C:in C:in/x C:in/x/g ");
  put("tree/in/x/g", "zz");
  saw(w, "W:in/x/g ");
  assert_int_equal(rename(at("tree/in"), at("out")), 0);
  saw(w, "N:in ");
  put("tree/late", "1");
  saw(w, "C:late W:late ");
  put("out/x/g", "zzz");
  saw(w, "");
  assert_int_equal(path_remove_tree(AT_FDCWD, at("tree/b")), 0);
  saw(w, "R:b/f R:b ");
  watch_close(w);
}

static void what_can_not_be_watched_is_refused(void **state)
{
  struct watch *w;
  put("plain", "x");
  assert_int_equal(watch_open(at("plain"), false, false, &w), -ENOTDIR);
  assert_int_equal(watch_open(at("none"), false, false, &w), -ENOENT);
}

/* ---- spawning ---- */

static int reaped_status;
static void on_reaped(pid_t pid, int status, void *arg)
{
  reaped_status = status;
  *(bool *)arg = true;
}

/* Runs a command, gives its output; the exit status is in reaped_status. */
static const char *run(char *const *argv, char *const *envp, const char *cwd)
{
  static char out[8192];
  int ends[2];
  enum spawn_stage stage;
  bool done = false;
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  struct spawn s = {.cmd = argv[0], .argv = argv, .envp = envp, .cwd = cwd, .fds = {-1, ends[1], ends[1], -1}};
  pid_t pid = spawn_run(&s, &stage);
  close(ends[1]);
  assert_true(pid > 0);
  reap_watch(pid, on_reaped, &done);
  size_t n = 0;
  for (ssize_t got; (got = read(ends[0], out + n, sizeof(out) - 1 - n)) > 0;)
    n += (size_t)got;
  out[n] = '\0';
  close(ends[0]);
  while (!done)
    reap_now();
  return out;
}

static void a_child_gets_what_it_is_given_and_nothing_else(void **state)
{
  char *argv[] = {"sh", "-c",
                  "pwd; echo $A; ls /proc/self/fd | wc -l; grep -E 'Sig(Blk|Ign)' /proc/self/status; exit 7", NULL};
  char *envp[] = {"PATH=/usr/bin:/bin", "A=b c", NULL};
  int leak = open("/dev/null", O_RDONLY); /* not close-on-exec on purpose */
  const char *out = run(argv, envp, "/");
  close(leak);
  assert_string_equal(out, "/\nb c\n4\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
  assert_int_equal(WEXITSTATUS(reaped_status), 7);
}

/* This program again, as a child that tries to trace its parent and then a child of its own. */
static int look(void)
{
  long parent = ptrace(PTRACE_SEIZE, getppid(), 0, 0);
  pid_t own = fork();
  if (own == 0)
    pause();
  long child = ptrace(PTRACE_SEIZE, own, 0, 0);
  kill(own, SIGKILL);
  printf("parent %s, child %s\n", parent ? "refused" : "traced", child ? "refused" : "traced");
  return 0;
}

static void a_child_can_not_trace_its_parent(void **state)
{
  char self[4096] = "", *argv[] = {self, "look", NULL}, *envp[] = {"PATH=/usr/bin:/bin", NULL};
  if (geteuid() != 0)
    skip();
  assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
  assert_string_equal(run(argv, envp, NULL), "parent refused, child traced\n");
}

static void a_missing_program_is_an_exit_and_not_an_error(void **state)
{
  char *missing[] = {"no-such-program", NULL}, *refused[] = {"/etc/passwd", NULL};
  char *envp[] = {"PATH=/usr/bin:/bin", NULL};
  assert_string_equal(run(missing, envp, NULL), "exec: no-such-program: not found\n");
  assert_int_equal(WEXITSTATUS(reaped_status), 127);
  assert_string_equal(run(refused, envp, NULL), "exec: /etc/passwd: permission denied\n");
  assert_int_equal(WEXITSTATUS(reaped_status), 126);
}

static void a_script_without_an_interpreter_line_runs(void **state)
{
  put("script", "echo \"$0 $1\"\n");
  assert_int_equal(chmod(at("script"), 0755), 0);
  char *argv[] = {at("script"), "one", NULL}, *envp[] = {"PATH=/usr/bin:/bin", NULL};
  char wanted[300];
  snprintf(wanted, sizeof(wanted), "%s one\n", argv[0]);
  assert_string_equal(run(argv, envp, NULL), wanted);
}

static void a_missing_directory_is_told_before_anything_runs(void **state)
{
  char *argv[] = {"true", NULL}, *envp[] = {"PATH=/usr/bin:/bin", NULL};
  enum spawn_stage stage;
  struct spawn s = {.cmd = "true", .argv = argv, .envp = envp, .cwd = at("nowhere"), .fds = {-1, -1, -1, -1}};
  assert_int_equal(spawn_run(&s, &stage), -ENOENT);
  assert_int_equal(stage, SPAWN_CWD);
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void an_argument_list_too_long_does_not_hang(void **state)
{
  size_t n = 4 << 20;
  cleanup_free char *huge = xmalloc(n + 1);
  memset(huge, 'x', n);
  huge[n] = '\0';
  char *argv[] = {"true", huge, NULL}, *envp[] = {"PATH=/usr/bin:/bin", NULL};
  assert_string_equal(run(argv, envp, NULL), "exec: true: argument list too long\n");
  assert_int_equal(WEXITSTATUS(reaped_status), 126);
}

/* ---- init ---- */

static enum init_result tell(struct agent *a, const char *body, bool control)
{
  struct err err = ERR_NONE;
  return init_apply(a, str_of(body), control, &err);
}

static void a_token_is_changed_only_by_who_may(void **state)
{
  struct agent a = {.default_user = xstrdup("root")};
  assert_int_equal(tell(&a, "{\"accessToken\":\"t1\",\"defaultUser\":\"\"}", false), INIT_APPLIED);
  assert_string_equal(a.token, "t1");
  assert_string_equal(a.default_user, "root");
  assert_true(agent_token_ok(&a, STR("t1")));
  assert_false(agent_token_ok(&a, STR("t2")));
  assert_false(agent_token_ok(&a, STR_NONE));
  assert_int_equal(tell(&a, "", false), INIT_RESET_REFUSED);
  assert_int_equal(tell(&a, "{\"accessToken\":\"t2\"}", false), INIT_REFUSED);
  assert_int_equal(tell(&a, "{\"accessToken\":\"t1\",\"defaultUser\":\"user\"}", false), INIT_APPLIED);
  assert_string_equal(a.default_user, "user");
  assert_int_equal(tell(&a, "{\"accessToken\":\"t2\"}", true), INIT_APPLIED);
  assert_string_equal(a.token, "t2");
  assert_int_equal(tell(&a, "{}", true), INIT_APPLIED);
  assert_null(a.token);
  free(a.default_user);
}

static void variables_are_replaced_whole_and_internal_ones_never(void **state)
{
  struct agent a = {.default_user = xstrdup("root")};
  cleanup_env struct env all = {0}, later = {0};
  env_set(&a.internal, STR("E2B_SANDBOX"), STR("true"));
  env_set(&a.template_env, STR("PATH"), STR("/x"));
  assert_int_equal(tell(&a, "{\"envVars\":{\"A\":\"1\",\"E2B_SANDBOX\":\"no\"}}", false), INIT_APPLIED);
  agent_envs(&a, &all);
  assert_string_equal(env_get(&all, "A"), "1");
  assert_string_equal(env_get(&all, "PATH"), "/x");
  assert_string_equal(env_get(&all, "E2B_SANDBOX"), "true");
  assert_int_equal(tell(&a, "{}", false), INIT_APPLIED);
  assert_string_equal(env_get(&a.init_env, "A"), "1");
  assert_int_equal(tell(&a, "{\"envVars\":{}}", false), INIT_APPLIED);
  agent_envs(&a, &later);
  assert_null(env_get(&later, "A"));
  env_free(&a.internal);
  env_free(&a.template_env);
  env_free(&a.init_env);
  free(a.default_user);
}

static void an_older_message_changes_nothing(void **state)
{
  struct agent a = {.default_user = xstrdup("root")};
  assert_int_equal(tell(&a, "{\"timestamp\":\"2026-01-02T00:00:00.5Z\",\"defaultUser\":\"new\"}", false), INIT_APPLIED);
  assert_int_equal(tell(&a, "{\"timestamp\":\"2026-01-02T00:00:00.4Z\",\"defaultUser\":\"old\"}", false), INIT_STALE);
  assert_string_equal(a.default_user, "new");
  assert_int_equal(tell(&a, "{\"timestamp\":\"2026-01-02T00:00:00.5Z\",\"defaultUser\":\"same\"}", false),
                   INIT_APPLIED);
  assert_string_equal(a.default_user, "same");
  free(a.default_user);
}

static void bad_bodies_change_nothing(void **state)
{
  struct agent a = {.default_user = xstrdup("root")};
  const char *const bad[] = {"{",
                             "[]",
                             "{\"accessToken\":\"\"}",
                             "{\"accessToken\":\"a\\\\b\"}",
                             "{\"accessToken\":5}",
                             "{\"envVars\":[]}",
                             "{\"envVars\":{\"A\":1}}",
                             "{\"timestamp\":\"now\"}"};
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    assert_int_equal(tell(&a, bad[i], true), INIT_BAD);
  assert_null(a.token);
  assert_int_equal(a.init_env.n, 0);
  free(a.default_user);
}

/* ---- the authority of the box's egress ---- */

#define OLD_PEM "-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n"
#define NEW_PEM "-----BEGIN CERTIFICATE-----\nMAMCAQI=\n-----END CERTIFICATE-----\n"
#define BAD_PEM "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n"
#define ROOTS   "# some root\n-----BEGIN CERTIFICATE-----\nMAMCAQM=\n-----END CERTIFICATE-----\n"

static void an_authority_takes_the_place_of_the_one_before(void **state)
{
  cleanup_buf struct buf once = BUF_INIT(4096), twice = BUF_INIT(4096), other = BUF_INIT(4096);
  trust_bundle(STR(ROOTS), STR(OLD_PEM), &once);
  assert_true(str_starts(buf_str(&once), STR(ROOTS)));
  assert_true(str_search(buf_str(&once), STR(OLD_PEM)) > 0);
  trust_bundle(buf_str(&once), STR(NEW_PEM), &twice);
  assert_true(str_search(buf_str(&twice), STR(OLD_PEM)) < 0);
  trust_bundle(STR(ROOTS), STR(NEW_PEM), &other);
  assert_true(str_eq(buf_str(&twice), buf_str(&other)));
}

static void the_sum_of_a_key_store_is_sha1(void **state)
{
  static const struct {
    const char *text, *sum;
  } table[] = {
      {"", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
      {"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1"}};
  for (size_t i = 0; i < ARRAY_LEN(table); i++) {
    uint8_t sum[20];
    char hex[41];
    trust_sha1(str_of(table[i].text), sum);
    hex_encode(sum, sizeof(sum), hex);
    assert_string_equal(hex, table[i].sum);
  }
}

static void a_java_key_store_holds_every_readable_certificate(void **state)
{
  static const char head[] = "\xfe\xed\xfe\xed\0\0\0\2\0\0\0\2\0\0\0\2\0\6root-0";
  cleanup_buf struct buf store = BUF_INIT(4096);
  assert_int_equal(trust_java(STR(ROOTS BAD_PEM OLD_PEM), 1, &store), 2);
  assert_memory_equal(store.p, head, sizeof(head) - 1);
  assert_int_equal(store.n, 12 + 2 * (4 + 8 + 8 + 7 + 4 + 5) + 20);
}

static void a_caller_of_the_box_names_no_authority(void **state)
{
  struct agent a = {.default_user = xstrdup("root")};
  assert_int_equal(tell(&a, "{\"authority\":\"-----BEGIN CERTIFICATE-----\\n-----END CERTIFICATE-----\"}", false),
                   INIT_APPLIED);
  assert_int_equal(a.trust_env.n, 0);
  assert_int_equal(tell(&a, "{\"authority\":7}", false), INIT_BAD);
  free(a.default_user);
}

int main(int argc, char **argv)
{
  pid1_default_signals();
  if (argc == 2 && strcmp(argv[1], "look") == 0)
    return look();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_walk_goes_depth_first_in_byte_order),
      cmocka_unit_test(a_broken_link_is_an_entry_without_a_type),
      cmocka_unit_test(an_uploaded_file_makes_exactly_three_events),
      cmocka_unit_test(a_recursive_watch_follows_new_and_renamed_directories),
      cmocka_unit_test(what_can_not_be_watched_is_refused),
      cmocka_unit_test(a_child_gets_what_it_is_given_and_nothing_else),
      cmocka_unit_test(a_child_can_not_trace_its_parent),
      cmocka_unit_test(a_missing_program_is_an_exit_and_not_an_error),
      cmocka_unit_test(a_script_without_an_interpreter_line_runs),
      cmocka_unit_test(a_missing_directory_is_told_before_anything_runs),
      cmocka_unit_test(an_argument_list_too_long_does_not_hang),
      cmocka_unit_test(a_token_is_changed_only_by_who_may),
      cmocka_unit_test(variables_are_replaced_whole_and_internal_ones_never),
      cmocka_unit_test(an_older_message_changes_nothing),
      cmocka_unit_test(bad_bodies_change_nothing),
      cmocka_unit_test(an_authority_takes_the_place_of_the_one_before),
      cmocka_unit_test(the_sum_of_a_key_store_is_sha1),
      cmocka_unit_test(a_java_key_store_holds_every_readable_certificate),
      cmocka_unit_test(a_caller_of_the_box_names_no_authority),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
