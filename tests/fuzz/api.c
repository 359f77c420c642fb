/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - what strangers write to the control plane, against its pure parsers.
 *
 * The first byte of the input chooses: n network settings, m a metadata filter, p a page key, t a host, path or header
 * that names a box, r a template reference, k an API key, w a packet between gate and warden, l a log ring, i the body
 * of a create with an idempotency key, u the URL of a webhook. Beyond not crashing, what is accepted must hold:
 * settings read again from what is told back are the same, keys survive a round trip, names hold only what the edge
 * lets through. */
#include "must.h"

#include "gate/api/sandbox/idempotency_key.h"
#include "gate/api/sandbox/network.h"
#include "gate/api/list_query.h"
#include "gate/api/event/webhook_url.h"
#include "gate/edge/edge_target.h"
#include "wire/api_key.h"
#include "wire/logring.h"
#include "warden/db/ref.h"
#include "wire/wire.h"

#include <stdio.h>
#include <sys/mman.h>

static void network(struct str in)
{
  cleanup_arena struct arena a = ARENA_INIT(16 << 20);
  struct json *j = json_read(&a, in, 0, NULL), *again;
  struct network n, m;
  struct err err = ERR_NONE;
  unsigned all = NETWORK_PROXY | NETWORK_RULES | NETWORK_HTTPS;
  int r = network_read(j, json_get(j, "allow_internet_access"), all, &n, &err);
  MUST(r == 0 || ((r == -EINVAL || r == -EPERM) && err.msg[0]));
  if (r || !j)
    return;
  cleanup_buf struct buf one = BUF_INIT(16 << 20), two = BUF_INIT(16 << 20);
  struct jw w = JW(&one);
  network_put(&w, &n);
  again = json_read(&a, buf_str(&one), 0, NULL);
  MUST(again && !json_get(json_get(again, "egressProxy"), "password"));
  MUST(network_read(again, NULL, all, &m, &err) == 0);
  w = JW(&two);
  network_put(&w, &m);
  MUST(str_eq(buf_str(&one), buf_str(&two)));
}

static void metadata(struct str in)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct pair p[8];
  int n = metadata_read(&a, in, p, ARRAY_LEN(p));
  MUST(n <= 8);
  for (int i = 0; i < n; i++)
    MUST(p[i].key.p && p[i].value.p);
}

static void page(struct str in)
{
  struct page_key k, back;
  for (int asc = 0; asc < 2; asc++) {
    if (page_key_read(in, asc, &k))
      continue;
    cleanup_buf struct buf b = BUF_INIT(1 << 20);
    page_key_put(&b, &k, asc);
    if (!buf_failed(&b))
      MUST(!page_key_read(buf_str(&b), asc, &back) && !page_key_order(&k, &back));
  }
}

static void target(struct str in)
{
  struct edge_target t[3] = {{.port = 0}};
  struct str head, rest;
  str_cut(in, '\n', &head, &rest);
  bool named[3] = {target_from_host(in, &t[0]), target_from_path(in, &t[1]), target_from_headers(head, rest, &t[2])};
  for (int i = 0; i < 3; i++) {
    if (!named[i])
      continue;
    MUST(t[i].port >= 1 && t[i].port <= 65535 && t[i].box[0] && t[i].skip <= in.n);
    for (const char *p = t[i].box; *p; p++)
      MUST((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9'));
  }
}

static void reference(struct str in)
{
  cleanup_buf struct buf lowered = BUF_INIT(1024);
  struct ref r;
  struct err err = ERR_NONE;
  if (ref_read(in, &lowered, &r, &err)) {
    MUST(err.msg[0]);
    return;
  }
  MUST(ref_word(r.alias, "_-") && ref_word(r.tag, "_.-") && (!r.space.n || ref_word(r.space, "_-")));
}

static void api_key(struct str in)
{
  uint8_t hash[SHA256_LEN];
  access_token_hash(in, hash);
  if (!key_hash(in, hash))
    MUST(str_starts(in, STR("e2b_")) && in.n % 2 == 0);
}

static void packet(struct str in)
{
  if (wire_check(in))
    return;
  char text[64];
  for (unsigned tag = 0; tag < 64; tag++) {
    struct str v = wire_get(in, (enum wire_tag)tag);
    MUST(!v.p || (v.p >= in.p && v.p + v.n <= in.p + in.n));
    wire_u64(in, (enum wire_tag)tag, 0);
    wire_copyz(in, (enum wire_tag)tag, text, sizeof(text));
  }
}

static int print_of(struct arena *a, struct str json, uint8_t out[SHA256_LEN])
{
  cleanup_buf struct buf b = BUF_INIT(16 << 20);
  wire_begin(&b, WIRE_BOX_CREATE, 0, 0);
  wire_put(&b, W_INIT, json);
  return idempotency_fingerprint(a, buf_str(&b), out);
}

/* What is read and written again is the same request. */
static void idempotency(struct str in)
{
  cleanup_arena struct arena a = ARENA_INIT(64 << 20);
  cleanup_buf struct buf again = BUF_INIT(16 << 20);
  uint8_t one[SHA256_LEN], two[SHA256_LEN];
  struct err err = ERR_NONE;
  MUST(!idempotency_key_check(in, &err) || err.msg[0]);
  const struct json *j = json_read(&a, in, 0, NULL);
  MUST((print_of(&a, in, one) == 0) == (j != NULL));
  if (!j)
    return;
  json_put(&again, j, true);
  MUST(!print_of(&a, buf_str(&again), two) && !memcmp(one, two, sizeof(one)));
}

static void log_ring(struct str in)
{
  static int fd = -1;
  if (fd < 0)
    fd = memfd_create("ring", MFD_CLOEXEC);
  MUST(!ftruncate(fd, 0) && pwrite(fd, in.p, in.n, 0) == (ssize_t)in.n);
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  if (!logring_read(fd, 1 << 16, &b) && b.n)
    MUST(b.p[b.n - 1] == '\n' && b.n <= 1 << 16);
}

/* What is accepted has an origin that is accepted, and is its own. */
static void webhook_url(struct str in)
{
  cleanup_buf struct buf origin = BUF_INIT(2 * WEBHOOK_URL_MAX), again = BUF_INIT(2 * WEBHOOK_URL_MAX);
  struct err err = ERR_NONE;
  int r = webhook_url_check(in, &origin, &err);
  MUST(r == 0 || (r == -EINVAL && err.msg[0]));
  if (r)
    return;
  MUST(str_starts(buf_str(&origin), STR("http")) && str_find(buf_str(&origin), '@') < 0);
  MUST(webhook_url_check(buf_str(&origin), &again, &err) == 0 && str_eq(buf_str(&origin), buf_str(&again)));
  r = webhook_address_check(buf_str(&origin), &(struct receiver_rules){0}, &err);
  MUST(r == 0 || (r == -EINVAL && err.msg[0]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static const struct {
    char letter;
    void (*feed)(struct str in);
  } parsers[] = {{'n', network}, {'m', metadata}, {'p', page},     {'t', target},      {'r', reference},
                 {'k', api_key}, {'w', packet},   {'l', log_ring}, {'i', idempotency}, {'u', webhook_url}};
  if (!size)
    return 0;
  char *copy = malloc(size); /* aligned, and its own block so that its end is guarded */
  memcpy(copy, data + 1, size - 1);
  for (size_t i = 0; i < ARRAY_LEN(parsers); i++)
    if (parsers[i].letter == (char)data[0])
      parsers[i].feed((struct str){copy, size - 1});
  free(copy);
  return 0;
}
