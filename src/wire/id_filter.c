/* SPDX-License-Identifier: Apache-2.0 */
/* id_filter.c - see id_filter.h. The memory is sealed after the writer has mapped it: readers can't change it, and
 * nobody can make it shorter under the others. A count that has reached its maximum stays there, so that a bit never
 * goes away while an entry needs it. */
#include "wire/id_filter.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/random.h>

#define BITS   ((size_t)1 << 21)
#define HASHES 6
#define WORDS  (BITS / 32)

struct shared {
  uint8_t key[SHA256_LEN];
  _Atomic uint32_t bits[WORDS];
};

struct id_filter {
  struct shared *shared;
  uint8_t *counts; /* NULL: a reader */
  int fd;          /* -1: a reader */
};

static void places(const struct shared *s, struct str id, uint32_t out[HASHES])
{
  uint8_t digest[SHA256_LEN];
  uint32_t word;
  hmac_sha256(str_make(s->key, sizeof(s->key)), id, digest);
  for (size_t i = 0; i < HASHES; i++) {
    memcpy(&word, digest + 4 * i, sizeof(word));
    out[i] = word % BITS;
  }
}

static struct shared *map_shared(int fd, int rights)
{
  void *p = mmap(NULL, sizeof(struct shared), rights, MAP_SHARED, fd, 0);
  return p == MAP_FAILED ? NULL : p;
}

struct id_filter *id_filter_new(struct err *err)
{
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
  cleanup_fd int fd = memfd_create("cloche-ids", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  struct shared *s = fd < 0 || ftruncate(fd, sizeof(*s)) ? NULL : map_shared(fd, PROT_READ | PROT_WRITE);
  if (!s || getrandom(s->key, sizeof(s->key), 0) != (ssize_t)sizeof(s->key) || fcntl(fd, F_ADD_SEALS, seals)) {
    err_errno(err, "filter of sandbox IDs: %zu bytes of shared memory", sizeof(*s));
    if (s)
      munmap(s, sizeof(*s));
    return NULL;
  }
  struct id_filter *f = xcalloc(1, sizeof(*f));
  *f = (struct id_filter){.shared = s, .counts = xcalloc(BITS, 1), .fd = steal_fd(&fd)};
  return f;
}

int id_filter_fd(const struct id_filter *f)
{
  return f->fd;
}

struct id_filter *id_filter_attach(int fd)
{
  if (lseek(fd, 0, SEEK_END) != (off_t)sizeof(struct shared)) /* a gate has no fstat */
    return NULL;
  struct shared *s = map_shared(fd, PROT_READ);
  if (!s)
    return NULL;
  struct id_filter *f = xcalloc(1, sizeof(*f));
  *f = (struct id_filter){.shared = s, .fd = -1};
  return f;
}

void id_filter_add(struct id_filter *f, struct str id)
{
  uint32_t at[HASHES];
  places(f->shared, id, at);
  for (size_t i = 0; i < HASHES; i++) {
    f->counts[at[i]] += f->counts[at[i]] < UINT8_MAX;
    atomic_fetch_or(&f->shared->bits[at[i] / 32], 1u << at[i] % 32);
  }
}

void id_filter_remove(struct id_filter *f, struct str id)
{
  uint32_t at[HASHES];
  places(f->shared, id, at);
  for (size_t i = 0; i < HASHES; i++) {
    uint8_t *n = &f->counts[at[i]];
    if (*n && *n < UINT8_MAX && --*n == 0)
      atomic_fetch_and(&f->shared->bits[at[i] / 32], ~(1u << at[i] % 32));
  }
}

bool id_filter_has(const struct id_filter *f, struct str id)
{
  uint32_t at[HASHES];
  places(f->shared, id, at);
  for (size_t i = 0; i < HASHES; i++)
    if (!(atomic_load(&f->shared->bits[at[i] / 32]) & 1u << at[i] % 32))
      return false;
  return true;
}

void id_filter_free(struct id_filter *f)
{
  if (!f)
    return;
  munmap(f->shared, sizeof(*f->shared));
  free(f->counts);
  if (f->fd >= 0)
    close(f->fd);
  free(f);
}
