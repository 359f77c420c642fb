/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.c - see cluster.h. */
#include "warden/core/cluster.h"

#include "warden/core/node.h"
#include "warden/core/warden_state.h"
#include "wire/machine.h"
#include <inttypes.h>
#include <stdio.h>
#include <sys/sysinfo.h>

#define KEPT_MACHINE  "machine"    /* in the store: tells this data directory from all others */
#define KEPT_EPOCH    "node_epoch" /* under which it held its name last */
#define MACHINE_BYTES 16
#define ASKED_MAX     1024
#define TICK_MS       250

struct asked {
  uint64_t id;
  struct origin origin; /* ipc NULL: the lease */
  int64_t since_us;
};

struct cluster {
  struct warden *warden;
  void (*status)(struct warden *w, struct wire_status *out);
  struct ipc *store; /* NULL: the store process is not there now */
  uv_timer_t timer;
  VEC(struct asked) asked;
  uint64_t numbers;
  struct machine machine;
  char id[2 * MACHINE_BYTES + 1];
  uint64_t epoch;
  bool begun;         /* the epoch is one that the store gave to this process */
  bool renewing;      /* the answer is due */
  int64_t renewed_us; /* when it was asked for last, monotonic */
  int64_t until_us;   /* the lease's end, monotonic; 0 = there is none */
  char why[300];      /* there is none */
};

bool cluster_on(const struct warden *w)
{
  return w->cluster && w->cluster->id[0];
}

static bool leased(const struct cluster *c)
{
  return clock_mono_us() < c->until_us;
}

int cluster_admit(const struct warden *w, struct err *err)
{
  const struct cluster *c = w->cluster;
  if (!cluster_on(w) || leased(c))
    return 0;
  return err_set(err, -ESHUTDOWN, "this node has no lease and takes no sandboxes: %s",
                 c->why[0] ? c->why : "the store has not answered yet");
}

bool cluster_self(const struct warden *w, struct str name)
{
  return str_is(name, NODE_LOCAL) || (cluster_on(w) && str_is(name, w->config->node_name));
}

/* ---- what is told ---- */

static void put_load(struct wire_node *n)
{
  struct sysinfo info = {0};
  sysinfo(&info);
  uint64_t unit = info.mem_unit ? info.mem_unit : 1;
  n->load = (uint64_t)((double)info.loads[0] / 65536.0 * NODE_CPU_FULL / (double)MAX(n->cpus, (uint64_t)1));
  n->memory = info.totalram * unit;
  n->memory_used = (info.totalram - info.freeram - info.bufferram) * unit;
}

/* As many as there is room for. */
static void put_templates(const struct warden *w, char *out, size_t size)
{
  struct template *const *list;
  size_t n = catalog_templates(w->catalog, &list), used = 0;
  for (size_t i = 0; i < n; i++) {
    size_t more = strlen(list[i]->row.name);
    if (!list[i]->row.public || !catalog_default(list[i]) || used + more + 2 > size)
      continue;
    used += (size_t)snprintf(out + used, size - used, "%s%s", used ? " " : "", list[i]->row.name);
  }
}

static void put_figures(struct warden *w, struct wire_node *n)
{
  struct wire_status s = {0};
  w->cluster->status(w, &s);
  *n = (struct wire_node){.epoch = w->cluster->epoch,
                          .status = s.node,
                          .since_us = s.node_since_us,
                          .left_us = cluster_on(w) ? w->cluster->until_us - clock_mono_us() : INT64_MAX,
                          .running = s.running,
                          .starting = s.starting,
                          .paused = s.paused,
                          .warm = s.warm_boxes,
                          .creates = s.launches_total,
                          .creates_failed = s.launches_failed,
                          .cpus = w->cluster->machine.cpus,
                          .cpus_given = s.cpus,
                          .memory_given = s.memory};
  put_load(n);
}

void cluster_describe(struct warden *w, struct node_record *out)
{
  const struct machine *m = &w->cluster->machine;
  *out = (struct node_record){0};
  put_figures(w, &out->n);
  snprintf(out->version, sizeof(out->version), "%s", CLOCHE_VERSION);
  snprintf(out->hardware, sizeof(out->hardware), "%s\n%s\n%s\n%s", m->family, m->model, m->model_name, m->architecture);
  snprintf(out->tiers, sizeof(out->tiers), "%s", w->microvm_on ? "process microvm" : "process");
  snprintf(out->name, sizeof(out->name), "%s", cluster_on(w) ? w->config->node_name : NODE_LOCAL);
  if (!cluster_on(w))
    return;
  snprintf(out->machine, sizeof(out->machine), "%s", w->cluster->id);
  snprintf(out->address, sizeof(out->address), "%s", w->config->node_address);
  snprintf(out->labels, sizeof(out->labels), "%s", w->config->node_labels);
  put_templates(w, out->templates, sizeof(out->templates));
}

