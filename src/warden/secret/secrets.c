/* SPDX-License-Identifier: Apache-2.0 */
/* secrets.c - see secrets.h. Rows are read when they are needed; in memory are the master keys and who watches. */
#include "warden/secret/secrets.h"

#include "warden/core/context.h"
#include "warden/core/worker_pool.h"
#include "warden/db/box_egress_store.h"
#include "warden/db/identity_store.h"
#include "warden/secret/keyring.h"
#include "warden/secret/workload_identity.h"
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#define BATCH      8       /* values that are sealed anew in one turn of the loop */
#define RETRY_US   1000000 /* between two looks at a master key that is missing */
#define LABEL_SIZE 512

struct watcher {
  secret_changed_fn changed;
  void *arg;
};

/* Values on their way to the current master key. */
struct rotation {
  uv_timer_t timer;
  uv_work_t work;
  struct warden *warden;
  char after[SECRET_ID_SIZE], after_box[BOX_ID_SIZE];
  uint64_t resealed, failed;
  secrets_rotated_fn done; /* NULL: nobody waits for it */
  void *arg;
  struct keyring ring; /* of the worker that ends it */
  struct err err;
};

struct secrets {
  struct keyring ring;
  bool ready;
  char why[512]; /* not ready: the reason */
  int64_t read_us;
  struct rotation *rotation; /* NULL: none under way */
  VEC(struct watcher) watchers;
  secrets_reseal_fn boxes; /* see secrets_seal_boxes */
};

static struct secrets *of(struct warden *w)
{
  return warden_secrets(w);
}

/* ---- the master key ---- */

static void key_file(const struct warden *w, char out[DATA_PATH_SIZE])
{
  const struct warden_config *c = warden_config(w);
  if (c->secrets_key_file[0])
    snprintf(out, DATA_PATH_SIZE, "%s", c->secrets_key_file);
  else
    snprintf(out, DATA_PATH_SIZE, "%s/secrets.key", c->data);
}

struct key_use {
  const struct keyring *ring;
  uint64_t sealed, unknown, old;
  char missing[MASTER_ID_SIZE];
};

static int count_key(const char *key, uint64_t n, void *arg)
{
  struct key_use *u = arg;
  u->sealed += n;
  if (!keyring_find(u->ring, key)) {
    u->unknown += n;
    snprintf(u->missing, sizeof(u->missing), "%.16s", key);
  } else if (strcmp(u->ring->keys[0].id, key) != 0) {
    u->old += n;
  }
  return 0;
}

static void refuse(struct secrets *s, const char *why)
{
  if (strcmp(s->why, why) != 0)
    log_error("secrets can't be used: %s", why);
  snprintf(s->why, sizeof(s->why), "%s", why);
  s->ready = false;
}

static void start_rotation(struct warden *w, secrets_rotated_fn done, void *arg);

/* A file that is missing is made only where nothing was sealed: else it is the file that must come back. */
static void read_keys(struct warden *w)
{
  struct secrets *s = of(w);
  struct err err = ERR_NONE;
  char file[DATA_PATH_SIZE], why[512];
  key_file(w, file);
  s->read_us = clock_mono_us();
  int r = keyring_read(&s->ring, file, &err);
  struct key_use use = {.ring = &s->ring};
  store_seal_keys(warden_store(w), count_key, &use);
  struct row_identity_key signing;
  bool signs = !store_identity_key_current(warden_store(w), &signing);
  if (signs)
    buf_free(&signing.sealed);
  bool boxes = store_box_egress_any(warden_store(w));
  if (r == -ENOENT && s->ring.source == KEY_OF_FILE && !use.sealed && !signs && !boxes)
    r = keyring_add(&s->ring, &err);
  if (r == -ENOENT)
    snprintf(why, sizeof(why), "the master key %s is missing, and %llu values%s are sealed by it; put it back",
             s->ring.path, (unsigned long long)(use.sealed + signs), boxes ? " and settings of sandboxes" : "");
  else if (r)
    snprintf(why, sizeof(why), "%.480s", err.msg);
  else if (use.unknown)
    snprintf(why, sizeof(why),
             "%llu of %llu values are sealed by the master key %s, which is not in %.256s; add it there, on a line "
             "behind the current one, or delete those secrets",
             (unsigned long long)use.unknown, (unsigned long long)use.sealed, use.missing, s->ring.path);
  if (r || use.unknown) {
    refuse(s, why);
    return;
  }
  if (s->why[0])
    log_info("secrets can be used again");
  s->why[0] = 0;
  s->ready = true;
  if (s->ring.n > 1 && (use.old || s->ring.source == KEY_OF_FILE) && !s->rotation)
    start_rotation(w, NULL, NULL);
}

