/* sigv4.c - see sigv4.h. */
#include "warden/sigv4.h"

#include <time.h>

#define ALGORITHM   "AWS4-HMAC-SHA256"
#define REQUEST_MAX ((size_t)64 << 10)
#define SECRET_MAX  1024

struct key {
  uint8_t bytes[SHA256_LEN];
};

static struct str key_str(const struct key *k)
{
  return str_make(k->bytes, sizeof(k->bytes));
}

static void add_hex_hash(struct buf *b, struct str text)
{
  uint8_t digest[SHA256_LEN];
  char hex[2 * SHA256_LEN + 1];
  sha256_of(text.n ? text.p : "", text.n, digest);
  hex_encode(digest, sizeof(digest), hex);
  buf_addz(b, hex);
}

void sigv4_date(int64_t wall_us, char out[SIGV4_DATE])
{
  struct tm tm;
  time_t t = (time_t)(wall_us / 1000000);
  gmtime_r(&t, &tm);
  strftime(out, SIGV4_DATE, "%Y%m%dT%H%M%SZ", &tm);
}

static void add_names(struct buf *b, const struct sigv4 *s)
{
  for (size_t i = 0; i < s->nheaders; i++)
    buf_addf(b, "%s%s", i ? ";" : "", s->headers[i].name);
}

/* The request as both sides write it down. */
static void add_request(struct buf *b, const struct sigv4 *s)
{
  buf_addf(b, "%s\n%s\n\n", s->method, s->path);
  for (size_t i = 0; i < s->nheaders; i++)
    buf_addf(b, "%s:" STR_FMT "\n", s->headers[i].name, STR_ARG(s->headers[i].value));
  buf_addc(b, '\n');
  add_names(b, s);
  buf_addc(b, '\n');
  add_hex_hash(b, s->body);
}

static void add_scope(struct buf *b, const struct sigv4 *s, const char *date)
{
  buf_addf(b, "%.8s/" STR_FMT "/" STR_FMT "/aws4_request", date, STR_ARG(s->region), STR_ARG(s->service));
}

/* One key per day, region and service, so that the secret itself signs nothing. */
static void derive(const struct sigv4 *s, const char *date, struct key *out)
{
  struct key day, region, service;
  cleanup_buf struct buf first = BUF_INIT(SECRET_MAX);
  buf_addz(&first, "AWS4");
  buf_adds(&first, s->secret);
  hmac_sha256(buf_str(&first), str_make(date, 8), day.bytes);
  hmac_sha256(key_str(&day), s->region, region.bytes);
  hmac_sha256(key_str(&region), s->service, service.bytes);
  hmac_sha256(key_str(&service), STR("aws4_request"), out->bytes);
  if (first.p)
    explicit_bzero(first.p, first.n);
}

void sigv4_sign(const struct sigv4 *s, const char date[SIGV4_DATE], struct buf *out)
{
  cleanup_buf struct buf request = BUF_INIT(REQUEST_MAX), text = BUF_INIT(4096);
  struct key key, signature;
  char hex[2 * SHA256_LEN + 1];
  add_request(&request, s);
  buf_addf(&text, ALGORITHM "\n%s\n", date);
  add_scope(&text, s, date);
  buf_addc(&text, '\n');
  add_hex_hash(&text, buf_str(&request));
  derive(s, date, &key);
  hmac_sha256(key_str(&key), buf_str(&text), signature.bytes);
  hex_encode(signature.bytes, sizeof(signature.bytes), hex);
  buf_addf(out, ALGORITHM " Credential=" STR_FMT "/", STR_ARG(s->key_id));
  add_scope(out, s, date);
  buf_addz(out, ", SignedHeaders=");
  add_names(out, s);
  buf_addf(out, ", Signature=%s", hex);
  explicit_bzero(&key, sizeof(key));
}
