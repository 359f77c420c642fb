/* SPDX-License-Identifier: Apache-2.0 */
/* policies.c - see policies.h. What is to be sent waits in a queue and goes for a moment at a time: a gateway that
 * starts, or a secret that many boxes name, is no reason to keep the loop from others. */
#include "warden/egress/policies.h"

#include "warden/core/box_egress.h"
#include "warden/core/box_state.h"
#include "warden/core/egress.h"
#include "warden/core/net_log.h"
#include "warden/core/warden_state.h"
#include "warden/egress/keep.h"
#include "warden/secret/box_seal.h"
#include "warden/secret/secrets.h"
#include "warden/secret/workload_identity.h"
#include "wire/box_socket.h"
#include "wire/egress_policy.h"
#include "wire/ipc.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#define TURN_US      2000 /* after so long the loop is others'; what is left goes in its next turn */
#define AGAIN_MS     200  /* what a full link did not take is tried again after so long */
#define SETTINGS_MAX ((size_t)8 << 20)

/* Somebody waits for the gateway's word. */
struct wait {
  struct wait *next;
  uint64_t generation;
  uint32_t address;
  int64_t until_us;
  policy_fn *done;
  void *arg;
  struct err err; /* why it could not even be sent */
};

struct queued {
  char box[BOX_ID_SIZE];
};

struct policies {
  struct warden *warden;
  struct ipc *link;
  int listener; /* of the gateways; kept so that connections wait while one is started again */
  uint64_t generation;
  struct wait *waits;
  uv_timer_t deadline, pace;
  VEC(struct queued) queue;
  bool sync_due; /* this link has not been told yet that it has all */
};

/* ---- building one ---- */

/* Values stay in memory of their own, which is wiped. */
struct values {
  char *p;
  size_t n, size;
};

static int put_value(struct values *v, struct warden *w, const char *team, struct egress_secret *s)
{
  char name[EGRESS_REF_SIZE];
  cleanup_wipe struct buf value = BUF_INIT(SECRET_VALUE_MAX);
  struct err err = ERR_NONE;
  s->missing = true;
  s->value = STR_NONE;
  if (str_copyz(s->name, name, sizeof(name)) || buf_reserve(&value, SECRET_VALUE_MAX))
    return -ENOMEM;
  int r = secret_value(w, team, name, &value, &err);
  if (r == -ENOENT)
    return 0;
  if (r) {
    log_warn("a secret that a sandbox's rules name can't be used: %s", err.msg);
    return 0;
  }
  if (value.n > v->size - v->n)
    return -E2BIG;
  memcpy(v->p + v->n, value.p, value.n);
  s->value = str_make(v->p + v->n, value.n);
  s->missing = false;
  v->n += value.n;
  return 0;
}

static int build(const struct box *b, struct values *v, struct buf *out, struct err *err)
{
  cleanup_arena struct arena a = ARENA_INIT(SETTINGS_MAX);
  struct egress_policy p;
  struct box_egress *e = b->egress;
  int r = egress_policy_read(&a, buf_str(&e->settings), &p, err);
  for (size_t i = 0; !r && i < p.nsecrets; i++)
    if ((r = put_value(v, b->warden, b->row.team, &p.secrets[i])))
      err_set(err, r, "the secrets that the rules name are larger than %zu bytes together", EGRESS_POLICY_MAX);
  if (r)
    return r;
  snprintf(p.box, sizeof(p.box), "%s", b->row.id);
  snprintf(p.team, sizeof(p.team), "%s", b->row.team);
  p.log = (enum egress_log)b->warden->config->network_log; /* off, names, full: the same numbers */
  p.ca_cert = buf_str(&e->cert);
  p.ca_key = buf_str(&e->key);
  egress_policy_pack(out, &p);
  return buf_failed(out)
             ? err_set(err, -E2BIG, "the sandbox's egress policy is larger than %zu bytes", EGRESS_POLICY_MAX)
             : 0;
}

