/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics, logs, events and the network log. */
#include "internal.h"

#define AT(type, key, kind, member)                                                                                    \
  {                                                                                                                    \
    key, kind, offsetof(struct type, member), 0, NULL                                                                  \
  }

static const struct field metric_fields[] = {
    AT(cloche_metric, "timestamp", F_TEXT, timestamp), AT(cloche_metric, "timestampUnix", F_INT, timestamp_unix),
    AT(cloche_metric, "cpuCount", F_INT, cpu_count),   AT(cloche_metric, "cpuUsedPct", F_DOUBLE, cpu_used_pct),
    AT(cloche_metric, "memUsed", F_INT, mem_used),     AT(cloche_metric, "memTotal", F_INT, mem_total),
    AT(cloche_metric, "memCache", F_INT, mem_cache),   AT(cloche_metric, "diskUsed", F_INT, disk_used),
    AT(cloche_metric, "diskTotal", F_INT, disk_total), {0}};
static const struct model metric_model = {sizeof(struct cloche_metric), metric_fields, NULL};

static struct cloche_op *begin(struct cloche *client, const char *prefix, const char *id, const char *suffix,
                               const struct model *model, void *out, const struct cloche_call *call,
                               struct cloche_error *error)
{
  struct cloche_op *op = op_begin(client, NULL, call, OP_CONTROL, error);
  if (!op)
    return NULL;
  req_api(op, "GET", prefix);
  if (id)
    req_segment(op, id);
  req_path(op, suffix);
  op->on_reply = reply_list;
  op->model = model;
  op->out = out;
  return op;
}

enum cloche_code cloche_metrics(struct cloche *client, const char *id, int64_t start, int64_t end,
                                struct cloche_metric_list **list, const struct cloche_call *call,
                                struct cloche_error *error)
{
  struct cloche_op *op = begin(client, "/sandboxes", id ? id : "", "/metrics", &metric_model, list, call, error);
  if (!op)
    return op_not_begun(call);
  if (start)
    req_query_int(op, "start", start);
  if (end)
    req_query_int(op, "end", end);
  return op_go(op, error);
}

static const struct field log_fields[] = {AT(cloche_log_entry, "timestamp", F_TEXT, timestamp),
                                          AT(cloche_log_entry, "level", F_TEXT, level),
                                          AT(cloche_log_entry, "message", F_TEXT, message),
                                          {"fields", F_PAIRS, offsetof(struct cloche_log_entry, fields),
                                           offsetof(struct cloche_log_entry, field_count), NULL},
                                          {0}};
static const struct model log_model = {sizeof(struct cloche_log_entry), log_fields, "logs"};

enum cloche_code cloche_logs(struct cloche *client, const char *id, const struct cloche_log_options *options,
                             struct cloche_log_list **list, const struct cloche_call *call, struct cloche_error *error)
{
  OPTIONS(cloche_log_options, o, options);
  struct cloche_op *op = begin(client, "/v2/sandboxes", id ? id : "", "/logs", &log_model, list, call, error);
  if (!op)
    return op_not_begun(call);
  if (o.cursor_ms)
    req_query_int(op, "cursor", o.cursor_ms);
  if (o.forward)
    req_query(op, "direction", "forward");
  if (o.limit)
    req_query_int(op, "limit", o.limit);
  if (o.level)
    req_query(op, "level", o.level);
  if (o.search)
    req_query(op, "search", o.search);
  return op_go(op, error);
}

static const struct field event_fields[] = {AT(cloche_event, "id", F_TEXT, id),
                                            AT(cloche_event, "type", F_TEXT, type),
                                            AT(cloche_event, "timestamp", F_TEXT, timestamp),
                                            AT(cloche_event, "eventLabel", F_TEXT, label),
                                            AT(cloche_event, "sandboxId", F_TEXT, box_id),
                                            AT(cloche_event, "sandboxExecutionId", F_TEXT, execution_id),
                                            AT(cloche_event, "sandboxTemplateId", F_TEXT, template_id),
                                            AT(cloche_event, "sandboxBuildId", F_TEXT, build_id),
                                            AT(cloche_event, "eventData", F_RAW, data),
                                            AT(cloche_event, "", F_SELF, raw),
                                            {0}};
static const struct model event_model = {sizeof(struct cloche_event), event_fields, NULL};

enum cloche_code cloche_events(struct cloche *client, const char *id, const struct cloche_event_options *options,
                               struct cloche_event_list **list, const struct cloche_call *call,
                               struct cloche_error *error)
{
  OPTIONS(cloche_event_options, o, options);
  struct cloche_op *op = begin(client, "/events/sandboxes", id, "", &event_model, list, call, error);
  if (!op)
    return op_not_begun(call);
  if (o.offset)
    req_query_int(op, "offset", o.offset);
  if (o.limit)
    req_query_int(op, "limit", o.limit);
  if (o.ascending)
    req_query(op, "orderAsc", "true");
  for (size_t i = 0; o.types && o.types[i]; i++)
    req_query(op, "types", o.types[i]);
  return op_go(op, error);
}

static const struct field net_fields[] = {AT(cloche_net_entry, "timestamp", F_TEXT, timestamp),
                                          AT(cloche_net_entry, "type", F_TEXT, type),
                                          AT(cloche_net_entry, "verdict", F_TEXT, verdict),
                                          AT(cloche_net_entry, "protocol", F_TEXT, protocol),
                                          AT(cloche_net_entry, "name", F_TEXT, name),
                                          AT(cloche_net_entry, "address", F_TEXT, address),
                                          AT(cloche_net_entry, "reason", F_TEXT, reason),
                                          AT(cloche_net_entry, "method", F_TEXT, method),
                                          AT(cloche_net_entry, "path", F_TEXT, path),
                                          AT(cloche_net_entry, "port", F_INT, port),
                                          AT(cloche_net_entry, "status", F_INT, status),
                                          AT(cloche_net_entry, "bytesIn", F_INT, bytes_in),
                                          AT(cloche_net_entry, "bytesOut", F_INT, bytes_out),
                                          AT(cloche_net_entry, "", F_SELF, raw),
                                          {0}};
static const struct model net_model = {sizeof(struct cloche_net_entry), net_fields, "entries"};

enum cloche_code cloche_network_log(struct cloche *client, const char *id, int64_t start_ms, int64_t end_ms, int limit,
                                    struct cloche_net_log **log, const struct cloche_call *call,
                                    struct cloche_error *error)
{
  struct cloche_op *op = begin(client, "/sandboxes", id ? id : "", "/network/log", &net_model, log, call, error);
  if (!op)
    return op_not_begun(call);
  if (start_ms)
    req_query_int(op, "start", start_ms);
  if (end_ms)
    req_query_int(op, "end", end_ms);
  if (limit)
    req_query_int(op, "limit", limit);
  return op_go(op, error);
}