/* ---- asking ---- */

static int ask(struct cluster *c, struct origin origin, struct buf *request, struct err *err)
{
  struct asked a = {.id = ++c->numbers, .origin = origin, .since_us = clock_mono_us()};
  if (!c->store || c->asked.n >= ASKED_MAX || buf_failed(request))
    return err_set(err, -ESHUTDOWN, c->store ? "too many requests wait for the store" : "the store is starting");
  memcpy(request->p + offsetof(struct wire_head, id), &a.id, sizeof(a.id));
  if (ipc_send(c->store, buf_str(request), -1))
    return err_set(err, -ESHUTDOWN, "the store process does not read");
  vec_push(&c->asked, a);
  return 0;
}

int cluster_ask(struct warden *w, struct origin origin, struct buf *request, struct err *err)
{
  return ask(w->cluster, origin, request, err);
}

static void renew(struct cluster *c)
{
  struct node_record r;
  struct err err = ERR_NONE;
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  cluster_describe(c->warden, &r);
  wire_begin(&b, WIRE_STORE_NODE, 0, 0);
  node_record_put(&b, &r);
  wire_put_u64(&b, W_TIMEOUT, c->warden->config->node_lease_s);
  wire_put_u64(&b, W_LAST, c->warden->config->node_forget_h);
  wire_put_u64(&b, W_MODE, c->begun ? 0 : 1);
  c->renewed_us = clock_mono_us();
  c->renewing = !ask(c, (struct origin){0}, &b, &err);
}

/* ---- answers ---- */

static void keep_epoch(struct cluster *c, uint64_t epoch)
{
  char text[U64_TEXT];
  struct err err = ERR_NONE;
  c->begun = true;
  if (epoch == c->epoch)
    return;
  c->epoch = epoch;
  snprintf(text, sizeof(text), "%" PRIu64, epoch);
  if (store_meta_put(c->warden->store, KEPT_EPOCH, str_of(text), &err))
    log_error("the node's epoch: %s", err.msg);
}

static void lost(struct cluster *c, int status, const char *why)
{
  bool new = strcmp(why, c->why) != 0;
  snprintf(c->why, sizeof(c->why), "%s", why);
  if (status == -ESTALE) { /* whoever is there now has the name until its lease ends */
    c->begun = false;
    c->epoch = 0;
    c->until_us = 0;
  }
  if (new && (status == -ESTALE || status == -EEXIST))
    log_error("%s", why);
}

static void obey(struct cluster *c, uint64_t wanted)
{
  struct err err = ERR_NONE;
  if ((wanted == NODE_READY || wanted == NODE_DRAINING) && node_set(c->warden, (enum node_status)wanted, &err))
    log_error("%s", err.msg);
}

static void renewed(struct cluster *c, const struct asked *a, struct str packet)
{
  int status = wire_head(packet)->status;
  char why[300] = "";
  c->renewing = false;
  wire_copyz(packet, W_MESSAGE, why, sizeof(why));
  uint64_t epoch = wire_u64(packet, W_RUN, 0);
  if (status || !epoch) {
    lost(c, status, why[0] ? why : "the store refused it");
    return;
  }
  if (!c->begun)
    log_info("node %s holds its lease, epoch %" PRIu64, c->warden->config->node_name, epoch);
  keep_epoch(c, epoch);
  c->why[0] = 0;
  c->until_us = a->since_us + (int64_t)c->warden->config->node_lease_s * 1000000;
  obey(c, wire_u64(packet, W_STATE, 0));
}

/* Only fields that are known and whole go on to a gate. */
static void pass_item(struct cluster *c, const struct asked *a, struct str packet)
{
  struct node_record r;
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  if (node_record_read(packet, &r))
    return;
  wire_begin(&b, WIRE_ITEM, a->origin.id, 0);
  node_record_put(&b, &r);
  reply_packet(c->warden, a->origin, &b);
}