static int sealed_memory(struct str text, int *out, struct err *err)
{
  cleanup_fd int fd = memfd_create("policy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 || fd_write_all(fd, text.p, text.n) ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL))
    return err_errno(err, "memory for an egress policy");
  *out = steal_fd(&fd);
  return 0;
}

static int pack(const struct box *b, int *fd, size_t *length, struct err *err)
{
  struct values v = {.size = EGRESS_POLICY_MAX};
  cleanup_wipe struct buf packed = BUF_INIT(EGRESS_POLICY_MAX);
  v.p = mmap(NULL, v.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (v.p == MAP_FAILED)
    return err_errno(err, "memory for an egress policy");
  int r = buf_reserve(&packed, b->egress->settings.n + (16u << 10));
  r = r ? r : build(b, &v, &packed, err);
  r = r ? r : sealed_memory(buf_str(&packed), fd, err);
  *length = packed.n;
  explicit_bzero(v.p, v.n);
  munmap(v.p, v.size);
  return r;
}

/* ---- sending ---- */

static uint32_t address_of(const struct box *b)
{
  return egress_address(b->warden, b->row.slot);
}

static int send_about(struct policies *s, const struct box *b, enum egress_type type, int fd, size_t length)
{
  cleanup_buf struct buf packet = BUF_INIT(EGRESS_PACKET_MAX);
  union egress_body body = {
      .set = {.generation = b->egress->generation, .address = address_of(b), .length = (uint32_t)length}};
  snprintf(body.set.box, sizeof(body.set.box), "%s", b->row.id);
  egress_packet(&packet, type, &body, STR_NONE);
  return s->link ? ipc_send(s->link, buf_str(&packet), fd) : 0;
}

/* Under the next generation, or under that of the one who waits for it. */
static int send_policy(struct policies *s, struct box *b, struct err *err)
{
  size_t length = 0;
  cleanup_fd int fd = -1;
  int r = b->egress->unread ? egress_recall(b, err) : 0;
  b->egress->generation = ++s->generation;
  if (r || !s->link)
    return r; /* it goes when a gateway is there */
  r = pack(b, &fd, &length, err);
  if (!r && (r = send_about(s, b, EGRESS_SET, fd, length)))
    err_set(err, r, "the egress gateway takes no policies: %s", strerrordesc_np(-r));
  return r;
}

static struct box *box_by_id(struct policies *s, const char *id)
{
  struct box *b = map_get(&s->warden->boxes, str_of(id));
  return b && b->egress ? b : NULL;
}

/* False: the link takes nothing now, or there is no descriptor for it. */
static bool send_queued(struct policies *s, const struct queued *q)
{
  struct box *b = box_by_id(s, q->box);
  struct err err = ERR_NONE;
  if (!b || !b->egress->queued)
    return true;
  int r = b->egress->wanted ? send_policy(s, b, &err) : 0;
  b->egress->queued = r == -ENOBUFS || r == -EMFILE || r == -ENFILE;
  if (b->egress->queued)
    return false;
  if (r)
    log_with(LOG_ERROR, (const char *[]){"box", b->row.id, NULL}, "%s", err.msg);
  return true;
}

static void send_some(uv_timer_t *timer)
{
  struct policies *s = timer->data;
  int64_t until_us = clock_mono_us() + TURN_US;
  size_t n = 0;
  bool taken = true;
  while (n < s->queue.n && taken && (n == 0 || clock_mono_us() < until_us))
    if ((taken = send_queued(s, &s->queue.p[n])))
      n++;
  if (n)
    memmove(s->queue.p, s->queue.p + n, (s->queue.n - n) * sizeof(s->queue.p[0]));
  s->queue.n -= n;
  if (s->queue.n) {
    uv_timer_start(timer, send_some, taken ? 0 : AGAIN_MS, 0);
    return;
  }
  if (s->link && s->sync_due) {
    cleanup_buf struct buf packet = BUF_INIT(EGRESS_PACKET_MAX);
    egress_packet(&packet, EGRESS_SYNC, NULL, STR_NONE);
    s->sync_due = ipc_send(s->link, buf_str(&packet), -1) != 0;
    if (s->sync_due)
      uv_timer_start(timer, send_some, AGAIN_MS, 0);
  }
}

static void queue_box(struct policies *s, struct box *b)
{
  struct queued q;
  if (b->egress->queued)
    return;
  b->egress->queued = true;
  memcpy(q.box, b->row.id, sizeof(q.box));
  vec_push(&s->queue, q);
  if (!uv_is_active((uv_handle_t *)&s->pace))
    uv_timer_start(&s->pace, send_some, 0, 0);
}

/* ---- waiting ---- */

static void watch_deadlines(struct policies *s);

static void finish(struct wait *w, int result, const struct err *err)
{
  w->done(w->arg, result, err);
  free(w);
}

static void on_deadline(uv_timer_t *timer)
{
  struct policies *s = timer->data;
  struct wait *late = NULL;
  for (struct wait **at = &s->waits; *at;) {
    struct wait *w = *at;
    if (w->until_us > clock_mono_us()) {
      at = &w->next;
      continue;
    }
    *at = w->next;
    w->next = late;
    late = w;
  }
  while (late) {
    struct wait *w = late;
    struct err err = ERR_NONE;
    late = w->next;
    err_set(&err, -ESHUTDOWN,
            "the egress gateway did not take the sandbox's rules within %u s (setting egress_seconds)",
            s->warden->config->egress_s);
    err = w->err.code ? w->err : err;
    finish(w, err.code, &err);
  }
  watch_deadlines(s);
}

static void watch_deadlines(struct policies *s)
{
  int64_t first = INT64_MAX;
  for (const struct wait *w = s->waits; w; w = w->next)
    first = MIN(first, w->until_us);
  int64_t left = first - clock_mono_us();
  if (s->waits)
    uv_timer_start(&s->deadline, on_deadline, left > 0 ? (uint64_t)left / 1000 + 1 : 0, 0);
  else
    uv_timer_stop(&s->deadline);
}

static void on_applied(struct policies *s, const struct egress_applied_body *a, struct str text)
{
  struct wait *over = NULL;
  for (struct wait **at = &s->waits; *at;) {
    struct wait *w = *at;
    if (w->address != a->address || w->generation > a->generation) {
      at = &w->next;
      continue;
    }
    *at = w->next;
    w->next = over;
    over = w;
  }
  if (a->status && !over)
    log_warn("the egress gateway refused a policy: " STR_FMT, STR_ARG(str_sub(text, 0, EGRESS_MESSAGE_SIZE)));
  while (over) {
    struct wait *w = over;
    struct err err = ERR_NONE;
    over = w->next;
    if (a->status)
      err_set(&err, -EIO, "the egress gateway refused the sandbox's policy: " STR_FMT,
              STR_ARG(str_sub(text, 0, EGRESS_MESSAGE_SIZE)));
    finish(w, err.code, &err);
  }
  watch_deadlines(s);
}

/* ---- the link ---- */

/* Only for a box that has a policy there, at the address that is its own. */
static void on_token_asked(struct policies *s, const struct egress_ask_body *ask)
{
  cleanup_wipe struct buf packet = BUF_INIT(EGRESS_PACKET_MAX), token = BUF_INIT(IDENTITY_TOKEN_MAX);
  union egress_body body = {.token = {.id = ask->id, .status = -ENOENT}};
  struct box *b = box_by_id(s, ask->box);
  struct err err = ERR_NONE;
  unsigned reuse_s = 0;
  if (b && b->egress->wanted && address_of(b) == ask->address)
    body.token.status = identity_token(s->warden, &b->row, str_of(ask->name), &token, &reuse_s, &err);
  if (body.token.status && body.token.status != -ENOENT && err.msg[0])
    log_with(LOG_WARN, (const char *[]){"box", ask->box, NULL}, "no identity token for a request: %s", err.msg);
  body.token.good_for = reuse_s;
  egress_packet(&packet, EGRESS_TOKEN, &body, body.token.status ? STR_NONE : buf_str(&token));
  ipc_send(s->link, buf_str(&packet), -1);
}

static void on_record(struct policies *s, const struct egress_record_body *r, struct str text)
{
  struct box *b = box_by_id(s, r->box);
  if (b && address_of(b) == r->address)
    net_log_request(b, r, text);
}

static void on_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  struct policies *s = arg;
  enum egress_type type;
  union egress_body body;
  struct str text;
  if (fd >= 0)
    close(fd);
  if (egress_packet_read(packet, &type, &body, &text)) {
    log_error("malformed packet of %zu bytes from the egress gateway", packet.n);
    return;
  }
  if (type == EGRESS_APPLIED)
    on_applied(s, &body.applied, text);
  else if (type == EGRESS_TOKEN_ASK)
    on_token_asked(s, &body.ask);
  else if (type == EGRESS_RECORD)
    on_record(s, &body.record, text);
}

static void on_closed(struct ipc *l, void *arg)
{
  struct policies *s = arg;
  if (s->link == l)
    s->link = NULL;
  ipc_free(l);
}

static const struct ipc_ops link_ops = {on_packet, on_closed};

static void send_listener(struct policies *s)
{
  cleanup_buf struct buf packet = BUF_INIT(EGRESS_PACKET_MAX);
  struct err err = ERR_NONE;
  if (s->listener < 0)
    s->listener = egress_listen(s->warden, &err);
  if (s->listener < 0) {
    log_error("egress gateway: %s", err.msg);
    return;
  }
  egress_packet(&packet, EGRESS_LISTEN, NULL, STR_NONE);
  ipc_send(s->link, buf_str(&packet), s->listener);
}

void policies_link(struct warden *w, int fd)
{
  struct policies *s = w->policies;
  void *value;
  if (s->link)
    ipc_free(s->link);
  box_socket_guard(fd);
  s->link = ipc_new(w->loop, fd, &link_ops, s);
  ipc_guard(s->link);
  if (egress_gateway(w))
    send_listener(s);
  s->sync_due = true;
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);) {
    struct box *b = value;
    if (b->egress && b->egress->wanted)
      queue_box(s, b);
  }
  uv_timer_start(&s->pace, send_some, 0, 0);
}

