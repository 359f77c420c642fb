/* SPDX-License-Identifier: Apache-2.0 */
/* warden_secret.c - sealed values, master keys, and the rows they lie in. */
#include "store_lab.h"

#include "warden/db/identity_store.h"
#include "warden/db/secret_store.h"
#include "warden/secret/keyring.h"
#include "warden/secret/seal.h"
#include <stdio.h>
#include <sys/stat.h>

#define LABEL "secret\0sec_a\0team\0name\0001"
#define VALUE "sk-live-0123456789"

static struct master_key key_of(uint8_t fill)
{
  struct master_key k;
  uint8_t raw[MASTER_KEY_LEN];
  memset(raw, fill, sizeof(raw));
  master_key_set(&k, raw);
  return k;
}

static struct str label(void)
{
  return (struct str){LABEL, sizeof(LABEL) - 1};
}

static void a_value_opens_with_its_key_and_label(void **state)
{
  struct master_key k = key_of(1);
  cleanup_buf struct buf sealed = BUF_INIT(4096), out = BUF_INIT(4096);
  assert_int_equal(seal(&k, label(), STR(VALUE), &sealed), 0);
  assert_int_equal(sealed.n, strlen(VALUE) + SEAL_OVERHEAD);
  assert_true(str_search(buf_str(&sealed), STR(VALUE)) < 0);
  assert_int_equal(seal_open(&k, label(), buf_str(&sealed), &out), 0);
  assert_true(str_is(buf_str(&out), VALUE));
}

static void the_same_value_never_looks_the_same(void **state)
{
  struct master_key k = key_of(1);
  cleanup_buf struct buf a = BUF_INIT(4096), b = BUF_INIT(4096);
  assert_int_equal(seal(&k, label(), STR(VALUE), &a), 0);
  assert_int_equal(seal(&k, label(), STR(VALUE), &b), 0);
  for (size_t i = 1; i + 8 <= a.n; i++) /* no salt, nonce, wrapped key or text is there again */
    assert_true(str_search(buf_str(&b), str_sub(buf_str(&a), i, 8)) < 0);
}

static void no_changed_bit_is_overlooked(void **state)
{
  struct master_key k = key_of(1);
  cleanup_buf struct buf sealed = BUF_INIT(4096), out = BUF_INIT(4096);
  assert_int_equal(seal(&k, label(), STR(VALUE), &sealed), 0);
  for (size_t i = 0; i < sealed.n * 8; i++) {
    sealed.p[i / 8] ^= (char)(1 << i % 8);
    assert_int_equal(seal_open(&k, label(), buf_str(&sealed), &out), -EBADMSG);
    assert_int_equal(out.n, 0);
    sealed.p[i / 8] ^= (char)(1 << i % 8);
  }
  for (size_t n = 0; n < sealed.n; n++)
    assert_int_equal(seal_open(&k, label(), str_sub(buf_str(&sealed), 0, n), &out), -EBADMSG);
  assert_int_equal(seal_open(&k, label(), buf_str(&sealed), &out), 0);
}

static void another_owner_version_or_key_does_not_open_it(void **state)
{
  static const struct str others[] = {STR("secret\0sec_b\0team\0name\0001"), STR("secret\0sec_a\0mine\0name\0001"),
                                      STR("secret\0sec_a\0team\0else\0001"), STR("secret\0sec_a\0team\0name\0002"),
                                      STR("")};
  struct master_key k = key_of(1), other = key_of(2);
  cleanup_buf struct buf sealed = BUF_INIT(4096), out = BUF_INIT(4096);
  assert_int_equal(seal(&k, label(), STR(VALUE), &sealed), 0);
  for (size_t i = 0; i < ARRAY_LEN(others); i++)
    assert_int_equal(seal_open(&k, others[i], buf_str(&sealed), &out), -EBADMSG);
  assert_int_equal(seal_open(&other, label(), buf_str(&sealed), &out), -EBADMSG);
  assert_int_equal(out.n, 0);
}

