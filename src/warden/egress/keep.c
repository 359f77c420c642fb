/* SPDX-License-Identifier: Apache-2.0 */
/* keep.c - see keep.h. A value is three texts, each behind its length: settings, certificate, key. */
#include "warden/egress/keep.h"

#include "warden/core/box_egress.h"
#include "warden/core/box_state.h"
#include "warden/core/warden_state.h"
#include "warden/db/box_egress_store.h"
#include "warden/secret/seal.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define VALUE_MAX ((size_t)2 << 20)

static struct master_key sealing; /* one store per process */
static bool sealing_known;

/* Whoever may read it may read the database, too. */
static int read_key(const struct warden *w, struct err *err)
{
  char path[DATA_PATH_SIZE];
  uint8_t key[MASTER_KEY_LEN + 1];
  snprintf(path, sizeof(path), "%s/egress.key", w->config->data);
  cleanup_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  struct stat st;
  if (fd < 0 && errno == ENOENT) {
    random_bytes(key, MASTER_KEY_LEN);
    int r = file_write_atomic(path, key, MASTER_KEY_LEN, 0600);
    if (r)
      return err_set(err, r, "%s: %s", path, strerrordesc_np(-r));
  } else if (fd < 0 || fstat(fd, &st) || (st.st_mode & 077) || read(fd, key, sizeof(key)) != MASTER_KEY_LEN) {
    return err_set(err, -EIO, "%s can't be used: it must hold %d bytes and be readable by its owner alone", path,
                   MASTER_KEY_LEN);
  }
  master_key_set(&sealing, key);
  explicit_bzero(key, sizeof(key));
  sealing_known = true;
  return 0;
}

static int need_key(const struct warden *w, struct err *err)
{
  return sealing_known ? 0 : read_key(w, err);
}

static const char *label_of(const struct box *b, char out[64])
{
  snprintf(out, 64, "box-egress %s", b->row.id);
  return out;
}

static void put_text(struct buf *out, const struct buf *text)
{
  uint32_t n = (uint32_t)text->n;
  buf_add(out, &n, sizeof(n));
  buf_add(out, text->p, text->n);
}

int egress_keep(const struct box *b, struct err *err)
{
  struct store *store = b->warden->store;
  const struct box_egress *e = b->egress;
  char label[64];
  if (!e)
    return store_box_egress_delete(store, b->row.id, err);
  cleanup_wipe struct buf value = BUF_INIT(VALUE_MAX);
  cleanup_buf struct buf sealed = BUF_INIT(VALUE_MAX + 1024);
  int r = need_key(b->warden, err);
  if (r)
    return r;
  if (buf_reserve(&value, e->settings.n + e->cert.n + e->key.n + 12))
    return err_set(err, -ENOMEM, "no room for the egress settings");
  put_text(&value, &e->settings);
  put_text(&value, &e->cert);
  put_text(&value, &e->key);
  if (buf_failed(&value) || seal(&sealing, str_of(label_of(b, label)), buf_str(&value), &sealed))
    return err_set(err, -EIO, "the egress settings can't be sealed");
  return store_box_egress_put(store, b->row.id, buf_str(&sealed), err);
}

static int take_text(struct str *rest, struct str *out)
{
  uint32_t n;
  if (rest->n < sizeof(n))
    return -EINVAL;
  memcpy(&n, rest->p, sizeof(n));
  *rest = str_skip(*rest, sizeof(n));
  if (n > rest->n)
    return -EINVAL;
  *out = str_sub(*rest, 0, n);
  *rest = str_skip(*rest, n);
  return 0;
}

int egress_recall(struct box *b, struct err *err)
{
  char label[64];
  cleanup_buf struct buf sealed = BUF_INIT(VALUE_MAX + 1024);
  cleanup_wipe struct buf value = BUF_INIT(VALUE_MAX);
  int r = store_box_egress_get(b->warden->store, b->row.id, &sealed);
  if (r)
    return r == -ENOENT ? 0 : err_set(err, r, "the egress settings can't be read");
  if ((r = need_key(b->warden, err)))
    return r;
  if (buf_reserve(&value, sealed.n) || seal_open(&sealing, str_of(label_of(b, label)), buf_str(&sealed), &value))
    return err_set(err, -EBADMSG, "the egress settings were sealed by another key, or changed");
  struct str rest = buf_str(&value), settings, cert, key;
  if (take_text(&rest, &settings) || take_text(&rest, &cert) || take_text(&rest, &key))
    return err_set(err, -EBADMSG, "malformed egress settings");
  if ((r = box_egress_read(settings, &b->egress, err)))
    return r;
  buf_adds(&b->egress->cert, cert);
  buf_adds(&b->egress->key, key);
  return 0;
}
