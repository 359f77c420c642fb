/* SPDX-License-Identifier: Apache-2.0 */
/* cert.c - certificates for people without a public name.
 *
 * Keys are P-256, signatures SHA-256. The authority may sign leaves only (pathlen 0) and lives ten years; a leaf lives
 * LEAF_DAYS, the longest that strict clients accept, and serves TLS only. Serial numbers are random. */
#include "net/cert.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <time.h>

#define AUTHORITY_DAYS 3650
#define LEAF_DAYS      820
#define BACKDATE_S     3600 /* clocks differ */

static void key_free(EVP_PKEY **k)
{
  EVP_PKEY_free(*k);
}
static void x509_free(X509 **x)
{
  X509_free(*x);
}
static void bio_free(BIO **b)
{
  BIO_free(*b);
}
#define cleanup_key  __attribute__((cleanup(key_free)))
#define cleanup_x509 __attribute__((cleanup(x509_free)))
#define cleanup_bio  __attribute__((cleanup(bio_free)))

void cert_free(struct cert *c)
{
  if (c->key.p)
    OPENSSL_cleanse(c->key.p, c->key.cap);
  buf_free(&c->key);
  buf_free(&c->cert);
}

static int fail(struct err *err, const char *what)
{
  const char *why = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return err_set(err, -EINVAL, "%s: %s", what, why ? why : "not possible");
}

static BIO *bio_over(const struct buf *b)
{
  return BIO_new_mem_buf(b->p, (int)MIN(b->n, (size_t)INT32_MAX));
}

static int drain(BIO *b, struct buf *out)
{
  char *p;
  long n = BIO_get_mem_data(b, &p);
  return n > 0 ? buf_add(out, p, (size_t)n) : -ENOMEM;
}

static int write_out(X509 *x, EVP_PKEY *key, struct cert *out, struct err *err)
{
  cleanup_bio BIO *c = BIO_new(BIO_s_mem());
  cleanup_bio BIO *k = BIO_new(BIO_s_secmem());
  if (!c || !k || !PEM_write_bio_X509(c, x) || !PEM_write_bio_PrivateKey(k, key, NULL, NULL, 0, NULL, NULL))
    return fail(err, "writing a certificate");
  return drain(c, &out->cert) || drain(k, &out->key) ? err_set(err, -ENOMEM, "writing a certificate: out of memory")
                                                     : 0;
}

static int add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
  X509V3_CTX ctx;
  X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
  X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
  int ok = e && X509_add_ext(x, e, -1);
  X509_EXTENSION_free(e);
  return ok ? 0 : -EINVAL;
}

static int set_serial(X509 *x)
{
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof(bytes)) != 1)
    return -EIO;
  bytes[0] = (bytes[0] & 0x7f) | 0x40; /* positive, and always of one length */
  BIGNUM *n = BN_bin2bn(bytes, sizeof(bytes), NULL);
  int ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x));
  BN_free(n);
  return ok ? 0 : -ENOMEM;
}

static int set_name(X509 *x, const char *common)
{
  X509_NAME *name = X509_get_subject_name(x);
  int ok = X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8, (const unsigned char *)"Cloche", -1, -1, 0) &&
           X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)common, -1, -1, 0);
  return ok ? 0 : -EINVAL;
}

static X509 *draft(const char *common, EVP_PKEY *key, int days)
{
  cleanup_x509 X509 *x = X509_new();
  if (!x || !X509_set_version(x, 2) || set_serial(x) || set_name(x, common) || !X509_set_pubkey(x, key))
    return NULL;
  if (!X509_gmtime_adj(X509_getm_notBefore(x), -BACKDATE_S) || !X509_time_adj_ex(X509_getm_notAfter(x), days, 0, NULL))
    return NULL;
  return steal(&x);
}