/* ---- boxes ---- */

void policy_apply(struct box *b, policy_fn *done, void *arg)
{
  struct policies *s = b->warden->policies;
  struct wait *w = xcalloc(1, sizeof(*w));
  struct err err = ERR_NONE;
  b->egress->wanted = true;
  b->egress->queued = false;
  int r = send_policy(s, b, &err);
  *w = (struct wait){.next = s->waits,
                     .generation = b->egress->generation,
                     .address = address_of(b),
                     .until_us = r ? 0 : clock_mono_us() + (int64_t)b->warden->config->egress_s * 1000000,
                     .done = done,
                     .arg = arg,
                     .err = err};
  s->waits = w;
  watch_deadlines(s);
}

int policy_check(const struct box_egress *e, char *tokens, struct err *err)
{
  const struct row_box row = {.tokens = tokens};
  struct str rest = buf_str(&e->tokens), name;
  while (rest.n) {
    str_cut(rest, '\n', &name, &rest);
    if (!identity_has(&row, name))
      return err_set(err, -EINVAL,
                     "'network.rules' names the identity token '" STR_FMT
                     "', which the sandbox does not have; tokens are given when it is created ('iam')",
                     STR_ARG(name));
  }
  return 0;
}

void policy_want(struct box *b)
{
  if (!b->egress)
    return;
  b->egress->wanted = true;
  queue_box(b->warden->policies, b);
}

