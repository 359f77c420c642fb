/* SPDX-License-Identifier: Apache-2.0 */
/* identity_store.h - keys that sign identity tokens: the private part sealed, the public one in the clear. */
#ifndef CLOCHE_WARDEN_DB_IDENTITY_STORE_H
#define CLOCHE_WARDEN_DB_IDENTITY_STORE_H

#include "warden/db/store.h"
#include "wire/sizes.h"

struct row_identity_key {
  char id[48], x[48], y[48];
  int64_t created_us;
  char key[SEAL_KEY_SIZE]; /* id of the master key that it is sealed by */
  struct buf sealed;
};

int store_identity_key_current(struct store *s, struct row_identity_key *out); /* -ENOENT */
/* The current one from now on; the one before it signs no more, and is forgotten at that time. */
int store_identity_key_add(struct store *s, const struct row_identity_key *r, int64_t old_until_us, struct err *err);
/* All that verify, the current one first. */
int store_identity_keys(struct store *s, int (*fn)(const struct row_identity_key *, void *), void *arg);
int store_identity_keys_forget(struct store *s, int64_t now_us);
int store_identity_key_reseal(struct store *s, const struct row_identity_key *r, struct err *err);

#endif
