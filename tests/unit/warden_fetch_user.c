/* SPDX-License-Identifier: Apache-2.0 */
/* warden_fetch_user.c - no two teams fetch as one user, and a team's fetches share what they fetched. */
#include "unit.h"

#include "warden/build/fetch_user.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define FIRST 64700

static const struct source_rules rules = {.uid = FIRST, .uids = 3};

static int place(char dir[32])
{
  snprintf(dir, 32, "/tmp/cloche-fetch.XXXXXX");
  assert_non_null(mkdtemp(dir));
  int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  assert_true(fd >= 0);
  return fd;
}

static void unplace(const char *dir, int fd)
{
  path_remove_tree(fd, "blobs");
  close(fd);
  assert_int_equal(rmdir(dir), 0);
}

static uint32_t take(const char *team, int dir)
{
  struct err err = ERR_NONE;
  uint32_t uid = 0;
  assert_int_equal(fetch_user_take(&rules, team, dir, &uid, &err), 0);
  assert_in_range(uid, FIRST, FIRST + 2);
  return uid;
}

static void teams_have_users_of_their_own_while_they_fetch(void **state)
{
  struct err err = ERR_NONE;
  char dir[32];
  int fd = place(dir);
  uint32_t a = take("a", fd), b = take("b", fd), again = take("a", fd), c = take("c", fd), d = 0;
  assert_int_equal(a, again);
  assert_true(a != b && b != c && a != c);
  assert_int_equal(fetch_user_take(&rules, "d", fd, &d, &err), -EBUSY);
  assert_non_null(strstr(err.msg, "image_uids"));
  assert_int_equal(d, 0);
  fetch_user_release(&rules, d);
  fetch_user_release(&rules, a);
  assert_int_equal(fetch_user_take(&rules, "d", fd, &d, &err), -EBUSY); /* one of the team is still under way */
  fetch_user_release(&rules, again);
  assert_int_equal(take("d", fd), a);
  fetch_user_release(&rules, a);
  fetch_user_release(&rules, b);
  fetch_user_release(&rules, c);
  unplace(dir, fd);
}

static uint32_t owner(int at, const char *path)
{
  struct stat st;
  assert_int_equal(fstatat(at, path, &st, AT_SYMLINK_NOFOLLOW), 0);
  return st.st_uid;
}

static void what_was_fetched_before_is_handed_over_and_links_are_not_followed(void **state)
{
  char dir[32], other[32];
  if (geteuid() != 0)
    skip();
  int fd = place(dir), outside = place(other);
  assert_int_equal(mkdirat(fd, "blobs", 0700) || mkdirat(fd, "blobs/sha256", 0700), 0);
  close(openat(fd, "blobs/sha256/one", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  close(openat(outside, "theirs", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  assert_int_equal(symlinkat(other, fd, "blobs/away"), 0);
  uint32_t a = take("a", fd);
  assert_int_equal(owner(fd, "blobs"), a);
  assert_int_equal(owner(fd, "blobs/sha256"), a);
  assert_int_equal(owner(fd, "blobs/sha256/one"), a);
  assert_int_equal(owner(outside, "."), 0);
  assert_int_equal(owner(outside, "theirs"), 0);
  fetch_user_release(&rules, a);
  uint32_t b = take("b", outside), then = take("a", fd); /* another one this time */
  assert_int_not_equal(then, b);
  assert_int_equal(owner(fd, "blobs/sha256/one"), then);
  fetch_user_release(&rules, b);
  fetch_user_release(&rules, then);
  unplace(dir, fd);
  assert_int_equal(unlinkat(outside, "theirs", 0), 0);
  unplace(other, outside);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(teams_have_users_of_their_own_while_they_fetch),
      cmocka_unit_test(what_was_fetched_before_is_handed_over_and_links_are_not_followed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
