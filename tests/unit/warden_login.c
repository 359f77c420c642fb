/* SPDX-License-Identifier: Apache-2.0 */
/* warden_login.c - one-time codes of the console, and keys that end by themselves. */
#include "unit.h"

#include "warden/core/login_code.h"
#include "warden/db/catalog.h"
#include "wire/api_key.h"
#include <fcntl.h>
#include <stdio.h>

#define TEAM  "5b475f21-0949-4e2e-86db-ffbc334e9b85"
#define NOW   1000000
#define LATER (NOW + 10 * 1000000)

static int use(struct login_codes *c, const char *text, int64_t now, char team[UUID_SIZE])
{
  uint8_t hash[SHA256_LEN];
  login_code_hash(str_of(text), hash);
  return login_code_use(c, str_make(hash, sizeof(hash)), now, team);
}

static void a_code_opens_its_team_once(void **state)
{
  struct login_codes c = {0};
  char text[LOGIN_CODE_TEXT], team[UUID_SIZE];
  login_code_make(&c, STR(TEAM), NOW, 10, text);
  assert_int_equal(strlen(text), 40);
  assert_int_equal(use(&c, text, NOW, team), 0);
  assert_string_equal(team, TEAM);
  assert_int_equal(use(&c, text, NOW, team), -EACCES);
}

static void a_code_is_over_after_its_time(void **state)
{
  struct login_codes c = {0};
  char text[LOGIN_CODE_TEXT], team[UUID_SIZE];
  login_code_make(&c, STR(TEAM), NOW, 10, text);
  assert_int_equal(use(&c, text, LATER, team), -EACCES);
  assert_int_equal(use(&c, text, LATER - 1, team), 0);
}

static void what_is_no_code_opens_nothing(void **state)
{
  struct login_codes c = {0};
  char text[LOGIN_CODE_TEXT], team[UUID_SIZE];
  uint8_t zero[SHA256_LEN] = {0};
  assert_int_equal(login_code_use(&c, str_make(zero, sizeof(zero)), NOW, team), -EACCES); /* of a free place */
  login_code_make(&c, STR(TEAM), NOW, 10, text);
  assert_int_equal(use(&c, "", NOW, team), -EACCES);
  assert_int_equal(login_code_use(&c, STR("short"), NOW, team), -EACCES);
  text[0] = text[0] == 'a' ? 'b' : 'a';
  assert_int_equal(use(&c, text, NOW, team), -EACCES);
}

static void one_too_many_replaces_the_one_that_ends_first(void **state)
{
  struct login_codes c = {0};
  char text[LOGIN_CODES_MAX + 1][LOGIN_CODE_TEXT], team[UUID_SIZE];
  for (unsigned i = 0; i <= LOGIN_CODES_MAX; i++) {
    char other[UUID_SIZE] = TEAM;
    snprintf(other, sizeof(other), "%02u" TEAM, i); /* each of another team */
    login_code_make(&c, str_of(other), NOW, 10 + i, text[i]);
  }
  assert_int_equal(use(&c, text[0], NOW, team), -EACCES);
  for (unsigned i = 1; i <= LOGIN_CODES_MAX; i++)
    assert_int_equal(use(&c, text[i], NOW, team), 0);
}

static void codes_of_one_team_push_out_no_other_teams(void **state)
{
  struct login_codes c = {0};
  char other[LOGIN_CODE_TEXT], text[LOGIN_CODES_MAX * 2][LOGIN_CODE_TEXT], team[UUID_SIZE];
  login_code_make(&c, STR("a1d7e2a4-9d55-4e70-a2f5-7f3c7b3b0a11"), NOW, 5, other);
  for (unsigned i = 0; i < ARRAY_LEN(text); i++)
    login_code_make(&c, STR(TEAM), NOW, 10 + i, text[i]);
  assert_int_equal(use(&c, other, NOW, team), 0);
  for (unsigned i = 0; i < ARRAY_LEN(text); i++)
    assert_int_equal(use(&c, text[i], NOW, team), i + LOGIN_CODES_TEAM < ARRAY_LEN(text) ? -EACCES : 0);
}

static void a_key_that_is_over_opens_no_team_also_after_a_restart(void **state)
{
  char dir[] = "/tmp/cloche-unit-login.XXXXXX", path[128], first[KEY_TEXT], text[KEY_TEXT], mask[KEY_MASK_SIZE];
  uint8_t good[SHA256_LEN], over[SHA256_LEN];
  struct err err = ERR_NONE;
  struct store *store;
  struct catalog *c;
  assert_non_null(mkdtemp(dir));
  snprintf(path, sizeof(path), "%s/db", dir);
  assert_int_equal(store_open(path, &store, &err), 0);
  assert_int_equal(catalog_open(store, &c, first, &err), 0);
  struct str team = str_of(catalog_first_team(c)->id);
  key_make(text, good, mask);
  assert_int_equal(catalog_session_key_add(c, team, STR("console"), str_make(good, SHA256_LEN), str_of(mask),
                                           clock_wall_us() + 60 * 1000000ll, NULL, &err),
                   0);
  key_make(text, over, mask);
  assert_int_equal(catalog_session_key_add(c, team, STR("console"), str_make(over, SHA256_LEN), str_of(mask),
                                           clock_wall_us() - 1, NULL, &err),
                   0);
  for (int turn = 0; turn < 2; turn++) {
    assert_non_null(catalog_team_by_key(c, str_make(good, SHA256_LEN)));
    assert_null(catalog_team_by_key(c, str_make(over, SHA256_LEN)));
    catalog_close(c);
    store_close(store);
    assert_int_equal(store_open(path, &store, &err), 0);
    assert_int_equal(catalog_open(store, &c, first, &err), 0);
  }
  catalog_close(c);
  store_close(store);
  path_remove_tree(AT_FDCWD, dir);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_code_opens_its_team_once),
      cmocka_unit_test(a_code_is_over_after_its_time),
      cmocka_unit_test(what_is_no_code_opens_nothing),
      cmocka_unit_test(one_too_many_replaces_the_one_that_ends_first),
      cmocka_unit_test(codes_of_one_team_push_out_no_other_teams),
      cmocka_unit_test(a_key_that_is_over_opens_no_team_also_after_a_restart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
