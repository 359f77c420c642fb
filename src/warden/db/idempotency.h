/* SPDX-License-Identifier: Apache-2.0 */
/* idempotency.h - creates that their clients named, so that a repeat gets the first answer. No token is kept: they are
 * made from the box's id again. */
#ifndef CLOCHE_WARDEN_DB_IDEMPOTENCY_H
#define CLOCHE_WARDEN_DB_IDEMPOTENCY_H

#include "warden/db/store.h"

struct row_idempotency {
  char team[UUID_SIZE], key[IDEMPOTENCY_KEY_SIZE];
  uint8_t fingerprint[SHA256_LEN]; /* of the request */
  char box[BOX_ID_SIZE];           /* the id that its sandbox has, or was to have */
  int64_t created_us;              /* of the first request; never changes */
  bool answered;                   /* else only reserved */
  int status;                      /* the answer: 0 or a negative errno, with the message */
  char message[512];
  char template_id[TEMPLATE_ID_SIZE], alias[TEMPLATE_REF_SIZE]; /* of its sandbox, and BOX_* flags */
  unsigned flags;
};

/* -ENOENT: no such key of that team. */
int idempotency_get(struct store *s, struct str team, struct str key, struct row_idempotency *out);
int idempotency_reserve(struct store *s, const struct row_idempotency *r, struct err *err); /* or replace */
/* Both mean the reservation that has this key and this box's id. */
int idempotency_answer(struct store *s, const struct row_idempotency *r, int status, const char *message,
                       struct err *err);
int idempotency_delete(struct store *s, const struct row_idempotency *r, struct err *err);
/* The box is the answer; inside the transaction (store_begin) that writes its row. */
int idempotency_created(struct store *s, const struct row_box *b, const char *key, struct err *err);
uint64_t idempotency_count(struct store *s, struct str team);
int idempotency_forget(struct store *s, int64_t before_us);

#endif
