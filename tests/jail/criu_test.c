/* SPDX-License-Identifier: Apache-2.0 */
/* criu_test.c - each of our patches to criu is at work (criu/README.md). Needs root, and a criu that scripts/criu
 * built. */
#include "checkpoint_box.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/nsfs.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <setjmp.h>
#include <cmocka.h>

static bool patched(void)
{
  cleanup_buf struct buf b = BUF_INIT(64 << 20);
  return !file_read(criu.program, &b) && str_search(buf_str(&b), STR("clochetm")) >= 0;
}

static uint32_t owner_of(pid_t pid, const char *ns)
{
  char path[64];
  uid_t uid = 0;
  snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, ns);
  cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
  cleanup_fd int user = ioctl(fd, NS_GET_USERNS);
  assert_int_equal(ioctl(!strcmp(ns, "user") ? fd : user, NS_GET_OWNER_UID, &uid), 0);
  return uid;
}

/* The cgroup namespace is made by the same clone; one that criu brought along would belong to the host's root. */
static void the_user_namespace_belongs_to_the_owner(void **state)
{
  struct box b;
  struct jail_spec spec;
  if (!patched())
    skip();
  open_checkpoint_guest(&b, &spec, "owned");
  sleep_and_wake(&b, &spec);
  assert_int_equal(owner_of(b.jail.init.pid, "user"), spec.id_base);
  assert_int_equal(owner_of(b.jail.init.pid, "cgroup"), spec.id_base);
  close_box(&b);
}

/* Files of the checkpoint whose name begins with `prefix`, and how many of them hold `text`. */
static int files_with(struct box *b, const char *prefix, struct str text, int *all)
{
  int n = 0;
  *all = 0;
  DIR *d = opendir(checkpoint_of(b));
  assert_non_null(d);
  for (struct dirent *e; (e = readdir(d));) {
    char path[PATH_MAX];
    cleanup_buf struct buf content = BUF_INIT(64 << 20);
    if (strncmp(e->d_name, prefix, strlen(prefix)))
      continue;
    (*all)++;
    snprintf(path, sizeof(path), "%s/%s", checkpoint_of(b), e->d_name);
    n += !file_read(path, &content) && str_search(buf_str(&content), text) >= 0;
  }
  closedir(d);
  return n;
}

static void a_small_tmpfs_is_written_without_tar(void **state)
{
  struct box b;
  struct jail_spec spec;
  int all;
  if (!patched())
    skip();
  open_checkpoint_guest(&b, &spec, "tmpfs");
  assert_string_equal(ask(&b, "write /dev/shm/note small"), "ok 5");
  dump(&b, &spec);
  int small = files_with(&b, "tmpfs-", STR("clochetm"), &all);
  assert_true(all > 0);
  assert_int_equal(small, all);
  end_box(&b);
  restore(&b, &spec, checkpoint_of(&b));
  assert_string_equal(ask(&b, "read /dev/shm/note"), "ok small");
  remove_checkpoint(&b);
  close_box(&b);
}

static void a_network_that_is_made_anew_is_not_dumped(void **state)
{
  struct box b;
  struct jail_spec spec;
  int all;
  if (!patched())
    skip();
  open_checkpoint_guest(&b, &spec, "no-net");
  dump(&b, &spec);
  files_with(&b, "netdev-", STR(""), &all);
  assert_int_equal(all, 0);
  files_with(&b, "route-", STR(""), &all);
  assert_int_equal(all, 0);
  end_box(&b);
  restore(&b, &spec, checkpoint_of(&b));
  assert_non_null(strstr(ask(&b, "read /proc/net/dev"), "lo:"));
  remove_checkpoint(&b);
  close_box(&b);
}

static void a_long_run_of_memory_comes_back(void **state)
{
  struct box b;
  struct jail_spec spec;
  char sum[64];
  if (!patched())
    skip();
  open_checkpoint_guest(&b, &spec, "pages");
  assert_string_equal(ask(&b, "eat 32"), "ok 33554432");
  snprintf(sum, sizeof(sum), "%s", ask(&b, "sum"));
  sleep_and_wake(&b, &spec);
  assert_string_equal(ask(&b, "sum"), sum);
  close_box(&b);
}

static int put(const char *path, const char *text)
{
  return file_write_atomic(path, text, strlen(text), 0755);
}

/* What the doctor and the daemon's log go by; no criu is run. */
static void an_untried_version_is_told_by_its_provenance(void **state)
{
  char program[PATH_MAX], note[PATH_MAX];
  snprintf(program, sizeof(program), "%s/criu", test_host.top);
  snprintf(note, sizeof(note), "%s/provenance", test_host.top);
  assert_int_equal(jail_criu_origin(program), JAIL_CRIU_FOREIGN);
  assert_int_equal(put(program, "x"), 0);
  assert_int_equal(jail_criu_origin(program), JAIL_CRIU_FOREIGN);
  assert_int_equal(put(note, "source 00\ntried no\n"), 0);
  assert_int_equal(jail_criu_origin(program), JAIL_CRIU_UNTRIED);
  assert_int_equal(put(note, "source 00\ntried yes\n"), 0);
  assert_int_equal(jail_criu_origin(program), JAIL_CRIU_TRIED);
  unlink(program);
  unlink(note);
}

int main(int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_untried_version_is_told_by_its_provenance),
      cmocka_unit_test(the_user_namespace_belongs_to_the_owner),
      cmocka_unit_test(a_small_tmpfs_is_written_without_tar),
      cmocka_unit_test(a_network_that_is_made_anew_is_not_dumped),
      cmocka_unit_test(a_long_run_of_memory_comes_back),
  };
  return run_checkpoint_tests(argc, argv, tests, ARRAY_LEN(tests));
}
