/* SPDX-License-Identifier: Apache-2.0 */
/* warden_volume.c - volumes in the store, and the tokens that open them. */
#include "store_lab.h"

#include "warden/core/volume_mounts.h"
#include "warden/db/volume_store.h"
#include "warden/volume/volume_token.h"
#include <stdio.h>

#define ONE "11111111-1111-4111-8111-111111111111"
#define TWO "22222222-2222-4222-8222-222222222222"

static int put(struct store *s, const char *id, const char *team, const char *name, enum volume_state state)
{
  struct row_volume r = {.state = state, .created_us = 5};
  struct err err = ERR_NONE;
  snprintf(r.id, sizeof(r.id), "%s", id);
  snprintf(r.team, sizeof(r.team), "%s", team);
  snprintf(r.name, sizeof(r.name), "%s", name);
  return store_volume_put(s, &r, &err);
}

static int count(const struct row_volume *r, void *arg)
{
  *(int *)arg += 1;
  return 0;
}

static void a_name_is_taken_once_per_team(void **state)
{
  struct store *s = fresh("names");
  assert_int_equal(put(s, ONE, "team", "data", VOLUME_READY), 0);
  assert_int_equal(put(s, TWO, "team", "data", VOLUME_CREATING), -EEXIST);
  assert_int_equal(put(s, TWO, "other", "data", VOLUME_READY), 0);
  assert_int_equal(put(s, ONE, "team", "data", VOLUME_DELETING), 0);
  assert_int_equal(put(s, "33333333-3333-4333-8333-333333333333", "team", "data", VOLUME_READY), 0);
  store_close(s);
}

static void only_ready_ones_are_found_by_name(void **state)
{
  struct store *s = fresh("states");
  struct row_volume r;
  int n = 0;
  assert_int_equal(put(s, ONE, "team", "data", VOLUME_CREATING), 0);
  assert_int_equal(store_volume_by_name(s, STR("team"), STR("data"), &r), -ENOENT);
  store_volumes(s, "team", count, &n);
  assert_int_equal(n, 0);
  assert_int_equal(store_volume_count(s, "team"), 1);
  assert_int_equal(put(s, ONE, "team", "data", VOLUME_READY), 0);
  assert_int_equal(store_volume_by_name(s, STR("team"), STR("data"), &r), 0);
  assert_string_equal(r.id, ONE);
  assert_int_equal(store_volume_by_name(s, STR("other"), STR("data"), &r), -ENOENT);
  assert_int_equal(put(s, ONE, "team", "data", VOLUME_DELETING), 0);
  assert_int_equal(store_volume_get(s, STR(ONE), &r), 0);
  assert_int_equal(r.state, VOLUME_DELETING);
  assert_int_equal(store_volume_count(s, "team"), 1); /* its files are there until the row goes */
  assert_int_equal(store_volume_delete(s, ONE, NULL), 0);
  assert_int_equal(store_volume_count(s, "team"), 0);
  store_close(s);
}

static void a_token_opens_its_own_volume(void **state)
{
  char token[VOLUME_TOKEN_SIZE], id[UUID_SIZE];
  volume_token_make(STR("secret"), ONE, token);
  assert_int_equal(volume_token_read(STR("secret"), str_of(token), id), 0);
  assert_string_equal(id, ONE);
  assert_int_equal(strlen(token), VOLUME_TOKEN_SIZE - 1);
}

static void a_changed_token_opens_nothing(void **state)
{
  char token[VOLUME_TOKEN_SIZE], id[UUID_SIZE];
  volume_token_make(STR("secret"), ONE, token);
  assert_int_equal(volume_token_read(STR("other"), str_of(token), id), -EACCES);
  for (size_t i = 0; i < VOLUME_TOKEN_SIZE - 1; i++) {
    char was = token[i];
    token[i] = was == '0' ? '1' : '0';
    assert_int_equal(volume_token_read(STR("secret"), str_of(token), id), -EACCES);
    token[i] = was;
    assert_int_equal(volume_token_read(STR("secret"), str_make(token, i), id), -EACCES);
  }
  assert_int_equal(volume_token_read(STR("secret"), STR_NONE, id), -EACCES);
}

static void a_volume_is_in_use_by_its_id_only(void **state)
{
  assert_true(volume_mounts_have(TWO "\tdata\t/a\n" ONE "\tdata\t/b\n", ONE));
  assert_false(volume_mounts_have(TWO "\t" ONE "\t/a/" ONE "\n", ONE));
  assert_false(volume_mounts_have(TWO "\tdata\t/a\n", ONE));
  assert_false(volume_mounts_have("", ONE));
  assert_false(volume_mounts_have(NULL, ONE));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_name_is_taken_once_per_team), cmocka_unit_test(only_ready_ones_are_found_by_name),
      cmocka_unit_test(a_token_opens_its_own_volume),  cmocka_unit_test(a_volume_is_in_use_by_its_id_only),
      cmocka_unit_test(a_changed_token_opens_nothing),
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
