/* SPDX-License-Identifier: Apache-2.0 */
/* seal.h - values that lie in the database encrypted.
 *
 * Each value has a random data key of its own (AES-256-GCM), which is used once and lies beside it, wrapped:
 * AES-256-GCM again, under a key that HMAC-SHA-256 derives from the master key and a random salt. So no key encrypts
 * twice, and no nonce can repeat under one. What the value belongs to (the label) is authenticated with both: a sealed
 * value that is moved to another row, team or version, or changed by a bit, does not open. Another master key needs the
 * wrapping done anew, not the value. */
#ifndef CLOCHE_WARDEN_SECRET_SEAL_H
#define CLOCHE_WARDEN_SECRET_SEAL_H

#include "base/base.h"

#define MASTER_KEY_LEN 32
#define MASTER_ID_SIZE 17 /* 16 hex digits of a hash of the key */

struct master_key {
  uint8_t key[MASTER_KEY_LEN];
  char id[MASTER_ID_SIZE];
};

#define SEAL_OVERHEAD 113 /* bytes of a sealed value beside the value's own */

void master_key_set(struct master_key *k, const uint8_t key[MASTER_KEY_LEN]); /* with its id */

/* Appends to `out`. */
int seal(const struct master_key *k, struct str label, struct str value, struct buf *out);
/* Appends the value. -EBADMSG: another key, another label, or changed bytes; nothing is appended then. The caller wipes
 * what it got. */
int seal_open(const struct master_key *k, struct str label, struct str sealed, struct buf *out);
/* The same value, wrapped by another master key. -EBADMSG as above. */
int seal_rewrap(const struct master_key *from, const struct master_key *to, struct str label, struct str sealed,
                struct buf *out);

void wipe(void *p, size_t n); /* not removed by the compiler */
void buf_wipe(struct buf *b); /* and gives the memory back */
#define cleanup_wipe __attribute__((cleanup(buf_wipe)))

#endif
