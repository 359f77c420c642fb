/* SPDX-License-Identifier: Apache-2.0 */
/* nodes.c - /nodes: the machines that share a store, or this one alone. */
#include "gate/api/api.h"

#include "wire/node_record.h"

static void put_number(struct jw *w, const char *name, uint64_t v)
{
  jw_key(w, name);
  jw_uint(w, v);
}

static void put_text(struct jw *w, const char *name, const char *text)
{
  jw_key(w, name);
  jw_z(w, text);
}

static void put_machine(struct jw *w, const struct node_record *r)
{
  static const char *const names[] = {"cpuFamily", "cpuModel", "cpuModelName", "cpuArchitecture"};
  struct str rest = str_of(r->hardware), line;
  jw_key(w, "machineInfo");
  jw_open(w, '{');
  for (size_t i = 0; i < ARRAY_LEN(names); i++) {
    str_cut(rest, '\n', &line, &rest);
    jw_key(w, names[i]);
    jw_str(w, line);
  }
  jw_close(w, '}');
}

static void put_load(struct jw *w, const struct wire_node *n)
{
  static const char *const pages[] = {"hugePagesTotal", "hugePagesUsed", "hugePagesReserved", "hugePageSizeBytes"};
  jw_key(w, "metrics");
  jw_open(w, '{');
  put_number(w, "allocatedCPU", n->cpus_given);
  jw_key(w, "cpuPercent");
  jw_double(w, 100.0 * (double)n->load / NODE_CPU_FULL, 1);
  put_number(w, "cpuCount", n->cpus);
  put_number(w, "allocatedMemoryBytes", n->memory_given);
  put_number(w, "memoryUsedBytes", n->memory_used);
  put_number(w, "memoryTotalBytes", n->memory);
  for (size_t i = 0; i < ARRAY_LEN(pages); i++)
    put_number(w, pages[i], 0);
  jw_key(w, "disks");
  jw_open(w, '[');
  jw_close(w, ']');
  jw_close(w, '}');
}

static void put_words(struct jw *w, const char *name, const char *words)
{
  struct str rest = str_of(words), word;
  jw_key(w, name);
  jw_open(w, '[');
  while (rest.n) {
    str_cut(rest, ' ', &word, &rest);
    if (word.n)
      jw_str(w, word);
  }
  jw_close(w, ']');
}

static void put_labels(struct jw *w, const char *labels)
{
  struct str rest = str_of(labels), one, name, value;
  jw_key(w, "labels");
  jw_open(w, '{');
  while (rest.n) {
    str_cut(rest, ' ', &one, &rest);
    if (!str_cut(one, '=', &name, &value))
      continue;
    jw_keys(w, name);
    jw_str(w, value);
  }
  jw_close(w, '}');
}

/* What the contract has no names for, of machines that share a store. */
static void put_shared(struct jw *w, const struct node_record *r)
{
  put_text(w, "address", r->address);
  put_labels(w, r->labels);
  put_words(w, "tiers", r->tiers);
  put_words(w, "templates", r->templates);
  put_number(w, "epoch", r->n.epoch);
  jw_key(w, "leaseMs");
  jw_int(w, r->n.left_us / 1000);
}

static void put_node(struct jw *w, const struct node_record *r)
{
  char since[CLOCK_TEXT];
  bool alone = !r->machine[0];
  clock_text(r->n.since_us, since);
  jw_open(w, '{');
  put_text(w, "id", r->name);
  put_text(w, "serviceInstanceID", alone ? NODE_LOCAL : r->machine);
  put_text(w, "clusterID", NODE_LOCAL);
  put_text(w, "version", r->version);
  put_text(w, "commit", "");
  put_text(w, "status", node_status_word(&r->n));
  put_text(w, "statusChangedAt", since);
  put_number(w, "sandboxCount", r->n.running);
  put_number(w, "sandboxStartingCount", r->n.starting);
  put_number(w, "createSuccesses", r->n.creates);
  put_number(w, "createFails", r->n.creates_failed);
  put_machine(w, r);
  put_load(w, &r->n);
  if (!alone)
    put_shared(w, r);
  jw_close(w, '}');
}

/* ---- requests ---- */

static void node_item(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct node_record node;
  if (!node_record_read(reply->packet, &node))
    put_node(r->state, &node);
}

static void ask(struct req *r, enum wire_type type, uint64_t state, warden_reply_fn item, warden_reply_fn then)
{
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, type, 0, 0);
  wire_put(&b, W_ID, str_sub(r->id, 0, NODE_NAME_SIZE));
  wire_put_u64(&b, W_STATE, state);
  api_call_warden(r, &b, item, then);
}

void node_list(struct req *r)
{
  api_items_begin(r, '[');
  ask(r, WIRE_NODE_LIST, 0, node_item, api_items_told);
}

static void no_node(struct req *r)
{
  api_error(r, 404, "node '" STR_FMT "' not found; GET /nodes lists them", STR_ARG(str_sub(r->id, 0, 100)));
}

static void node_told(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct jw *w = r->state;
  if (reply->status == -ENOENT || (!reply->status && !w->b->n)) {
    r->pending_call = 0;
    no_node(r);
  } else if (!api_refused(r, reply)) {
    api_json(r, 200, buf_str(w->b));
  }
}

void node_get(struct req *r)
{
  struct jw *w = api_items_begin(r, '[');
  buf_clear(w->b); /* one object, not a list of them */
  *w = JW(w->b);
  ask(r, WIRE_NODE_LIST, 0, node_item, node_told);
}

static void node_changed(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  if (reply->status == -ENOENT) {
    r->pending_call = 0;
    no_node(r);
  } else if (!api_refused(r, reply)) {
    api_empty(r, 204);
  }
}

/* Of the contract's other words, `unhealthy` and the like are found out and not set. */
void node_change(struct req *r)
{
  struct str status = json_text(json_get(r->json, "status"), STR_NONE);
  bool drain = str_is(status, "draining");
  if (!drain && !str_is(status, "ready"))
    api_error(r, 400, "'status' must be \"ready\" or \"draining\"");
  else
    ask(r, WIRE_NODE_CHANGE, drain ? NODE_DRAINING : NODE_READY, NULL, node_changed);
}
