/* SPDX-License-Identifier: Apache-2.0 */
/* jail_volume_quota.c - what the kernel is asked for project quotas, and that a filesystem without them is told. The
 * quotas themselves need a kernel that has them: tests/jail/volume_quota_test.c. */
#include "jail/fs/volume_quota.h"

#include <fcntl.h>
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define VOLUME "0b0c0d0e-1111-4222-8333-444455556666"
#define OTHER  "aaaabbbb-1111-4222-8333-444455556666"

static void a_project_is_made_of_the_id(void **state)
{
  assert_int_not_equal(volume_quota_project(VOLUME), 0);
  assert_int_equal(volume_quota_project(VOLUME), volume_quota_project(VOLUME));
  assert_int_not_equal(volume_quota_project(VOLUME), volume_quota_project(OTHER));
}

static void other_attributes_of_the_tree_stay(void **state)
{
  struct fsxattr attr = {.fsx_xflags = FS_XFLAG_NOATIME, .fsx_extsize = 4096, .fsx_projid = 7};
  volume_quota_inherit(&attr, VOLUME);
  assert_int_equal(attr.fsx_xflags, FS_XFLAG_NOATIME | FS_XFLAG_PROJINHERIT);
  assert_int_equal(attr.fsx_projid, volume_quota_project(VOLUME));
  assert_int_equal(attr.fsx_extsize, 4096);
}

static void limits_are_hard_and_in_blocks_of_1024_rounded_up(void **state)
{
  struct dqblk q = volume_quota_limits(&(struct volume_limits){.bytes = (16u << 20) + 1, .inodes = 200});
  assert_int_equal(q.dqb_bhardlimit, (16u << 10) + 1);
  assert_int_equal(q.dqb_ihardlimit, 200);
  assert_int_equal(q.dqb_bsoftlimit, 0);
  assert_int_equal(q.dqb_isoftlimit, 0);
  assert_int_equal(q.dqb_valid, QIF_LIMITS);
  q = volume_quota_limits(&(struct volume_limits){.bytes = UINT64_MAX});
  assert_true(q.dqb_bhardlimit == (UINT64_MAX >> 10) + 1);
  assert_int_equal(q.dqb_ihardlimit, 0);
}

static void a_filesystem_without_quotas_is_told(void **state)
{
  char dir[] = "/tmp/cloche-unit-XXXXXX";
  struct volume_usage out = {.bytes = 5};
  assert_non_null(mkdtemp(dir));
  int tree = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  volume_quota_start(tree, VOLUME);
  assert_true(volume_quota_set(tree, VOLUME, &(struct volume_limits){.bytes = 1 << 20}) < 0);
  assert_false(volume_quota_read(tree, VOLUME, &out));
  assert_int_equal(out.bytes, 5);
  close(tree);
  assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_project_is_made_of_the_id),
      cmocka_unit_test(other_attributes_of_the_tree_stay),
      cmocka_unit_test(limits_are_hard_and_in_blocks_of_1024_rounded_up),
      cmocka_unit_test(a_filesystem_without_quotas_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
