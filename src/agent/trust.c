/* SPDX-License-Identifier: Apache-2.0 */
/* trust.c - see trust.h. The agent has no TLS library: certificates are moved as text, and Java's store has a format
 * simple enough to be written here. */
#include "agent/trust.h"

#include "wire/boot_packet.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define ANCHORS     "/usr/local/share/ca-certificates"
#define ANCHOR      ANCHORS "/cloche-egress.crt"
#define CERTS       "/etc/ssl/certs"
#define LINK        CERTS "/" BOOT_AUTHORITY_HASH ".0"
#define JAVA        CERTS "/java/cacerts"
#define SECTION     "# The authority of this sandbox's egress\n"
#define SECTION_END "# End of the authority of this sandbox's egress\n"
#define BUNDLE_MAX  ((size_t)8 << 20)
#define STORE_MAX   ((size_t)16 << 20)
#define PEM_BEGIN   "-----BEGIN CERTIFICATE-----"
#define PEM_END     "-----END CERTIFICATE-----"

/* Where distributions keep all roots in one file; the first that is there is the one that variables name. */
static const char *const bundles[] = {CERTS "/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                                      "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};

/* ---- files ---- */

/* Whole or not at all: programs read it at the same time. */
static int replace_file(const char *path, struct str text)
{
  char temporary[PATH_MAX];
  if ((size_t)snprintf(temporary, sizeof(temporary), "%s.cloche-new", path) >= sizeof(temporary))
    return -ENAMETOOLONG;
  unlink(temporary);
  cleanup_fd int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd < 0)
    return -errno;
  int r = fd_write_all(fd, text.p, text.n);
  if (!r && (fchmod(fd, 0644) || rename(temporary, path)))
    r = -errno;
  if (r)
    unlink(temporary);
  return r;
}

static void note(const char *path, int r)
{
  if (r < 0)
    log_warn("%s: the authority of the sandbox's egress is not added: %s", path, strerror(-r));
}

static bool same_file(const char *path, struct str text)
{
  cleanup_buf struct buf now = BUF_INIT(1 << 16);
  return !file_read(path, &now) && str_eq(buf_str(&now), text);
}

/* ---- the bundle ---- */

void trust_bundle(struct str bundle, struct str pem, struct buf *out)
{
  ptrdiff_t from = str_search(bundle, STR(SECTION));
  ptrdiff_t to = from < 0 ? -1 : str_search(str_skip(bundle, (size_t)from), STR(SECTION_END));
  buf_adds(out, to < 0 ? bundle : str_sub(bundle, 0, (size_t)from));
  if (to >= 0)
    buf_adds(out, str_skip(bundle, (size_t)from + (size_t)to + strlen(SECTION_END)));
  if (out->n && out->p[out->n - 1] != '\n')
    buf_addc(out, '\n');
  buf_addz(out, SECTION);
  buf_adds(out, pem);
  if (pem.n && pem.p[pem.n - 1] != '\n')
    buf_addc(out, '\n');
  buf_addz(out, SECTION_END);
}

/* Links between bundles are common: what they lead to is written, once. */
static const char *extend_bundles(struct str pem, struct buf *all)
{
  const char *first = NULL;
  for (size_t i = 0; i < ARRAY_LEN(bundles); i++) {
    char path[PATH_MAX];
    cleanup_buf struct buf have = BUF_INIT(BUNDLE_MAX), next = BUF_INIT(BUNDLE_MAX);
    if (!realpath(bundles[i], path) || file_read(path, &have))
      continue;
    if (str_search(buf_str(&have), pem) < 0) {
      trust_bundle(buf_str(&have), pem, &next);
      note(path, buf_failed(&next) ? -EFBIG : replace_file(path, buf_str(&next)));
    }
    if (!first) {
      first = bundles[i];
      buf_adds(all, next.n ? buf_str(&next) : buf_str(&have));
    }
  }
  if (first)
    return first;
  path_mkdirs(CERTS, 0755);
  note(bundles[0], replace_file(bundles[0], pem)); /* an image without roots: this one is better than none */
  return bundles[0];
}

/* ---- Java ---- */

static uint32_t rotate(uint32_t x, int n)
{
  return x << n | x >> (32 - n);
}

static void sha1_block(uint32_t h[5], const uint8_t *p)
{
  uint32_t w[80], v[5];
  memcpy(v, h, sizeof(v));
  for (int i = 0; i < 16; i++)
    w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
  for (int i = 16; i < 80; i++)
    w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  for (int i = 0; i < 80; i++) {
    uint32_t b = v[1], c = v[2], d = v[3];
    uint32_t f = i < 20 ? (b & c) | (~b & d) : i < 40 || i >= 60 ? b ^ c ^ d : (b & c) | (b & d) | (c & d);
    uint32_t k = i < 20 ? 0x5a827999 : i < 40 ? 0x6ed9eba1 : i < 60 ? 0x8f1bbcdc : 0xca62c1d6;
    uint32_t t = rotate(v[0], 5) + f + v[4] + k + w[i];
    v[4] = d;
    v[3] = c;
    v[2] = rotate(b, 30);
    v[1] = v[0];
    v[0] = t;
  }
  for (int i = 0; i < 5; i++)
    h[i] += v[i];
}

