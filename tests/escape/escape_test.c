/* SPDX-License-Identifier: Apache-2.0 */
/* escape_test.c - every attempt of attempts.c, made as root inside a real box, one cmocka test each.
 *
 * An attempt passes when the box says that the kernel refused it and the host is as it was: its switches, its files,
 * the layers, and a process, a socket, a segment and a file that the test put there as bait. The last test shows the
 * other side: outside a box, harmless attempts succeed. Needs root. */
#include "bait.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <setjmp.h>
#include <cmocka.h>

static struct test_host test_host;
static struct box box;
static const char *attempts_path;

/* --- the tests ------------------------------------------------------------------------------------------------ */

static void attempt(void **state)
{
  const char *name = *state;
  cleanup_buf struct buf before = BUF_INIT(65536), after = BUF_INIT(65536);
  host_look(&before, &test_host, &box);
  const char *answer = box_ask(&box, "try %s", name);
  if (strncmp(answer, "held ", 5) != 0)
    fail_msg("%s", answer);
  print_message("             %s\n", answer);
  host_look(&after, &test_host, &box);
  assert_string_equal(buf_z(&before), buf_z(&after));
}

static void a_box_still_answers_after_all_attempts(void **state)
{
  assert_string_equal(box_ask(&box, "try have_admin_capabilities_at_all"), "held none of them");
}

static void others_can_not_reach_what_a_box_wrote(void **state)
{
  struct stat st;
  assert_int_equal(stat(box.dir, &st), 0);
  assert_int_equal(st.st_mode & 07777, 0700);
  assert_int_equal(st.st_uid, 0);
}

/* --- what of /proc and /sys is there -------------------------------------------------------------------------- */

static char known[65536], seen[65536];

/* Lines of surface.txt without their reasons: "name PATH STATE", "write PATH". */
static bool is_known(const char *kind, struct str path, struct str state)
{
  struct str rest = str_of(known), line, word[3];
  while (rest.n > 0) {
    str_cut(rest, '\n', &line, &rest);
    for (size_t i = 0; i < ARRAY_LEN(word); i++)
      str_cut(line, ' ', &word[i], &line);
    if (str_is(word[0], kind) && str_eq(word[1], path) && (!state.n || str_eq(word[2], state)))
      return true;
  }
  return false;
}

/* Tells every finding of one kind that surface.txt lacks. */
static void expect_known(const char *kind, bool with_state, const char *remedy)
{
  struct str rest = str_of(seen), line, what, path;
  size_t unknown = 0;
  assert_true(rest.n > 0);
  while (rest.n > 0) {
    str_cut(rest, '\n', &line, &rest);
    str_cut(line, ' ', &what, &line);
    str_cut(line, ' ', &path, &line);
    if (!str_is(what, kind) || is_known(kind, path, with_state ? line : STR_NONE))
      continue;
    print_error("%s " STR_FMT " (" STR_FMT ") is not in tests/escape/surface.txt: %s\n", kind, STR_ARG(path),
                STR_ARG(line), remedy);
    unknown++;
  }
  assert_int_equal(unknown, 0);
}

static void every_entry_of_proc_and_sys_is_known(void **state)
{
  expect_known("name", true, "look at what it shows and costs, then list it as it is, or cover it in src/jail/cover.c");
}

static void nothing_of_proc_and_sys_opens_for_writing_but_what_is_listed(void **state)
{
  expect_known("write", false,
               "cover it in src/jail/cover.c, or list it with the reason why writing there is harmless");
}

static void no_entry_of_proc_and_sys_is_costly_to_read(void **state)
{
  expect_known("cost", false, "cover it in src/jail/cover.c, or list it with the reason why its cost is the box's own");
}

static void surface_read(void)
{
  cleanup_buf struct buf text = BUF_INIT(sizeof(known) - 1);
  assert_int_equal(file_read("tests/escape/surface.txt", &text), 0);
  snprintf(known, sizeof(known), "%s", buf_z(&text));
  snprintf(seen, sizeof(seen), "%s", box_ask(&box, "surface"));
}

