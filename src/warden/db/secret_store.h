/* SPDX-License-Identifier: Apache-2.0 */
/* secret_store.h - secrets of teams as rows. Values are here only sealed (secret/seal.h); names and metadata are in the
 * clear. Only the current version of a value is kept. */
#ifndef CLOCHE_WARDEN_DB_SECRET_STORE_H
#define CLOCHE_WARDEN_DB_SECRET_STORE_H

#include "warden/db/store.h"
#include "wire/sizes.h"

struct row_secret {
  char id[SECRET_ID_SIZE], team[UUID_SIZE], name[SECRET_NAME_SIZE];
  uint64_t version;
  char *metadata; /* owned: JSON, an object of strings */
  int64_t created_us, updated_us;
  char request[UUID_SIZE]; /* of the gate that changed it last: a repeated one changes nothing */
  char key[SEAL_KEY_SIZE]; /* id of the master key that it is sealed by */
  struct buf sealed;
};

void row_secret_free(struct row_secret *r);

/* By its id, or by its name. -ENOENT */
int store_secret_get(struct store *s, const char *team, const char *id, struct row_secret *out);
int store_secret_find(struct store *s, const char *team, const char *name, struct row_secret *out);
/* Fails when the id is taken, by whomever, or the team has one of that name. */
int store_secret_add(struct store *s, const struct row_secret *r, struct err *err);
int store_secret_change(struct store *s, const struct row_secret *r, struct err *err); /* to another version */
int store_secret_delete(struct store *s, const char *id, struct err *err);
uint64_t store_secret_count(struct store *s, const char *team);
/* In the order of creation, behind this one (0, ""); `fn` returns other than 0 to stop. */
int store_secrets(struct store *s, const char *team, int64_t after_us, const char *after_id, unsigned most,
                  int (*fn)(const struct row_secret *, void *), void *arg);

/* ---- master keys ---- */

/* The ids of all keys that values are sealed by, with how many. */
int store_seal_keys(struct store *s, int (*fn)(const char *key, uint64_t count, void *arg), void *arg);
/* Some secrets that are not sealed by this key, of ids above `after`. */
int store_secrets_of_other_keys(struct store *s, const char *key, const char *after, unsigned most,
                                int (*fn)(const struct row_secret *, void *), void *arg);
/* Sealed anew; nothing happens when the version is another one by now. */
int store_secret_reseal(struct store *s, const struct row_secret *r, struct err *err);

#endif
