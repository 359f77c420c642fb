/* SPDX-License-Identifier: Apache-2.0 */
/* node_handlers.c - machines: this one, and those that share a store with it. */
#include "warden/rpc/handlers.h"

#include "warden/core/cluster.h"
#include "warden/core/node.h"

static void not_here(struct request *q, struct str name)
{
  struct err err = ERR_NONE;
  err_set(&err, -ENOENT, "node '" STR_FMT "' not found; this server has one: " NODE_LOCAL,
          STR_ARG(str_sub(name, 0, 100)));
  reply_err(q, &err);
}

static void ask_store(struct request *q, enum wire_type type, struct str name)
{
  struct err err = ERR_NONE;
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, type, 0, 0);
  wire_put(&b, W_ID, str_sub(name, 0, NODE_NAME_SIZE));
  wire_put_u64(&b, W_STATE, wire_u64(q->packet, W_STATE, 0));
  if (cluster_ask(q->warden, request_origin(q), &b, &err))
    reply_err(q, &err);
}

/* This machine is known here, whether the store is there or not. */
static void tell_self(struct request *q)
{
  struct node_record r;
  cluster_describe(q->warden, &r);
  reply_begin(q, WIRE_ITEM, 0);
  node_record_put(q->out, &r);
  reply_send(q);
  reply_ok(q);
}

void handle_node_list(struct request *q)
{
  struct str name = wire_get(q->packet, W_ID);
  if (name.n ? cluster_self(q->warden, name) : !cluster_on(q->warden))
    tell_self(q);
  else if (cluster_on(q->warden) && (!name.n || node_name_valid(name)))
    ask_store(q, WIRE_STORE_NODE_LIST, name);
  else
    not_here(q, name);
}

void handle_node_change(struct request *q)
{
  struct err err = ERR_NONE;
  uint64_t status = wire_u64(q->packet, W_STATE, 0);
  struct str name = wire_get(q->packet, W_ID);
  if (status != NODE_READY && status != NODE_DRAINING)
    reply_error(q, -EINVAL, "a node is set to ready or draining");
  else if (name.n && !cluster_self(q->warden, name) && (!cluster_on(q->warden) || !node_name_valid(name)))
    not_here(q, name);
  else if (name.n && !cluster_self(q->warden, name))
    ask_store(q, WIRE_STORE_NODE_ORDER, name);
  else if (node_set(q->warden, (enum node_status)status, &err))
    reply_err(q, &err);
  else
    reply_ok(q);
}