bool secrets_ready(struct warden *w, struct err *err)
{
  struct secrets *s = of(w);
  if (!s->ready && clock_mono_us() - s->read_us > RETRY_US)
    read_keys(w);
  if (!s->ready)
    err_set(err, -ENOKEY, "secrets can't be used: %s", s->why);
  return s->ready;
}

/* A process that is forked from the warden finds zeros in the place of the keys, whatever it is for. */
static struct secrets *secrets_alloc(void)
{
  void *p = mmap(NULL, sizeof(struct secrets), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    return NULL;
  madvise(p, sizeof(struct secrets), MADV_WIPEONFORK);
  madvise(p, sizeof(struct secrets), MADV_DONTDUMP);
#ifdef __SANITIZE_ADDRESS__
  __lsan_register_root_region(p, sizeof(struct secrets)); /* leaks are not looked for in mappings */
#endif
  return p;
}

int secrets_open(struct warden *w, struct err *err)
{
  struct secrets *s = secrets_alloc();
  if (!s)
    return err_errno(err, "memory for the master keys");
  warden_set_secrets(w, s);
  read_keys(w);
  return 0;
}

void secrets_close(struct warden *w)
{
  struct secrets *s = of(w);
  if (!s)
    return;
  identity_close();
  keyring_wipe(&s->ring);
  vec_free(&s->watchers);
  warden_set_secrets(w, NULL);
#ifdef __SANITIZE_ADDRESS__
  __lsan_unregister_root_region(s, sizeof(*s));
#endif
  munmap(s, sizeof(*s));
}

/* ---- values ---- */

/* What is authenticated with a value; no part of it can hold a NUL. */
static struct str label_of(const struct row_secret *r, char out[LABEL_SIZE])
{
  int n = snprintf(out, LABEL_SIZE, "secret%c%s%c%s%c%s%c%llu", 0, r->id, 0, r->team, 0, r->name, 0,
                   (unsigned long long)r->version);
  return (struct str){out, (size_t)n};
}

static int open_row(const struct keyring *ring, const struct row_secret *row, struct buf *out)
{
  char label[LABEL_SIZE];
  const struct master_key *k = keyring_find(ring, row->key);
  return k ? seal_open(k, label_of(row, label), buf_str(&row->sealed), out) : -ENOKEY;
}

/* What no header can hold is no value: a line break would begin another header. */
static int check_value(struct str value, struct err *err)
{
  if (!value.n || value.n > SECRET_VALUE_MAX)
    return err_set(err, -EINVAL, "a value must have 1 to %d bytes", SECRET_VALUE_MAX);
  for (size_t i = 0; i < value.n; i++) {
    unsigned char c = (unsigned char)value.p[i];
    if ((c < 32 && c != '\t') || c == 127)
      return err_set(err, -EINVAL,
                     "the value holds a line break or another control character, which no header can hold");
  }
  return 0;
}

static int seal_row(struct warden *w, struct row_secret *row, struct str value, struct err *err)
{
  char label[LABEL_SIZE];
  const struct master_key *k = &of(w)->ring.keys[0];
  int r = check_value(value, err);
  if (r)
    return r;
  buf_free(&row->sealed);
  row->sealed = BUF_INIT(SECRET_VALUE_MAX + SEAL_OVERHEAD);
  snprintf(row->key, sizeof(row->key), "%s", k->id);
  if (seal(k, label_of(row, label), value, &row->sealed))
    return err_set(err, -EIO, "the value could not be encrypted");
  return row->version == 1 ? store_secret_add(warden_store(w), row, err)
                           : store_secret_change(warden_store(w), row, err);
}

/* ---- for what else is kept sealed ---- */

int secrets_seal(struct warden *w, struct str label, struct str value, char key[SEAL_KEY_SIZE], struct buf *out)
{
  const struct keyring *ring = &of(w)->ring;
  if (!secrets_ready(w, NULL))
    return -ENOKEY;
  snprintf(key, SEAL_KEY_SIZE, "%s", ring->keys[0].id);
  return seal(&ring->keys[0], label, value, out);
}

int secrets_unseal(struct warden *w, const char *key, struct str label, struct str sealed, struct buf *out)
{
  secrets_ready(w, NULL);
  const struct master_key *k = keyring_find(&of(w)->ring, key);
  return k ? seal_open(k, label, sealed, out) : -ENOKEY;
}

const char *secrets_key(struct warden *w)
{
  const struct keyring *ring = &of(w)->ring;
  return ring->n ? ring->keys[0].id : "";
}

int secrets_rewrap(struct warden *w, const char *key, struct str label, struct str sealed, char to[SEAL_KEY_SIZE],
                   struct buf *out)
{
  const struct keyring *ring = &of(w)->ring;
  const struct master_key *k = keyring_find(ring, key);
  snprintf(to, SEAL_KEY_SIZE, "%s", secrets_key(w));
  return k ? seal_rewrap(k, &ring->keys[0], label, sealed, out) : -ENOKEY;
}

static void tell_watchers(struct warden *w, const struct row_secret *row)
{
  struct secrets *s = of(w);
  for (size_t i = 0; i < s->watchers.n; i++)
    s->watchers.p[i].changed(w, row->team, row->name, s->watchers.p[i].arg);
}

void secrets_watch(struct warden *w, secret_changed_fn changed, void *arg)
{
  struct watcher one = {changed, arg};
  vec_push(&of(w)->watchers, one);
}

void secrets_seal_boxes(struct warden *w, secrets_reseal_fn reseal)
{
  of(w)->boxes = reseal;
}

int secret_value(struct warden *w, const char *team, const char *name, struct buf *out, struct err *err)
{
  struct row_secret row;
  char lower[SECRET_NAME_SIZE];
  size_t n = strnlen(name, sizeof(lower) - 1);
  for (size_t i = 0; i < n; i++)
    lower[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + 32) : name[i];
  lower[n] = 0;
  if (name[n] || store_secret_find(warden_store(w), team, lower, &row))
    return err_set(err, -ENOENT, "the team has no secret of this name");
  secrets_ready(w, NULL); /* looks at the master key again where it was missing */
  int r = open_row(&of(w)->ring, &row, out);
  if (r == -EBADMSG)
    log_error("secret %s: its row in the database was changed, or is another's", row.id);
  row_secret_free(&row);
  if (r == -ENOKEY)
    return err_set(err, r, "the master key of this secret is missing");
  return r ? err_set(err, r, "the secret can't be read: its row in the database is damaged") : 0;
}

int secret_create(struct warden *w, struct row_secret *row, struct str value, struct err *err)
{
  unsigned most = warden_config(w)->team_secrets_max;
  struct row_secret there;
  if (!secrets_ready(w, err))
    return -ENOKEY;
  if (!store_secret_find(warden_store(w), row->team, row->name, &there)) {
    row_secret_free(&there);
    return err_set(err, -EEXIST, "the team has a secret of this name already");
  }
  if (store_secret_count(warden_store(w), row->team) >= most)
    return err_set(err, -E2BIG, "the team has %u secrets, as many as it may; delete some", most);
  row->version = 1;
  row->created_us = row->updated_us = clock_wall_us();
  int r = seal_row(w, row, value, err);
  if (!r)
    tell_watchers(w, row);
  return r;
}

int secret_update(struct warden *w, struct row_secret *row, struct str value, struct err *err)
{
  if (!secrets_ready(w, err))
    return -ENOKEY;
  row->version++;
  row->updated_us = clock_wall_us();
  int r = seal_row(w, row, value, err);
  if (!r)
    tell_watchers(w, row);
  return r;
}

int secret_delete(struct warden *w, const struct row_secret *row, struct err *err)
{
  int r = store_secret_delete(warden_store(w), row->id, err);
  if (!r)
    tell_watchers(w, row);
  return r;
}

/* ---- another master key ----
 *
 * The new key is in the file before the first value is sealed by it; a few values go over in each turn of the loop, in
 * one transaction; the old key leaves the file behind the sync of the last one. A warden that starts in between finds
 * both keys and goes on. */

struct batch {
  struct row_secret rows[BATCH];
  size_t n;
};

static int collect(const struct row_secret *r, void *arg)
{
  struct batch *b = arg;
  struct row_secret *copy = &b->rows[b->n++];
  *copy = *r;
  copy->metadata = NULL;
  copy->sealed = BUF_INIT(SECRET_VALUE_MAX + SEAL_OVERHEAD);
  return buf_adds(&copy->sealed, buf_str(&r->sealed));
}

/* 0: it is sealed by the current key; -EBADMSG or -ENOKEY: it stays as it is. */
static int reseal(struct warden *w, struct row_secret *row, struct err *err)
{
  char label[LABEL_SIZE];
  const struct keyring *ring = &of(w)->ring;
  const struct master_key *from = keyring_find(ring, row->key);
  cleanup_buf struct buf out = BUF_INIT(SECRET_VALUE_MAX + SEAL_OVERHEAD);
  int r = from ? seal_rewrap(from, &ring->keys[0], label_of(row, label), buf_str(&row->sealed), &out) : -ENOKEY;
  if (r)
    return r;
  struct row_secret to = *row;
  to.sealed = out;
  snprintf(to.key, sizeof(to.key), "%s", ring->keys[0].id);
  return store_secret_reseal(warden_store(w), &to, err);
}

static void rotation_freed(uv_handle_t *h)
{
  struct rotation *t = h->data;
  keyring_wipe(&t->ring);
  free(t);
}

static void end_rotation(struct rotation *t)
{
  struct warden *w = t->warden;
  if (t->err.code)
    log_error("change of the master key of secrets: %s", t->err.msg);
  else if (t->resealed)
    log_info("%llu secrets are sealed by the master key %s now", (unsigned long long)t->resealed,
             of(w)->ring.keys[0].id);
  of(w)->rotation = NULL;
  if (t->done)
    t->done(w, t->err.code ? &t->err : NULL, t->resealed, t->arg);
  uv_close((uv_handle_t *)&t->timer, rotation_freed);
}

static void drop_old(uv_work_t *work)
{
  struct rotation *t = work->data;
  int r = store_harden(warden_store(t->warden));
  if (r)
    err_set(&t->err, r, "the database could not be synced: %s; the old key stays", strerrordesc_np(-r));
  else if (t->ring.source == KEY_OF_FILE)
    keyring_drop_old(&t->ring, &t->err);
}

static void dropped_old(uv_work_t *work, int status)
{
  struct rotation *t = work->data;
  if (!t->err.code)
    of(t->warden)->ring = t->ring;
  end_rotation(t);
}

static void rotation_turn(uv_timer_t *timer)
{
  struct rotation *t = timer->data;
  struct warden *w = t->warden;
  struct batch batch = {0};
  store_secrets_of_other_keys(warden_store(w), of(w)->ring.keys[0].id, t->after, BATCH, collect, &batch);
  int r = batch.n ? store_begin(warden_store(w), &t->err) : 0;
  bool begun = batch.n && !r;
  uint64_t resealed = 0;
  for (size_t i = 0; !r && i < batch.n; i++) {
    int k = reseal(w, &batch.rows[i], &t->err);
    bool unreadable = k == -EBADMSG || k == -ENOKEY;
    t->failed += unreadable;
    resealed += !k;
    r = unreadable ? 0 : k;
    snprintf(t->after, sizeof(t->after), "%s", batch.rows[i].id);
  }
  if (begun)
    r = store_end(warden_store(w), r, &t->err);
  t->resealed += r ? 0 : resealed;
  for (size_t i = 0; i < batch.n; i++)
    row_secret_free(&batch.rows[i]);
  if (!r && batch.n)
    return;
  secrets_reseal_fn boxes = of(w)->boxes;
  r = r || !boxes ? r : boxes(w, t->after_box, &t->failed, &t->err);
  if (r > 0)
    return;
  uv_timer_stop(timer);
  r = r ? r : identity_reseal(w, &t->failed, &t->err);
  if (!r && t->failed)
    r = err_set(&t->err, -EBADMSG, "%llu values can't be opened and stay as they are; the old key is kept",
                (unsigned long long)t->failed);
  if (r) {
    end_rotation(t);
    return;
  }
  t->ring = of(w)->ring;
  worker_pool_queue(w, "", &t->work, drop_old, dropped_old);
}

static void start_rotation(struct warden *w, secrets_rotated_fn done, void *arg)
{
  struct rotation *t = xcalloc(1, sizeof(*t));
  *t = (struct rotation){.warden = w, .done = done, .arg = arg};
  t->timer.data = t->work.data = t;
  of(w)->rotation = t;
  uv_timer_init(warden_loop(w), &t->timer);
  uv_timer_start(&t->timer, rotation_turn, 0, 1);
}

bool secrets_busy(struct warden *w)
{
  return of(w)->rotation != NULL;
}

int secrets_rotate(struct warden *w, secrets_rotated_fn done, void *arg, struct err *err)
{
  struct secrets *s = of(w);
  if (!secrets_ready(w, err))
    return -ENOKEY;
  if (s->rotation)
    return err_set(err, -EBUSY, "the master key is being changed already; wait for its end");
  int r = keyring_add(&s->ring, err);
  if (!r)
    start_rotation(w, done, arg);
  return r;
}

/* ---- does everything open? ---- */

struct check {
  uv_work_t work;
  struct warden *warden;
  struct keyring ring;
  struct secrets_report report;
  secrets_checked_fn done;
  void *arg;
};

static int check_row(const struct row_secret *row, void *arg)
{
  struct check *c = arg;
  cleanup_wipe struct buf b = BUF_INIT(SECRET_VALUE_MAX);
  if (buf_reserve(&b, SECRET_VALUE_MAX - 1))
    return -ENOMEM;
  if (open_row(&c->ring, row, &b))
    c->report.bad++;
  else
    c->report.good++;
  return 0;
}

static void check_all(uv_work_t *work)
{
  struct check *c = work->data;
  struct store *reader;
  struct err err = ERR_NONE;
  int r = store_open_reader(warden_store(c->warden), &reader, &err);
  if (!r) {
    r = store_secrets_of_other_keys(reader, "", "", UINT_MAX, check_row, c);
    store_close(reader);
  }
  if (r)
    snprintf(c->report.why, sizeof(c->report.why), "the secrets could not be read: %.400s", err.msg);
}

static void checked(uv_work_t *work, int status)
{
  struct check *c = work->data;
  c->done(c->warden, &c->report, c->arg);
  keyring_wipe(&c->ring);
  free(c);
}

void secrets_check(struct warden *w, secrets_checked_fn done, void *arg)
{
  struct check *c = xcalloc(1, sizeof(*c));
  struct secrets *s = of(w);
  struct err err = ERR_NONE;
  *c = (struct check){.warden = w, .done = done, .arg = arg};
  if (!secrets_ready(w, &err))
    snprintf(c->report.why, sizeof(c->report.why), "%s", err.msg);
  c->work.data = c;
  c->ring = s->ring;
  c->report.keys = s->ring.n;
  snprintf(c->report.key, sizeof(c->report.key), "%s", s->ring.n ? s->ring.keys[0].id : "");
  snprintf(c->report.source, sizeof(c->report.source), "%s", s->ring.path);
  worker_pool_queue(w, "", &c->work, check_all, checked);
}