static void pass_reply(struct cluster *c, const struct asked *a, struct str packet)
{
  struct err err = ERR_NONE;
  int status = wire_head(packet)->status;
  char why[300] = "";
  wire_copyz(packet, W_MESSAGE, why, sizeof(why));
  if (status)
    err_set(&err, status == -ENOENT ? status : -ESHUTDOWN, "%s", why);
  reply_end(c->warden, a->origin, err.code, &err);
}

static ptrdiff_t find_asked(const struct cluster *c, uint64_t id)
{
  for (size_t i = 0; i < c->asked.n; i++)
    if (c->asked.p[i].id == id)
      return (ptrdiff_t)i;
  return -1;
}

static void store_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  struct cluster *c = arg;
  ptrdiff_t i = wire_check(packet) ? -1 : find_asked(c, wire_head(packet)->id);
  if (i < 0) /* one that nobody waits for any more */
    return;
  struct asked a = c->asked.p[i];
  if (wire_head(packet)->type == WIRE_ITEM) {
    if (a.origin.ipc)
      pass_item(c, &a, packet);
    return;
  }
  vec_remove_swap(&c->asked, (size_t)i);
  if (a.origin.ipc)
    pass_reply(c, &a, packet);
  else
    renewed(c, &a, packet);
}

static void give_up(struct cluster *c, size_t i, const char *why)
{
  struct asked a = c->asked.p[i];
  struct err err = ERR_NONE;
  vec_remove_swap(&c->asked, i);
  err_set(&err, -ESHUTDOWN, "%s", why);
  if (a.origin.ipc) {
    reply_end(c->warden, a.origin, err.code, &err);
  } else {
    c->renewing = false;
    lost(c, err.code, why);
  }
}

static void store_closed(struct ipc *l, void *arg)
{
  struct cluster *c = arg;
  if (c->store == l)
    c->store = NULL;
  while (!c->store && c->asked.n)
    give_up(c, 0, "the store process has ended; it is started again");
  ipc_free(l);
}

static const struct ipc_ops store_ops = {store_packet, store_closed};

/* ---- time ---- */

static void tick(uv_timer_t *t)
{
  struct cluster *c = t->data;
  int64_t now = clock_mono_us();
  int64_t each = (int64_t)c->warden->config->node_lease_s * 1000000 / 3;
  for (size_t i = c->asked.n; i-- > 0;)
    if (now - c->asked.p[i].since_us > (int64_t)c->warden->config->store_s * 1000000)
      give_up(c, i, "the store does not answer in time");
  if (c->store && !c->renewing && !c->warden->stopping && now - c->renewed_us >= (leased(c) ? each : 1000000))
    renew(c);
}

void cluster_link(struct warden *w, int fd)
{
  struct cluster *c = w->cluster;
  struct ipc *old = c->store;
  c->store = ipc_new(w->loop, fd, &store_ops, c);
  ipc_guard(c->store);
  ipc_free(old);
  while (c->asked.n)
    give_up(c, 0, "the store process was started again");
  renew(c);
}

/* ---- beginning and end ---- */

static int load_machine(struct cluster *c, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(256), epoch = BUF_INIT(U64_TEXT);
  uint8_t raw[MACHINE_BYTES];
  if (!store_meta_get(c->warden->store, KEPT_EPOCH, &epoch) && str_u64(buf_str(&epoch), &c->epoch))
    c->epoch = 0;
  if (!store_meta_get(c->warden->store, KEPT_MACHINE, &b) && b.n == 2 * MACHINE_BYTES)
    return str_copyz(buf_str(&b), c->id, sizeof(c->id));
  random_bytes(raw, sizeof(raw));
  hex_encode(raw, sizeof(raw), c->id);
  return store_meta_put(c->warden->store, KEPT_MACHINE, str_of(c->id), err);
}

int cluster_open(struct warden *w, void (*status)(struct warden *w, struct wire_status *out), struct err *err)
{
  struct cluster *c = w->cluster = xcalloc(1, sizeof(*c));
  *c = (struct cluster){.warden = w, .status = status};
  machine_read(&c->machine);
  if (!w->config->clustered)
    return 0;
  uv_timer_init(w->loop, &c->timer);
  c->timer.data = c;
  uv_timer_start(&c->timer, tick, TICK_MS, TICK_MS);
  return load_machine(c, err);
}

void cluster_close(struct warden *w)
{
  vec_free(&w->cluster->asked);
  free(w->cluster);
  w->cluster = NULL;
}
