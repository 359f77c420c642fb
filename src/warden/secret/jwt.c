/* SPDX-License-Identifier: Apache-2.0 */
/* jwt.c - see jwt.h. */
#include "warden/secret/jwt.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#define COORDINATE    32
#define DER_SIGNATURE 80

struct jwt_key {
  EVP_PKEY *key;
  struct jwt_public public;
};

static int fail(struct err *err, const char *what)
{
  ERR_clear_error();
  return err_set(err, -EINVAL, "%s", what);
}

static void add_base64url(struct buf *b, const void *p, size_t n)
{
  size_t from = b->n;
  base64_add(b, p, n, false);
  for (size_t i = from; i < b->n; i++)
    b->p[i] = b->p[i] == '+' ? '-' : b->p[i] == '/' ? '_' : b->p[i];
}

static void text_of(const uint8_t raw[COORDINATE], char out[JWT_TEXT_SIZE])
{
  cleanup_buf struct buf b = BUF_INIT(JWT_TEXT_SIZE);
  add_base64url(&b, raw, COORDINATE);
  str_copyz(buf_str(&b), out, JWT_TEXT_SIZE);
}

static bool coordinate(const EVP_PKEY *key, const char *name, char out[JWT_TEXT_SIZE])
{
  BIGNUM *n = NULL;
  uint8_t raw[COORDINATE];
  bool good = EVP_PKEY_get_bn_param(key, name, &n) == 1 && BN_bn2binpad(n, raw, sizeof(raw)) == (int)sizeof(raw);
  BN_free(n);
  if (good)
    text_of(raw, out);
  return good;
}

/* Takes the key. */
static int complete(EVP_PKEY *key, struct jwt_key **out, struct err *err)
{
  struct jwt_key *k = xcalloc(1, sizeof(*k));
  uint8_t hash[SHA256_LEN];
  k->key = key;
  if (!coordinate(key, OSSL_PKEY_PARAM_EC_PUB_X, k->public.x) ||
      !coordinate(key, OSSL_PKEY_PARAM_EC_PUB_Y, k->public.y)) {
    jwt_key_free(k);
    return fail(err, "the signing key is not one of P-256");
  }
  cleanup_buf struct buf b = BUF_INIT(256);
  buf_addf(&b, "{\"crv\":\"P-256\",\"kty\":\"EC\",\"x\":\"%s\",\"y\":\"%s\"}", k->public.x, k->public.y);
  sha256_of(b.p, b.n, hash);
  text_of(hash, k->public.id);
  *out = k;
  return 0;
}

int jwt_key_make(struct jwt_key **out, struct err *err)
{
  EVP_PKEY *key = EVP_EC_gen("P-256");
  return key ? complete(key, out, err) : fail(err, "no signing key could be made");
}

int jwt_key_read(struct str der, struct jwt_key **out, struct err *err)
{
  const uint8_t *p = (const uint8_t *)der.p;
  EVP_PKEY *key = der.n <= JWT_DER_MAX ? d2i_PrivateKey(EVP_PKEY_EC, NULL, &p, (long)der.n) : NULL;
  char group[16] = "";
  if (key && (EVP_PKEY_get_group_name(key, group, sizeof(group), NULL) != 1 || strcmp(group, "prime256v1") != 0)) {
    EVP_PKEY_free(key);
    key = NULL;
  }
  return key ? complete(key, out, err) : fail(err, "the signing key can't be read");
}

int jwt_key_write(const struct jwt_key *k, struct buf *der)
{
  uint8_t *p = NULL;
  int n = i2d_PrivateKey(k->key, &p);
  int r = n > 0 && n <= JWT_DER_MAX ? buf_add(der, p, (size_t)n) : -EINVAL;
  OPENSSL_clear_free(p, n > 0 ? (size_t)n : 0);
  return r;
}

const struct jwt_public *jwt_key_public(const struct jwt_key *k)
{
  return &k->public;
}

void jwt_key_free(struct jwt_key *k)
{
  if (k)
    EVP_PKEY_free(k->key);
  free(k);
}

/* The two numbers of a signature behind each other, as JWTs have them. */
static bool flatten(const uint8_t *der, size_t n, uint8_t out[2 * COORDINATE])
{
  ECDSA_SIG *s = d2i_ECDSA_SIG(NULL, &der, (long)n);
  bool good = s && BN_bn2binpad(ECDSA_SIG_get0_r(s), out, COORDINATE) == COORDINATE &&
              BN_bn2binpad(ECDSA_SIG_get0_s(s), out + COORDINATE, COORDINATE) == COORDINATE;
  ECDSA_SIG_free(s);
  return good;
}

int jwt_sign(const struct jwt_key *k, struct str claims, struct buf *out, struct err *err)
{
  uint8_t der[DER_SIGNATURE], flat[2 * COORDINATE];
  size_t n = sizeof(der), from = out->n;
  cleanup_buf struct buf head = BUF_INIT(256);
  buf_addf(&head, "{\"alg\":\"ES256\",\"typ\":\"JWT\",\"kid\":\"%s\"}", k->public.id);
  add_base64url(out, head.p, head.n);
  buf_addc(out, '.');
  add_base64url(out, claims.p, claims.n);
  if (buf_failed(out))
    return err_set(err, -ENOBUFS, "the token is too large");
  EVP_MD_CTX *c = EVP_MD_CTX_new();
  bool good = c && EVP_DigestSignInit(c, NULL, EVP_sha256(), NULL, k->key) == 1 &&
              EVP_DigestSign(c, der, &n, (const uint8_t *)out->p + from, out->n - from) == 1 && flatten(der, n, flat);
  EVP_MD_CTX_free(c);
  if (!good)
    return fail(err, "the token could not be signed");
  buf_addc(out, '.');
  add_base64url(out, flat, sizeof(flat));
  return buf_failed(out) ? err_set(err, -ENOBUFS, "the token is too large") : 0;
}

void jwt_public_put(struct jw *w, const struct jwt_public *p)
{
  const char *const members[][2] = {{"kty", "EC"},  {"crv", "P-256"}, {"alg", "ES256"}, {"use", "sig"},
                                    {"kid", p->id}, {"x", p->x},      {"y", p->y}};
  jw_open(w, '{');
  for (size_t i = 0; i < ARRAY_LEN(members); i++) {
    jw_key(w, members[i][0]);
    jw_z(w, members[i][1]);
  }
  jw_close(w, '}');
}
