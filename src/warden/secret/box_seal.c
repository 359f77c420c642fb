/* SPDX-License-Identifier: Apache-2.0 */
/* box_seal.c - see box_seal.h. */
#include "warden/secret/box_seal.h"

#include "warden/core/context.h"
#include "warden/db/box_egress_store.h"
#include "warden/secret/secrets.h"
#include <stdio.h>

#define BATCH      8 /* rows that are sealed anew in one turn of the loop */
#define LABEL_SIZE 64

/* What is authenticated with them: a row that is moved to another box does not open. */
static struct str label_of(const char *box, char out[LABEL_SIZE])
{
  int n = snprintf(out, LABEL_SIZE, "box-egress%c%s", 0, box);
  return (struct str){out, (size_t)n};
}

int box_seal_put(struct warden *w, const char *box, struct str value, struct err *err)
{
  char label[LABEL_SIZE];
  struct row_box_egress row;
  cleanup_buf struct buf sealed = BUF_INIT(BOX_SEALED_MAX + SEAL_OVERHEAD);
  snprintf(row.box, sizeof(row.box), "%s", box);
  int r = secrets_seal(w, label_of(box, label), value, row.key, &sealed);
  if (r)
    return err_set(err, r, "it can't be sealed");
  row.sealed = buf_str(&sealed);
  return store_box_egress_put(warden_store(w), &row, err);
}

int box_seal_get(struct warden *w, const char *box, struct buf *out)
{
  char label[LABEL_SIZE], key[SEAL_KEY_SIZE];
  cleanup_buf struct buf sealed = BUF_INIT(BOX_SEALED_MAX + SEAL_OVERHEAD);
  int r = store_box_egress_get(warden_store(w), box, key, &sealed);
  r = r ? r : buf_reserve(out, sealed.n);
  return r ? r : secrets_unseal(w, key, label_of(box, label), buf_str(&sealed), out);
}

/* As with signing keys: one whose master key is missing has no use for the others. */
static int reseal_one(struct warden *w, struct row_box_egress *row, uint64_t *failed, struct err *err)
{
  char label[LABEL_SIZE];
  cleanup_buf struct buf out = BUF_INIT(BOX_SEALED_MAX + SEAL_OVERHEAD);
  struct row_box_egress to = *row;
  int r = secrets_rewrap(w, row->key, label_of(row->box, label), row->sealed, to.key, &out);
  *failed += r == -EBADMSG;
  to.sealed = buf_str(&out);
  return r ? 0 : store_box_egress_put(warden_store(w), &to, err);
}

int box_reseal(struct warden *w, char after[BOX_ID_SIZE], uint64_t *failed, struct err *err)
{
  struct store *s = warden_store(w);
  int r = store_begin(s, err), n = 0;
  if (r)
    return r;
  while (!r && n < BATCH) {
    struct row_box_egress row;
    cleanup_buf struct buf sealed = BUF_INIT(BOX_SEALED_MAX + SEAL_OVERHEAD);
    if (store_box_egress_of_other_key(s, secrets_key(w), after, &row, &sealed))
      break;
    r = reseal_one(w, &row, failed, err);
    memcpy(after, row.box, sizeof(row.box));
    n++;
  }
  r = store_end(s, r, err);
  return r ? r : n == BATCH;
}