int cert_authority(const char *name, struct cert *out, struct err *err)
{
  cleanup_key EVP_PKEY *key = EVP_EC_gen("P-256");
  cleanup_x509 X509 *x = key ? draft(name, key, AUTHORITY_DAYS) : NULL;
  if (!x)
    return fail(err, "making an authority");
  X509_set_issuer_name(x, X509_get_subject_name(x));
  if (add_extension(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      add_extension(x, x, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      add_extension(x, x, NID_subject_key_identifier, "hash") || !X509_sign(x, key, EVP_sha256()))
    return fail(err, "making an authority");
  return write_out(x, key, out, err);
}

static bool is_address(const char *s)
{
  unsigned char a[16];
  return inet_pton(AF_INET, s, a) == 1 || inet_pton(AF_INET6, s, a) == 1;
}

/* Only what can stand in a name: this text is parsed by OpenSSL, where a comma would begin another entry. */
static bool is_name(const char *s)
{
  size_t n = strlen(s);
  if (!strncmp(s, "*.", 2))
    s += 2;
  for (const char *p = s; *p; p++)
    if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') || *p == '-' || *p == '.'))
      return false;
  return n > 0 && n < 254 && s[0] && s[0] != '.' && s[0] != '-';
}

static int list_names(const char *const *names, size_t n, struct buf *out, struct err *err)
{
  for (size_t i = 0; i < n; i++) {
    bool address = is_address(names[i]);
    if (!address && !is_name(names[i]))
      return err_set(err, -EINVAL, "'%.200s' is neither a host name nor an IP address", names[i]);
    buf_addf(out, "%s%s:%s", i ? "," : "", address ? "IP" : "DNS", names[i]);
  }
  return buf_failed(out);
}

static const char *common_of(const char *const *names, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (strlen(names[i]) <= 64)
      return names[i];
  return "cloche";
}

struct cert_signer {
  X509 *issuer;
  EVP_PKEY *signer, *key;
};

void cert_signer_free(struct cert_signer *s)
{
  if (!s)
    return;
  X509_free(s->issuer);
  EVP_PKEY_free(s->signer);
  EVP_PKEY_free(s->key);
  free(s);
}

struct cert_signer *cert_signer_new(const struct cert *authority, struct err *err)
{
  struct cert_signer *s = xcalloc(1, sizeof(*s));
  cleanup_bio BIO *cb = bio_over(&authority->cert);
  cleanup_bio BIO *kb = bio_over(&authority->key);
  s->issuer = cb ? PEM_read_bio_X509(cb, NULL, NULL, (void *)"") : NULL;
  s->signer = kb ? PEM_read_bio_PrivateKey(kb, NULL, NULL, (void *)"") : NULL;
  if (!s->issuer || !s->signer || X509_check_private_key(s->issuer, s->signer) != 1)
    fail(err, "reading the authority");
  else if (!(s->key = EVP_EC_gen("P-256")))
    fail(err, "making a key");
  else
    return s;
  cert_signer_free(s);
  return NULL;
}

int cert_signer_leaf(const struct cert_signer *s, const char *const *names, size_t n, struct cert *out, struct err *err)
{
  cleanup_buf struct buf alt = BUF_INIT(1 << 16);
  int r = list_names(names, n, &alt, err);
  if (r)
    return r;
  X509 *issuer = s->issuer;
  cleanup_x509 X509 *x = draft(common_of(names, n), s->key, LEAF_DAYS);
  if (!x || !X509_set_issuer_name(x, X509_get_subject_name(issuer)))
    return fail(err, "making a certificate");
  if (add_extension(x, issuer, NID_basic_constraints, "critical,CA:FALSE") ||
      add_extension(x, issuer, NID_key_usage, "critical,digitalSignature") ||
      add_extension(x, issuer, NID_ext_key_usage, "serverAuth") ||
      add_extension(x, issuer, NID_subject_key_identifier, "hash") ||
      add_extension(x, issuer, NID_authority_key_identifier, "keyid:always") ||
      add_extension(x, issuer, NID_subject_alt_name, buf_z(&alt)) || !X509_sign(x, s->signer, EVP_sha256()))
    return fail(err, "making a certificate");
  return write_out(x, s->key, out, err);
}

int cert_leaf(const struct cert *authority, const char *const *names, size_t n, struct cert *out, struct err *err)
{
  struct cert_signer *s = cert_signer_new(authority, err);
  int r = s ? cert_signer_leaf(s, names, n, out, err) : -EINVAL;
  cert_signer_free(s);
  return r;
}

/* ---- looking ---- */

static void name_text(const X509_NAME *name, char *out, size_t size)
{
  cleanup_bio BIO *b = BIO_new(BIO_s_mem());
  char *p;
  out[0] = 0;
  if (!b || X509_NAME_print_ex(b, name, 0, XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB) < 0)
    return;
  long n = BIO_get_mem_data(b, &p);
  str_copyz(str_sub(str_make(p, (size_t)n), 0, size - 1), out, size);
}

static void names_text(X509 *x, char *out, size_t size)
{
  GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
  size_t at = 0;
  out[0] = 0;
  for (int i = 0; i < sk_GENERAL_NAME_num(names) && at < size; i++) {
    const GENERAL_NAME *g = sk_GENERAL_NAME_value(names, i);
    char text[INET6_ADDRSTRLEN] = "";
    if (g->type == GEN_DNS)
      at += (size_t)snprintf(out + at, size - at, "%s%.*s", at ? " " : "", ASN1_STRING_length(g->d.dNSName),
                             ASN1_STRING_get0_data(g->d.dNSName));
    else if (g->type == GEN_IPADD && inet_ntop(ASN1_STRING_length(g->d.iPAddress) == 4 ? AF_INET : AF_INET6,
                                               ASN1_STRING_get0_data(g->d.iPAddress), text, sizeof(text)))
      at += (size_t)snprintf(out + at, size - at, "%s%s", at ? " " : "", text);
  }
  GENERAL_NAMES_free(names);
}

static void fingerprint_text(const X509 *x, char *out, size_t size)
{
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  out[0] = 0;
  if (X509_digest(x, EVP_sha256(), digest, &n) != 1)
    return;
  for (unsigned i = 0; i < n && 3 * i + 3 < size; i++)
    snprintf(out + 3 * i, size - 3 * i, i + 1 < n ? "%02X:" : "%02X", digest[i]);
}

int cert_look(struct str pem, struct cert_facts *out, struct err *err)
{
  struct buf b = {.p = (char *)pem.p, .n = pem.n};
  cleanup_bio BIO *in = bio_over(&b);
  cleanup_x509 X509 *x = in ? PEM_read_bio_X509(in, NULL, NULL, (void *)"") : NULL;
  struct tm tm = {0};
  int days = 0, seconds = 0;
  if (!x)
    return fail(err, "reading the certificate");
  name_text(X509_get_subject_name(x), out->subject, sizeof(out->subject));
  name_text(X509_get_issuer_name(x), out->issuer, sizeof(out->issuer));
  names_text(x, out->names, sizeof(out->names));
  fingerprint_text(x, out->fingerprint, sizeof(out->fingerprint));
  ASN1_TIME_to_tm(X509_get0_notAfter(x), &tm);
  strftime(out->until, sizeof(out->until), "%Y-%m-%dT%H:%M:%SZ", &tm);
  ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(x));
  out->days_left = days;
  return 0;
}

int cert_list_check(struct str pem, struct err *err)
{
  struct buf b = {.p = (char *)pem.p, .n = pem.n};
  cleanup_bio BIO *in = bio_over(&b);
  size_t n = 0;
  ERR_clear_error();
  for (X509 *x; in && (x = PEM_read_bio_X509(in, NULL, NULL, (void *)"")); n++)
    X509_free(x);
  unsigned long last = ERR_peek_last_error();
  bool end = ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
  if (!n || !end)
    return fail(err, "reading certificates");
  ERR_clear_error();
  return 0;
}