static void a_value_goes_to_another_master_key(void **state)
{
  struct master_key old = key_of(1), new = key_of(2);
  cleanup_buf struct buf sealed = BUF_INIT(4096), moved = BUF_INIT(4096), out = BUF_INIT(4096);
  assert_int_equal(seal(&old, label(), STR(VALUE), &sealed), 0);
  assert_int_equal(seal_rewrap(&new, &old, label(), buf_str(&sealed), &moved), -EBADMSG);
  assert_int_equal(seal_rewrap(&old, &new, STR("other"), buf_str(&sealed), &moved), -EBADMSG);
  assert_int_equal(seal_rewrap(&old, &new, label(), buf_str(&sealed), &moved), 0);
  assert_int_equal(seal_open(&old, label(), buf_str(&moved), &out), -EBADMSG);
  assert_int_equal(seal_open(&new, label(), buf_str(&moved), &out), 0);
  assert_true(str_is(buf_str(&out), VALUE));
}

/* ---- keys ---- */

static void in_dir(const char *name, char out[128])
{
  snprintf(out, 128, "%s/%s", dir, name);
}

static void a_key_file_is_made_grown_and_cut(void **state)
{
  struct keyring k = {0}, again = {0};
  struct err err = ERR_NONE;
  struct stat st;
  char file[128];
  in_dir("made.key", file);
  assert_int_equal(keyring_read(&k, file, &err), -ENOENT);
  assert_int_equal(keyring_add(&k, &err), 0);
  assert_int_equal(stat(file, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0600);
  assert_int_equal(st.st_size, 65);
  char first[MASTER_ID_SIZE];
  memcpy(first, k.keys[0].id, sizeof(first));
  assert_int_equal(keyring_add(&k, &err), 0);
  assert_int_equal(keyring_read(&again, file, &err), 0);
  assert_int_equal(again.n, 2);
  assert_string_equal(again.keys[1].id, first);
  assert_string_not_equal(again.keys[0].id, first);
  assert_ptr_equal(keyring_find(&again, first), &again.keys[1]);
  assert_int_equal(keyring_drop_old(&k, &err), 0);
  assert_int_equal(keyring_read(&again, file, &err), 0);
  assert_int_equal(again.n, 1);
  assert_null(keyring_find(&again, first));
}

static void a_key_file_that_others_can_read_is_refused(void **state)
{
  struct keyring k = {0};
  struct err err = ERR_NONE;
  char file[128];
  in_dir("open.key", file);
  keyring_read(&k, file, &err);
  assert_int_equal(keyring_add(&k, &err), 0);
  assert_int_equal(chmod(file, 0640), 0);
  assert_int_equal(keyring_read(&k, file, &err), -EPERM);
  assert_non_null(strstr(err.msg, "chmod 600"));
  assert_int_equal(k.n, 0);
}

static void bad_keys_are_refused_without_showing_them(void **state)
{
  static const char hex[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
  static const char *const bad[] = {"", "  \n", "abcd",
                                    "zz112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"};
  struct keyring k = {.path = "the file"};
  struct err err = ERR_NONE;
  assert_int_equal(keyring_parse(&k, str_of(hex), &err), 0);
  assert_int_equal(k.n, 1);
  for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
    assert_int_equal(keyring_parse(&k, str_of(bad[i]), &err), -EINVAL);
    assert_int_equal(k.n, 0);
    assert_non_null(strstr(err.msg, "the file"));
    assert_null(strstr(err.msg, "2233"));
  }
  cleanup_buf struct buf many = BUF_INIT(4096);
  for (size_t i = 0; i <= KEYRING_MAX; i++)
    buf_addf(&many, "%s\r\n\t", hex);
  assert_int_equal(keyring_parse(&k, buf_str(&many), &err), -E2BIG);
}

static void a_variable_is_taken_out_of_the_environment(void **state)
{
  static const char two[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff "
                            "11112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
  struct keyring k = {0};
  struct err err = ERR_NONE;
  setenv(KEYRING_VARIABLE, two, 1);
  const char *where = getenv(KEYRING_VARIABLE);
  assert_int_equal(keyring_read(&k, "/nowhere/at/all", &err), 0);
  assert_int_equal(k.n, 2);
  assert_null(getenv(KEYRING_VARIABLE));
  assert_int_equal(where[0], 0);
  assert_int_equal(keyring_add(&k, &err), -EROFS);
  assert_non_null(strstr(err.msg, KEYRING_VARIABLE));
  assert_int_equal(keyring_read(&k, "/nowhere/at/all", &err), 0); /* it is kept */
  assert_int_equal(k.n, 2);
}

static void a_credential_comes_before_the_file(void **state)
{
  struct keyring k = {0};
  struct err err = ERR_NONE;
  char file[128];
  static const char hex[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";
  in_dir("cloche-secrets-key", file);
  assert_int_equal(file_write_atomic(file, hex, strlen(hex), 0400), 0);
  setenv("CREDENTIALS_DIRECTORY", dir, 1);
  assert_int_equal(keyring_read(&k, "/nowhere/at/all", &err), 0);
  assert_int_equal(k.source, KEY_OF_CREDENTIAL);
  assert_int_equal(keyring_add(&k, &err), -EROFS);
  setenv("CREDENTIALS_DIRECTORY", "/nowhere", 1);
  assert_int_equal(keyring_read(&k, "/nowhere/at/all", &err), -ENOENT);
  unsetenv("CREDENTIALS_DIRECTORY");
}

/* ---- rows ---- */

static int add_row(struct store *s, const char *id, const char *team, const char *name, int64_t when)
{
  struct err err = ERR_NONE;
  struct row_secret r = {
      .version = 1, .metadata = (char *)"{}", .created_us = when, .key = "k", .sealed = BUF_INIT(100)};
  snprintf(r.id, sizeof(r.id), "%s", id);
  snprintf(r.team, sizeof(r.team), "%s", team);
  snprintf(r.name, sizeof(r.name), "%s", name);
  buf_addz(&r.sealed, "sealed");
  int e = store_secret_add(s, &r, &err);
  buf_free(&r.sealed);
  return e;
}

static int join_ids(const struct row_secret *r, void *arg)
{
  return buf_addf(arg, "%s ", r->id);
}

static void rows_are_found_by_their_team_only(void **state)
{
  struct store *s = fresh("secrets");
  struct row_secret r;
  cleanup_buf struct buf ids = BUF_INIT(1000);
  assert_int_equal(add_row(s, "sec_2", "mine", "one", 5), 0);
  assert_int_equal(add_row(s, "sec_1", "mine", "two", 5), 0);
  assert_int_equal(add_row(s, "sec_3", "mine", "three", 1), 0);
  assert_int_equal(add_row(s, "sec_4", "theirs", "one", 2), 0);
  assert_int_not_equal(add_row(s, "sec_5", "mine", "one", 9), 0);
  assert_int_not_equal(add_row(s, "sec_4", "mine", "new", 9), 0); /* another team's id is not taken over */
  assert_int_equal(store_secret_get(s, "mine", "sec_4", &r), -ENOENT);
  assert_int_equal(store_secret_find(s, "theirs", "two", &r), -ENOENT);
  assert_int_equal(store_secret_find(s, "theirs", "one", &r), 0);
  assert_string_equal(r.id, "sec_4");
  r.version = 2;
  memcpy(r.team, "mine", 5);
  assert_int_equal(store_secret_change(s, &r, NULL), 0); /* changes no row */
  row_secret_free(&r);
  assert_int_equal(store_secret_get(s, "theirs", "sec_4", &r), 0);
  assert_int_equal(r.version, 1);
  row_secret_free(&r);
  store_secrets(s, "mine", 0, "", 10, join_ids, &ids);
  assert_string_equal(buf_z(&ids), "sec_3 sec_1 sec_2 ");
  buf_clear(&ids);
  store_secrets(s, "mine", 5, "sec_1", 10, join_ids, &ids);
  assert_string_equal(buf_z(&ids), "sec_2 ");
  assert_int_equal(store_secret_count(s, "mine"), 3);
  store_close(s);
}

/* ---- identity ---- */

static int keep_tokens(const struct row_box *r, void *arg)
{
  return buf_addf(arg, "%s=%s;", r->id, r->tokens);
}

static void tokens_live_as_long_as_their_box(void **state)
{
  struct store *s = fresh("tokens");
  cleanup_buf struct buf all = BUF_INIT(1000);
  struct row_box b = {.id = "ione", .team = "t", .template_id = "tpl", .alias = "base", .tokens = (char *)"aws\tsts\n"};
  b.config = b.init = b.allow = b.deny = (char *)"";
  assert_int_equal(store_box_put(s, &b, NULL), 0);
  b.flags = 1;
  assert_int_equal(store_box_put(s, &b, NULL), 0);
  memcpy(b.id, "itwo", 5);
  b.tokens = NULL;
  assert_int_equal(store_box_put(s, &b, NULL), 0);
  assert_int_equal(store_boxes(s, keep_tokens, &all), 0);
  assert_string_equal(buf_z(&all), "ione=aws\tsts\n;itwo=;");
  assert_int_equal(store_box_ended(s, "ione", "t", 9, "killed", NULL), 0);
  memcpy(b.id, "ione", 5);
  assert_int_equal(store_box_put(s, &b, NULL), 0);
  buf_clear(&all);
  assert_int_equal(store_boxes(s, keep_tokens, &all), 0);
  assert_string_equal(buf_z(&all), "ione=;itwo=;");
  store_close(s);
}

static int join_keys(const struct row_identity_key *r, void *arg)
{
  return buf_addf(arg, "%s:%zu ", r->id, r->sealed.n);
}

static void a_key_that_signs_no_more_has_no_private_part(void **state)
{
  struct store *s = fresh("identity");
  cleanup_buf struct buf all = BUF_INIT(1000);
  struct row_identity_key k = {.id = "first", .created_us = 10, .key = "k", .sealed = BUF_INIT(100)}, got;
  buf_addz(&k.sealed, "private");
  assert_int_equal(store_identity_key_current(s, &got), -ENOENT);
  assert_int_equal(store_identity_key_add(s, &k, 100, NULL), 0);
  memcpy(k.id, "second", 7);
  k.created_us = 20;
  assert_int_equal(store_identity_key_add(s, &k, 200, NULL), 0);
  assert_int_equal(store_identity_keys(s, join_keys, &all), 0);
  assert_string_equal(buf_z(&all), "second:7 first:0 ");
  assert_int_equal(store_identity_key_current(s, &got), 0);
  assert_string_equal(got.id, "second");
  buf_free(&got.sealed);
  assert_int_equal(store_identity_keys_forget(s, 200), 0);
  buf_clear(&all);
  assert_int_equal(store_identity_keys(s, join_keys, &all), 0);
  assert_string_equal(buf_z(&all), "second:7 first:0 ");
  assert_int_equal(store_identity_keys_forget(s, 201), 0);
  buf_clear(&all);
  assert_int_equal(store_identity_keys(s, join_keys, &all), 0);
  assert_string_equal(buf_z(&all), "second:7 ");
  buf_free(&k.sealed);
  store_close(s);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_value_opens_with_its_key_and_label),
      cmocka_unit_test(the_same_value_never_looks_the_same),
      cmocka_unit_test(no_changed_bit_is_overlooked),
      cmocka_unit_test(another_owner_version_or_key_does_not_open_it),
      cmocka_unit_test(a_value_goes_to_another_master_key),
      cmocka_unit_test(a_key_file_is_made_grown_and_cut),
      cmocka_unit_test(a_key_file_that_others_can_read_is_refused),
      cmocka_unit_test(bad_keys_are_refused_without_showing_them),
      cmocka_unit_test(a_variable_is_taken_out_of_the_environment),
      cmocka_unit_test(a_credential_comes_before_the_file),
      cmocka_unit_test(rows_are_found_by_their_team_only),
      cmocka_unit_test(tokens_live_as_long_as_their_box),
      cmocka_unit_test(a_key_that_signs_no_more_has_no_private_part),
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
