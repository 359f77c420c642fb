/* SPDX-License-Identifier: Apache-2.0 */
/* box_event.c - see box_event.h. */
#include "warden/core/box_event.h"

#include "warden/core/quota.h"
#include "warden/core/warden_state.h"
#include "wire/wire.h"

#define METADATA_MAX ((size_t)128 << 10) /* as JSON: an event must fit into a packet, beside what else it says */

static int record(struct warden *w, const struct row_box *row, enum event_type type, struct event_data d,
                  struct err *err)
{
  cleanup_buf struct buf data = BUF_INIT(2 * WIRE_MAX);
  d.metadata = event_metadata(str_of(row->config));
  if (d.metadata.n > METADATA_MAX)
    d.metadata = STR_NONE;
  event_data_json(&data, &d);
  if (buf_failed(&data))
    return err_set(err, buf_failed(&data), "the event of sandbox %s is too large", row->id);
  struct event e = event_of(row, type, clock_wall_us(), data.n ? buf_z(&data) : "");
  return event_record(w->store, &e, err);
}

static int put(struct warden *w, const struct row_box *row, enum event_type type, struct event_data d, struct err *err)
{
  int r = store_begin(w->store, err);
  if (r)
    return r;
  r = store_box_put(w->store, row, err);
  r = r ? r : record(w, row, type, d, err);
  return store_end(w->store, r, err);
}

static struct event_data execution_of(const struct row_box *row, int64_t ended_us)
{
  return (struct event_data){.execution = true,
                             .started_us = row->started_us,
                             .ended_us = ended_us,
                             .cpus = row->cpus,
                             .memory_mb = row->memory_mb};
}

int box_put_created(struct warden *w, const struct row_box *row, struct err *err)
{
  return put(w, row, EVENT_CREATED, (struct event_data){0}, err);
}

int box_put_resumed(struct warden *w, const struct row_box *row, struct err *err)
{
  return put(w, row, EVENT_RESUMED, (struct event_data){0}, err);
}

int box_put_paused(struct warden *w, const struct row_box *row, struct err *err)
{
  return put(w, row, EVENT_PAUSED, execution_of(row, row->end_us), err);
}

int box_put_network(struct warden *w, const struct row_box *row, struct err *err)
{
  struct event_data d = {.network = true,
                         .no_internet = !(row->flags & BOX_INTERNET),
                         .allow = str_of(row->allow),
                         .deny = str_of(row->deny)};
  return put(w, row, EVENT_UPDATED, d, err);
}

int box_put_end_time(struct warden *w, const struct row_box *row, int64_t end_us, struct err *err)
{
  int r = store_begin(w->store, err);
  if (r)
    return r;
  r = store_box_end_time(w->store, row->id, end_us, err);
  if (!r && quota_tells_end(w, str_of(row->team)))
    r = record(w, row, EVENT_UPDATED, (struct event_data){.set_timeout_us = end_us}, err);
  return store_end(w->store, r, err);
}

int box_put_ended(struct warden *w, const struct row_box *row, const char *cause, struct err *err)
{
  int64_t now = clock_wall_us();
  struct event_data d = execution_of(row, MIN(now, row->end_us));
  d.kill_reason = event_kill_reason(str_of(cause));
  d.kill_cause = cause;
  int r = store_begin(w->store, err);
  if (r)
    return r;
  r = store_box_ended(w->store, row->id, row->team, now, cause, err);
  r = r ? r : record(w, row, EVENT_KILLED, d, err);
  return store_end(w->store, r, err);
}

int box_tell_checkpointed(struct warden *w, const struct row_box *row, struct err *err)
{
  return record(w, row, EVENT_CHECKPOINTED, (struct event_data){0}, err);
}