void policy_remove(struct box *b)
{
  struct policies *s = b->warden->policies;
  if (!b->egress || !b->egress->wanted)
    return;
  b->egress->wanted = b->egress->queued = false;
  b->egress->generation = ++s->generation;
  if (send_about(s, b, EGRESS_REMOVE, -1, 0))
    log_warn("box %s: the egress gateway was not told that it is over", b->row.id);
}

static void secret_changed(struct warden *w, const char *team, const char *name, void *arg)
{
  struct policies *s = arg;
  void *value;
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);) {
    struct box *b = value;
    if (b->egress && b->egress->secrets && b->egress->wanted && !strcmp(b->row.team, team) &&
        box_egress_names(b->egress, str_of(name)))
      queue_box(s, b);
  }
}

void policies_open(struct warden *w)
{
  struct policies *s = xcalloc(1, sizeof(*s));
  s->warden = w;
  s->listener = -1;
  s->generation = (uint64_t)clock_mono_us(); /* greater than all of a warden before, in the life of a gateway */
  uv_timer_init(w->loop, &s->deadline);
  uv_timer_init(w->loop, &s->pace);
  s->deadline.data = s->pace.data = s;
  w->policies = s;
  secrets_watch(w, secret_changed, s);
  secrets_seal_boxes(w, box_reseal);
}