static void run_on_host(const char *name, char *text, size_t size)
{
  int fds[2], status;
  assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
  pid_t pid = fork();
  if (pid == 0) {
    dup2(fds[1], 1);
    execl(attempts_path, "attempts", name, NULL);
    _exit(127);
  }
  close(fds[1]);
  ssize_t n = read(fds[0], text, size - 1);
  text[n > 0 ? n : 0] = 0;
  close(fds[0]);
  waitpid(pid, &status, 0);
}

static void harmless_attempts_succeed_outside_of_a_box(void **state)
{
  static const char *const harmless[] = {"unshare_user",         "clone_user",        "clone3_user",
                                         "use_io_uring",         "packet_socket",     "netfilter_socket",
                                         "load_a_bpf_map",       "add_a_key",         "read_kernel_symbols",
                                         "new_mount_api_fsopen", "see_host_processes"};
  char pid[16], text[256];
  snprintf(pid, sizeof(pid), "%d", bait.pid);
  setenv("HOST_PID", pid, 1);
  for (size_t i = 0; i < ARRAY_LEN(harmless); i++) {
    run_on_host(harmless[i], text, sizeof(text));
    if (strncmp(text, "escaped the call returned", 25) != 0 && strncmp(text, "escaped read", 12) != 0)
      fail_msg("%s outside a box: %s", harmless[i], text);
  }
}

/* As a service manager does for a daemon that should outlive others; where we may. */
static void protect_ourselves(void)
{
  cleanup_fd int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (write(fd, "-10", 3) != 3)
    print_message("not protected from the OOM killer: %s\n", strerror(errno));
}

static void box_make(void)
{
  struct jail_spec spec = test_spec(&test_host, &box, "escape");
  spec.env = bait_facts();
  spec.limits = (struct jail_limits){.cpus = 1, .memory = 128u << 20, .pids = 64, .open_files = 1024};
  box_start(&box, &spec);
}

/* Devices in a template, as a careless image has them. */
static void template_nodes(void)
{
  char path[256];
  snprintf(path, sizeof(path), "%s/srv/disk", test_host.base);
  assert_int_equal(mknod(path, S_IFBLK | 0666, makedev(254, 0)), 0);
  snprintf(path, sizeof(path), "%s/srv/null", test_host.base);
  assert_int_equal(mknod(path, S_IFCHR | 0666, makedev(1, 3)), 0);
}

static int close_all(void **state)
{
  box_close(&box);
  bait_clear();
  return 0;
}

static size_t list_tests(struct CMUnitTest *tests, size_t max)
{
  static char names[16384];
  size_t n = 0;
  snprintf(names, sizeof(names), "%s", box_ask(&box, "list"));
  for (char *at = names, *name; (name = strsep(&at, "\n")) && n < max;)
    if (*name)
      tests[n++] = (struct CMUnitTest){.name = name, .test_func = attempt, .initial_state = name};
  return n;
}

int main(int argc, char **argv)
{
  static struct CMUnitTest tests[256];
  if (argc != 2 || geteuid() != 0) {
    fprintf(stderr, "usage (as root): %s ATTEMPTS\n", argv[0]);
    return 2;
  }
  attempts_path = argv[1];
  test_host_open(&test_host, attempts_path);
  bait_set(&test_host);
  template_nodes();
  protect_ourselves();
  box_make();
  surface_read();
  size_t n = list_tests(tests, ARRAY_LEN(tests) - 7);
  tests[n++] = (struct CMUnitTest)cmocka_unit_test(every_entry_of_proc_and_sys_is_known);
  tests[n++] = (struct CMUnitTest)cmocka_unit_test(nothing_of_proc_and_sys_opens_for_writing_but_what_is_listed);
  tests[n++] = (struct CMUnitTest)cmocka_unit_test(no_entry_of_proc_and_sys_is_costly_to_read);
  tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_box_still_answers_after_all_attempts);
  tests[n++] = (struct CMUnitTest)cmocka_unit_test(others_can_not_reach_what_a_box_wrote);
  tests[n++] = (struct CMUnitTest)cmocka_unit_test(harmless_attempts_succeed_outside_of_a_box);
  int failed = _cmocka_run_group_tests("escape", tests, n, NULL, close_all);
  test_host_close(&test_host);
  return failed;
}
