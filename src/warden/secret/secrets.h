/* SPDX-License-Identifier: Apache-2.0 */
/* secrets.h - values that a team keeps here for its boxes' requests, and that no box and no client ever reads.
 *
 * Start here in this folder. A value is sealed before it reaches the store (seal.h), by a master key that does not lie
 * there (keyring.h). It promises: a value leaves this module only by secret_value, into memory that the caller wipes;
 * no message, log line or row holds one. Without the right master key the server works, secrets can be listed and
 * deleted but neither written nor used, and nothing is overwritten; putting the key back is enough. While values go
 * from an old master key to a new one both are in the keyring, and it loses the old one only when the last value has
 * reached the disk under the new one: a crash at any point leaves all of them readable. */
#ifndef CLOCHE_WARDEN_SECRET_SECRETS_H
#define CLOCHE_WARDEN_SECRET_SECRETS_H

#include "warden/db/secret_store.h"
#include "warden/secret/seal.h"

struct warden;

#define SECRET_VALUE_MAX 65536 /* bytes; the setting secret_value_max is at most this */

int secrets_open(struct warden *w, struct err *err);
void secrets_close(struct warden *w);

/* The current value of the team's secret of this name (in any case), appended to `out`, which the caller gives to
 * buf_wipe; `out` should have room for SECRET_VALUE_MAX bytes from the start, as a buffer that grows leaves copies.
 * -ENOENT: the team has no such secret. -ENOKEY: the master key is missing. -EBADMSG: the row was changed by others. */
int secret_value(struct warden *w, const char *team, const char *name, struct buf *out, struct err *err);

/* Called behind each change of a value and each deletion, on the loop. Watchers stay to the end. */
typedef void (*secret_changed_fn)(struct warden *w, const char *team, const char *name, void *arg);
void secrets_watch(struct warden *w, secret_changed_fn changed, void *arg);

/* Fills in version, times and what is sealed; id, team, name, metadata and request are the caller's. -EEXIST: the name
 * is taken. -E2BIG: the team has as many as it may. -ENOKEY */
int secret_create(struct warden *w, struct row_secret *row, struct str value, struct err *err);
/* A new version of a row that was read; metadata in it is taken as it is. */
int secret_update(struct warden *w, struct row_secret *row, struct str value, struct err *err);
int secret_delete(struct warden *w, const struct row_secret *row, struct err *err);

/* ---- for what else is kept sealed ---- */

/* As seal.h has them, by the current master key, whose id is told, or by the one of this id; -ENOKEY. Who keeps
 * something so must be asked in secrets.c when the master key changes. */
int secrets_seal(struct warden *w, struct str label, struct str value, char key[SEAL_KEY_SIZE], struct buf *out);
int secrets_unseal(struct warden *w, const char *key, struct str label, struct str sealed, struct buf *out);
int secrets_rewrap(struct warden *w, const char *key, struct str label, struct str sealed, char to[SEAL_KEY_SIZE],
                   struct buf *out);
/* Who keeps settings of boxes (box_seal.h) is asked here, turn by turn, when the master key changes: the next ones
 * behind the box `after`, which it moves on; 1 = there may be more. */
typedef int (*secrets_reseal_fn)(struct warden *w, char after[BOX_ID_SIZE], uint64_t *failed, struct err *err);
void secrets_seal_boxes(struct warden *w, secrets_reseal_fn reseal);

/* ---- the master key ---- */

const char *secrets_key(struct warden *w); /* id of the current one; "" = there is none */

bool secrets_ready(struct warden *w, struct err *err); /* false: err says why, for the server's operator */
/* A new master key; `done` is called when every value is sealed by it, or with the reason why not. */
typedef void (*secrets_rotated_fn)(struct warden *w, const struct err *err, uint64_t resealed, void *arg);
int secrets_rotate(struct warden *w, secrets_rotated_fn done, void *arg, struct err *err); /* -EBUSY */
bool secrets_busy(struct warden *w);                                                       /* one is under way */

/* Does every value open? On a worker. */
struct secrets_report {
  uint64_t good, bad;
  char key[MASTER_ID_SIZE]; /* "": there is none */
  size_t keys;
  char source[DATA_PATH_SIZE], why[512]; /* why: "" = all is well */
};
typedef void (*secrets_checked_fn)(struct warden *w, const struct secrets_report *report, void *arg);
void secrets_check(struct warden *w, secrets_checked_fn done, void *arg);

#endif
