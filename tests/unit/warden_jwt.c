/* SPDX-License-Identifier: Apache-2.0 */
/* warden_jwt.c - keys that sign identity tokens, and their tokens, verified by OpenSSL alone. */
#include "unit.h"

#include "warden/secret/jwt.h"
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/x509.h>

static struct jwt_key *made(void)
{
  struct jwt_key *k = NULL;
  struct err err = ERR_NONE;
  if (jwt_key_make(&k, &err))
    fail_msg("%s", err.msg);
  return k;
}

static void decode(struct str text, struct buf *out)
{
  assert_int_equal(base64_decode(text, out), 0);
}

/* The published coordinates as a key. */
static EVP_PKEY *public_key(const struct jwt_public *p)
{
  cleanup_buf struct buf point = BUF_INIT(100);
  EVP_PKEY *key = NULL;
  buf_addc(&point, 4);
  decode(str_of(p->x), &point);
  decode(str_of(p->y), &point);
  assert_int_equal(point.n, 65);
  OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char *)"P-256", 0),
                         OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point.p, point.n),
                         OSSL_PARAM_construct_end()};
  EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
  assert_int_equal(EVP_PKEY_fromdata_init(c), 1);
  assert_int_equal(EVP_PKEY_fromdata(c, &key, EVP_PKEY_PUBLIC_KEY, params), 1);
  EVP_PKEY_CTX_free(c);
  return key;
}

static bool verifies(const struct jwt_public *p, struct str token)
{
  ptrdiff_t dot = str_rfind(token, '.');
  cleanup_buf struct buf flat = BUF_INIT(100);
  decode(str_skip(token, (size_t)dot + 1), &flat);
  assert_int_equal(flat.n, 64);
  ECDSA_SIG *s = ECDSA_SIG_new();
  ECDSA_SIG_set0(s, BN_bin2bn((uint8_t *)flat.p, 32, NULL), BN_bin2bn((uint8_t *)flat.p + 32, 32, NULL));
  uint8_t *der = NULL;
  int n = i2d_ECDSA_SIG(s, &der);
  ECDSA_SIG_free(s);
  EVP_PKEY *key = public_key(p);
  EVP_MD_CTX *c = EVP_MD_CTX_new();
  EVP_DigestVerifyInit(c, NULL, EVP_sha256(), NULL, key);
  int r = EVP_DigestVerify(c, der, (size_t)n, (const uint8_t *)token.p, (size_t)dot);
  EVP_MD_CTX_free(c);
  EVP_PKEY_free(key);
  OPENSSL_free(der);
  return r == 1;
}

static void tokens_verify_with_what_is_published(void **state)
{
  struct jwt_key *k = made(), *other = made();
  struct err err = ERR_NONE;
  for (int i = 0; i < 200; i++) { /* coordinates and signatures with zeros in front, too */
    cleanup_buf struct buf token = BUF_INIT(4096), head = BUF_INIT(400), claims = BUF_INIT(400), want = BUF_INIT(400);
    buf_addf(&want, "{\"n\":%d}", i);
    assert_int_equal(jwt_sign(k, buf_str(&want), &token, &err), 0);
    assert_true(verifies(jwt_key_public(k), buf_str(&token)));
    assert_false(verifies(jwt_key_public(other), buf_str(&token)));
    struct str first, rest, second;
    str_cut(buf_str(&token), '.', &first, &rest);
    str_cut(rest, '.', &second, &rest);
    decode(first, &head);
    decode(second, &claims);
    assert_true(str_eq(buf_str(&claims), buf_str(&want)));
    assert_non_null(strstr(buf_z(&head), "\"alg\":\"ES256\""));
    assert_non_null(strstr(buf_z(&head), jwt_key_public(k)->id));
    assert_true(str_find(buf_str(&token), '+') < 0 && str_find(buf_str(&token), '/') < 0 &&
                str_find(buf_str(&token), '=') < 0);
  }
  jwt_key_free(k);
  jwt_key_free(other);
}

static void a_key_is_the_same_after_it_was_kept(void **state)
{
  struct err err = ERR_NONE;
  for (int i = 0; i < 50; i++) {
    struct jwt_key *k = made(), *again = NULL;
    cleanup_buf struct buf der = BUF_INIT(JWT_DER_MAX), token = BUF_INIT(4096);
    assert_int_equal(jwt_key_write(k, &der), 0);
    assert_int_equal(jwt_key_read(buf_str(&der), &again, &err), 0);
    assert_memory_equal(jwt_key_public(k), jwt_key_public(again), sizeof(struct jwt_public));
    assert_int_equal(jwt_sign(again, STR("{}"), &token, &err), 0);
    assert_true(verifies(jwt_key_public(k), buf_str(&token)));
    for (size_t n = 0; n < der.n; n += 7) {
      struct jwt_key *cut = NULL;
      assert_int_equal(jwt_key_read(str_sub(buf_str(&der), 0, n), &cut, &err), -EINVAL);
    }
    jwt_key_free(k);
    jwt_key_free(again);
  }
}

static void a_key_of_another_curve_is_refused(void **state)
{
  struct err err = ERR_NONE;
  struct jwt_key *k = NULL;
  EVP_PKEY *other = EVP_EC_gen("P-384");
  uint8_t *der = NULL;
  int n = i2d_PrivateKey(other, &der);
  assert_int_equal(jwt_key_read(str_make(der, (size_t)n), &k, &err), -EINVAL);
  OPENSSL_free(der);
  EVP_PKEY_free(other);
}

static void a_token_without_room_is_no_token(void **state)
{
  struct err err = ERR_NONE;
  struct jwt_key *k = made();
  cleanup_buf struct buf small = BUF_INIT(150);
  assert_int_equal(jwt_sign(k, STR("{\"a\":1}"), &small, &err), -ENOBUFS);
  jwt_key_free(k);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tokens_verify_with_what_is_published),
      cmocka_unit_test(a_key_is_the_same_after_it_was_kept),
      cmocka_unit_test(a_key_of_another_curve_is_refused),
      cmocka_unit_test(a_token_without_room_is_no_token),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
