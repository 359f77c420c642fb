/* SPDX-License-Identifier: Apache-2.0 */
/* seal.c - see seal.h. A sealed value: one byte of format, salt, nonce, wrapped data key and its tag; nonce, value and
 * its tag. */
#include "warden/secret/seal.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#define FORMAT    1
#define SALT_LEN  24
#define NONCE_LEN 12
#define TAG_LEN   16
#define KEY_LEN   32
#define WRAP_LEN  (1 + SALT_LEN + NONCE_LEN + KEY_LEN + TAG_LEN)
#define LABEL_MAX 4096

_Static_assert(SEAL_OVERHEAD == WRAP_LEN + NONCE_LEN + TAG_LEN, "room for all but the value");

void wipe(void *p, size_t n)
{
  if (p)
    OPENSSL_cleanse(p, n);
}

void buf_wipe(struct buf *b)
{
  wipe(b->p, b->cap);
  buf_free(b);
}

void master_key_set(struct master_key *k, const uint8_t key[MASTER_KEY_LEN])
{
  uint8_t hash[SHA256_LEN];
  memcpy(k->key, key, MASTER_KEY_LEN);
  hmac_sha256(str_make(key, MASTER_KEY_LEN), STR("cloche master key id"), hash);
  hex_encode(hash, (MASTER_ID_SIZE - 1) / 2, k->id);
}

/* One pass of AES-256-GCM; out has n bytes. Decrypting needs the tag, encrypting fills it in. */
static int gcm(bool encrypt, const uint8_t key[KEY_LEN], const uint8_t *nonce, struct str label, struct str in,
               uint8_t *out, uint8_t *tag)
{
  EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
  int n = 0;
  bool good = c && in.n <= INT32_MAX && EVP_CipherInit_ex(c, EVP_aes_256_gcm(), NULL, key, nonce, encrypt) == 1 &&
              EVP_CipherUpdate(c, NULL, &n, (const uint8_t *)label.p, (int)label.n) == 1 &&
              (!in.n || EVP_CipherUpdate(c, out, &n, (const uint8_t *)in.p, (int)in.n) == 1);
  if (good && !encrypt)
    good = EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG_LEN, tag) == 1;
  uint8_t none[16];
  good = good && EVP_CipherFinal_ex(c, none, &n) == 1;
  if (good && encrypt)
    good = EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG_LEN, tag) == 1;
  EVP_CIPHER_CTX_free(c);
  return good ? 0 : -EBADMSG;
}

static void wrapping_key(const struct master_key *k, const uint8_t *salt, uint8_t out[KEY_LEN])
{
  static const char purpose[] = "cloche wrapping key";
  char text[sizeof(purpose) + SALT_LEN];
  memcpy(text, purpose, sizeof(purpose));
  memcpy(text + sizeof(purpose), salt, SALT_LEN);
  hmac_sha256(str_make(k->key, sizeof(k->key)), str_make(text, sizeof(text)), out);
}

static int wrap(const struct master_key *k, struct str label, const uint8_t data_key[KEY_LEN], uint8_t out[WRAP_LEN])
{
  uint8_t *salt = out + 1, *nonce = salt + SALT_LEN, *body = nonce + NONCE_LEN, key[KEY_LEN];
  out[0] = FORMAT;
  random_bytes(salt, SALT_LEN + NONCE_LEN);
  wrapping_key(k, salt, key);
  int r = gcm(true, key, nonce, label, str_make(data_key, KEY_LEN), body, body + KEY_LEN);
  wipe(key, sizeof(key));
  return r;
}

static int unwrap(const struct master_key *k, struct str label, struct str sealed, uint8_t data_key[KEY_LEN])
{
  const uint8_t *in = (const uint8_t *)sealed.p;
  uint8_t key[KEY_LEN], tag[TAG_LEN];
  if (sealed.n < WRAP_LEN + NONCE_LEN + TAG_LEN || in[0] != FORMAT || label.n > LABEL_MAX)
    return -EBADMSG;
  const uint8_t *salt = in + 1, *nonce = salt + SALT_LEN, *body = nonce + NONCE_LEN;
  memcpy(tag, body + KEY_LEN, sizeof(tag));
  wrapping_key(k, salt, key);
  int r = gcm(false, key, nonce, label, str_make(body, KEY_LEN), data_key, tag);
  wipe(key, sizeof(key));
  return r;
}

int seal(const struct master_key *k, struct str label, struct str value, struct buf *out)
{
  uint8_t key[KEY_LEN];
  size_t all = WRAP_LEN + NONCE_LEN + value.n + TAG_LEN;
  if (label.n > LABEL_MAX)
    return -EINVAL;
  int r = buf_reserve(out, all);
  if (r)
    return r;
  uint8_t *at = (uint8_t *)out->p + out->n, *nonce = at + WRAP_LEN, *body = nonce + NONCE_LEN;
  random_bytes(key, sizeof(key));
  random_bytes(nonce, NONCE_LEN);
  r = wrap(k, label, key, at);
  r = r ? r : gcm(true, key, nonce, label, value, body, body + value.n);
  wipe(key, sizeof(key));
  out->n += r ? 0 : all;
  return r;
}

int seal_open(const struct master_key *k, struct str label, struct str sealed, struct buf *out)
{
  uint8_t key[KEY_LEN], tag[TAG_LEN];
  int r = unwrap(k, label, sealed, key);
  if (r)
    return r;
  struct str nonce = str_sub(sealed, WRAP_LEN, NONCE_LEN), body = str_skip(sealed, WRAP_LEN + NONCE_LEN);
  body.n -= TAG_LEN;
  memcpy(tag, body.p + body.n, sizeof(tag));
  r = buf_reserve(out, body.n + 1);
  if (!r)
    r = gcm(false, key, (const uint8_t *)nonce.p, label, body, (uint8_t *)out->p + out->n, tag);
  if (r && out->p)
    wipe(out->p + out->n, MIN(body.n, out->cap - out->n)); /* what was decrypted before the tag was looked at */
  wipe(key, sizeof(key));
  out->n += r ? 0 : body.n;
  return r;
}

int seal_rewrap(const struct master_key *from, const struct master_key *to, struct str label, struct str sealed,
                struct buf *out)
{
  uint8_t key[KEY_LEN], head[WRAP_LEN];
  int r = unwrap(from, label, sealed, key);
  r = r ? r : wrap(to, label, key, head);
  wipe(key, sizeof(key));
  r = r ? r : buf_add(out, head, sizeof(head));
  return r ? r : buf_adds(out, str_skip(sealed, WRAP_LEN));
}