/* For the sum at the end of a Java key store, which is no secret. */
void trust_sha1(struct str text, uint8_t out[20])
{
  uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  uint64_t bits = (uint64_t)text.n * 8;
  uint8_t last[128] = {0};
  size_t whole = text.n / 64 * 64, rest = text.n - whole, n = rest < 56 ? 64 : 128;
  for (size_t at = 0; at < whole; at += 64)
    sha1_block(h, (const uint8_t *)text.p + at);
  if (rest)
    memcpy(last, text.p + whole, rest);
  last[rest] = 0x80;
  for (size_t i = 0; i < 8; i++)
    last[n - 1 - i] = (uint8_t)(bits >> (8 * i));
  for (size_t at = 0; at < n; at += 64)
    sha1_block(h, last + at);
  for (size_t i = 0; i < 20; i++)
    out[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}

static void put_number(struct buf *b, uint64_t value, int bytes)
{
  for (int i = bytes - 1; i >= 0; i--)
    buf_addc(b, (char)(value >> (8 * i)));
}

static void put_text(struct buf *b, const char *text)
{
  put_number(b, strlen(text), 2);
  buf_addz(b, text);
}

static bool next_certificate(struct str *rest, struct buf *der)
{
  ptrdiff_t at = str_search(*rest, STR(PEM_BEGIN));
  struct str body = at < 0 ? STR_NONE : str_skip(*rest, (size_t)at + strlen(PEM_BEGIN));
  ptrdiff_t end = at < 0 ? -1 : str_search(body, STR(PEM_END));
  if (end < 0)
    return false;
  cleanup_buf struct buf plain = BUF_INIT(1 << 16);
  for (size_t i = 0; i < (size_t)end; i++)
    if ((unsigned char)body.p[i] > ' ')
      buf_addc(&plain, body.p[i]);
  buf_clear(der);
  if (base64_decode(buf_str(&plain), der) < 0)
    buf_clear(der);
  *rest = str_skip(body, (size_t)end + strlen(PEM_END));
  return true;
}

/* "Mighty Aphrodite" behind the password in UTF-16 is the format's, not ours. */
static void put_sum(struct buf *out)
{
  cleanup_buf struct buf salted = BUF_INIT(STORE_MAX + 64);
  static const char password[] = "changeit";
  uint8_t sum[20];
  for (size_t i = 0; i < sizeof(password) - 1; i++)
    put_number(&salted, (unsigned char)password[i], 2);
  buf_addz(&salted, "Mighty Aphrodite");
  buf_adds(&salted, buf_str(out));
  trust_sha1(buf_str(&salted), sum);
  buf_add(out, sum, sizeof(sum));
}

size_t trust_java(struct str bundle, int64_t when_ms, struct buf *out)
{
  cleanup_buf struct buf entries = BUF_INIT(STORE_MAX), der = BUF_INIT(1 << 16);
  size_t n = 0;
  while (next_certificate(&bundle, &der)) {
    char alias[32];
    if (!der.n)
      continue;
    snprintf(alias, sizeof(alias), "root-%zu", n++);
    put_number(&entries, 2, 4); /* a trusted certificate */
    put_text(&entries, alias);
    put_number(&entries, (uint64_t)when_ms, 8);
    put_text(&entries, "X.509");
    put_number(&entries, der.n, 4);
    buf_adds(&entries, buf_str(&der));
  }
  put_number(out, 0xfeedfeed, 4);
  put_number(out, 2, 4); /* version */
  put_number(out, n, 4);
  buf_adds(out, buf_str(&entries));
  put_sum(out);
  return n;
}

static void write_java(struct str bundle)
{
  char path[PATH_MAX];
  struct stat st;
  cleanup_buf struct buf store = BUF_INIT(STORE_MAX);
  if (stat(CERTS "/java", &st) || !S_ISDIR(st.st_mode))
    return;
  trust_java(bundle, clock_wall_us() / 1000, &store);
  note(JAVA, buf_failed(&store) ? -EFBIG : replace_file(realpath(JAVA, path) ? path : JAVA, buf_str(&store)));
}

/* ---- all of it ---- */

static void set_variables(struct agent *a, const char *bundle)
{
  static const char *const for_bundle[] = {"SSL_CERT_FILE",  "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
                                           "GIT_SSL_CAINFO", "PIP_CERT",           "AWS_CA_BUNDLE"};
  static const char *const for_one[] = {"NODE_EXTRA_CA_CERTS", "DENO_CERT"};
  for (size_t i = 0; i < ARRAY_LEN(for_bundle); i++)
    env_set(&a->trust_env, str_of(for_bundle[i]), str_of(bundle));
  for (size_t i = 0; i < ARRAY_LEN(for_one); i++)
    env_set(&a->trust_env, str_of(for_one[i]), STR(ANCHOR));
  a->env_generation++;
}

int trust_install(struct agent *a, struct str pem, struct err *err)
{
  cleanup_buf struct buf all = BUF_INIT(BUNDLE_MAX);
  if (!str_starts(pem, STR(PEM_BEGIN)) || str_search(pem, STR(PEM_END)) < 0)
    return err_set(err, -EINVAL, "authority: a PEM certificate expected");
  bool known = same_file(ANCHOR, pem);
  path_mkdirs(ANCHORS, 0755);
  if (!known)
    note(ANCHOR, replace_file(ANCHOR, pem));
  const char *bundle = extend_bundles(pem, &all);
  struct stat st;
  if (!known && (!stat(CERTS, &st) || !path_mkdirs(CERTS, 0755))) {
    unlink(LINK);
    note(LINK, symlink(ANCHOR, LINK) ? -errno : 0);
    write_java(buf_str(&all));
  }
  set_variables(a, bundle);
  return 0;
}
