/* SPDX-License-Identifier: Apache-2.0 */
/* throttle.c - see throttle.h. */
#include "gate/throttle.h"

#include "wire/sizes.h"

#include <arpa/inet.h>
#include <stdio.h>

struct counted {
  double left; /* failures that may still happen at once */
  int64_t at_us;
};

int client_read(const char *text, uint8_t out[CLIENT_LEN])
{
  static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
  char host[INET6_ADDRSTRLEN + 2] = "";
  struct str s = str_of(text);
  bool six = str_starts(s, STR("["));
  ptrdiff_t end = str_find(s, six ? ']' : ':');
  memset(out, 0, CLIENT_LEN);
  if (end < 0) {
    out[CLIENT_LEN - 1] = 0xfe; /* a socket of this machine */
    return str_is(s, "unix") ? 0 : -EINVAL;
  }
  if (str_copyz(str_sub(s, six, (size_t)end - six), host, sizeof(host)))
    return -EINVAL;
  if (!six) {
    memcpy(out, mapped, sizeof(mapped));
    return inet_pton(AF_INET, host, out + sizeof(mapped)) == 1 ? 0 : -EINVAL;
  }
  if (inet_pton(AF_INET6, host, out) != 1)
    return -EINVAL;
  if (memcmp(out, mapped, sizeof(mapped)) != 0)
    memset(out + 8, 0, 8);
  return 0;
}

void client_of(const struct http_x *x, uint8_t out[CLIENT_LEN])
{
  char text[PEER_SIZE];
  http_x_peer(x, text, sizeof(text));
  if (client_read(text, out))
    memset(out, 0xff, CLIENT_LEN);
}

static struct str key_of(const uint8_t client[CLIENT_LEN])
{
  return str_make(client, CLIENT_LEN);
}

static double refill(const struct throttle *t, const struct counted *b, int64_t now_us)
{
  return MIN((double)t->per_minute, b->left + (double)(now_us - b->at_us) * t->per_minute / 60e6);
}

unsigned throttle_wait(struct throttle *t, const uint8_t client[CLIENT_LEN], int64_t now_us)
{
  const struct counted *b = map_get(&t->clients, key_of(client));
  if (!b || !t->per_minute)
    return 0;
  double left = refill(t, b, now_us);
  return left >= 1 ? 0 : 1 + (unsigned)((1 - left) * 60 / t->per_minute);
}

/* Makes room for one more: whoever failed least recently is forgiven. */
static void forget_oldest(struct throttle *t)
{
  struct str key, oldest = STR_NONE;
  void *value;
  int64_t least = INT64_MAX;
  for (size_t i = 0; map_next(&t->clients, &i, &key, &value);) {
    const struct counted *b = value;
    if (b->at_us < least) {
      least = b->at_us;
      oldest = key;
    }
  }
  uint8_t copy[CLIENT_LEN];
  if (oldest.n != sizeof(copy))
    return;
  memcpy(copy, oldest.p, sizeof(copy));
  free(map_del(&t->clients, key_of(copy)));
}

void throttle_count(struct throttle *t, const uint8_t client[CLIENT_LEN], int64_t now_us)
{
  struct counted *b = map_get(&t->clients, key_of(client));
  if (!t->per_minute)
    return;
  if (!b) {
    if (t->clients.n >= THROTTLE_MAX)
      forget_oldest(t);
    b = xcalloc(1, sizeof(*b));
    *b = (struct counted){.left = t->per_minute, .at_us = now_us};
    map_put(&t->clients, key_of(client), b);
  }
  b->left = MAX(0.0, refill(t, b, now_us) - 1);
  b->at_us = now_us;
}

void throttle_forgive(struct throttle *t, const uint8_t client[CLIENT_LEN], int64_t now_us)
{
  struct counted *b = map_get(&t->clients, key_of(client));
  if (!b)
    return;
  b->left = MIN((double)t->per_minute, refill(t, b, now_us) + 1);
  b->at_us = now_us;
}

void throttle_log(struct throttle *t, const struct http_x *x, const char *what, struct str shown)
{
  char peer[PEER_SIZE], begins[8] = "";
  int64_t now = clock_mono_us();
  t->lines = MAX(0.0, t->lines - (double)(now - t->logged_us) / 1e6);
  t->logged_us = now;
  if (t->lines > THROTTLE_LINES - 1) {
    t->unlogged++;
    return;
  }
  t->lines += 1;
  http_x_peer(x, peer, sizeof(peer));
  for (size_t i = 0; i < shown.n && i < 6;
       i++) /* "e2b_" and two digits: enough to tell which key a program still uses */
    begins[i] = shown.p[i] > ' ' && shown.p[i] < 127 && shown.p[i] != '"' && shown.p[i] != '\\' ? shown.p[i] : '?';
  log_with(LOG_WARN, (const char *[]){"client", peer, NULL}, "wrong %s%s%s%s; %llu more since the last such line", what,
           begins[0] ? " (" : "", begins, begins[0] ? "...)" : "", (unsigned long long)t->unlogged);
  t->unlogged = 0;
}

void throttle_failed(struct throttle *t, const struct http_x *x, const char *what, struct str shown)
{
  uint8_t client[CLIENT_LEN];
  client_of(x, client);
  throttle_count(t, client, clock_mono_us());
  throttle_log(t, x, what, shown);
}

void throttle_free(struct throttle *t)
{
  void *value;
  for (size_t i = 0; map_next(&t->clients, &i, NULL, &value);)
    free(value);
  map_free(&t->clients);
}
