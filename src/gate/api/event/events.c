/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - GET /events/sandboxes and GET /events/sandboxes/{id}: what happened to a team's sandboxes. The warden
 * writes each event as JSON; here they are counted, filtered and put into an array. */
#include "gate/api/api.h"
#include "wire/event_type.h"

#define LIMIT_MOST    100
#define LIMIT_DEFAULT 10
#define OUT_MOST      ((size_t)LIMIT_MOST * WIRE_MAX)

struct event_list {
  struct buf out;
  struct jw w;
};

/* ---- reading the query ---- */

static bool want_number(struct req *r, const char *name, uint64_t least, uint64_t most, uint64_t *out)
{
  struct str text = api_query(r, name);
  if (!text.p || (!str_u64(text, out) && *out >= least && *out <= most))
    return true;
  api_error(r, 400, "'%s' must be a whole number from %llu to %llu, not '" STR_FMT "'", name, (unsigned long long)least,
            (unsigned long long)most, STR_ARG(str_sub(text, 0, 100)));
  return false;
}

static bool want_flag(struct req *r, const char *name, bool *out)
{
  struct str text = api_query(r, name);
  *out = str_is(text, "true");
  if (!text.p || *out || str_is(text, "false"))
    return true;
  api_error(r, 400, "'%s' must be true or false, not '" STR_FMT "'", name, STR_ARG(str_sub(text, 0, 100)));
  return false;
}

static bool want_type(struct req *r, struct str value, unsigned *types)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  enum event_type type = percent_decode(value, true, &b) ? 0 : event_type_of(buf_str(&b));
  if (type)
    *types |= EVENT_BIT(type);
  else
    api_error(r, 400, "'types' must be of " EVENT_NAMES_TEXT "; not '" STR_FMT "'",
              STR_ARG(str_sub(buf_str(&b), 0, 100)));
  return type != 0;
}

/* Given once per type: types=a&types=b. The other parameters are the first of their name. */
static bool want_types(struct req *r, unsigned *types)
{
  struct str rest = http_x_head(r->x)->query, pair, name, value;
  for (size_t n = 0; rest.n; n++) {
    str_cut(rest, '&', &pair, &rest);
    str_cut(pair, '=', &name, &value);
    if (n == QUERY_PAIRS_MAX) {
      api_error(r, 400, "the query has more than %d parameters", QUERY_PAIRS_MAX);
      return false;
    }
    if (str_is(name, "types") && !want_type(r, value, types))
      return false;
  }
  return true;
}

/* ---- answering ---- */

static void drop(struct req *r)
{
  struct event_list *l = r->state;
  buf_free(&l->out);
}

static void item(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct event_list *l = r->state;
  jw_raw(&l->w, wire_get(reply->packet, W_EVENT));
}

static void told(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct event_list *l = r->state;
  jw_close(&l->w, ']');
  if (sandbox_refused(r, reply))
    return;
  if (buf_failed(&l->out))
    api_error(r, 500, "the events are too large for one answer; ask for fewer with 'limit'");
  else
    api_json(r, 200, buf_str(&l->out));
  buf_free(&l->out); /* the client may take its time */
}

static void ask(struct req *r, struct str id)
{
  uint64_t offset = 0, limit = LIMIT_DEFAULT;
  unsigned types = 0;
  bool ascending;
  if (!want_number(r, "offset", 0, INT64_MAX, &offset) || !want_number(r, "limit", 1, LIMIT_MOST, &limit) ||
      !want_flag(r, "orderAsc", &ascending) || !want_types(r, &types))
    return;
  struct event_list *l = arena_alloc(r->arena, sizeof(*l));
  buf_init(&l->out, OUT_MOST);
  l->w = JW(&l->out);
  jw_open(&l->w, '[');
  r->state = l;
  r->drop = drop;
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, WIRE_EVENT_LIST, 0, 0);
  wire_putz(&b, W_TEAM, r->team.id);
  if (id.n)
    wire_put(&b, W_ID, id);
  wire_put_u64(&b, W_OFFSET, offset);
  wire_put_u64(&b, W_COUNT, limit);
  wire_put_u64(&b, W_MODE, ascending);
  wire_put_u64(&b, W_FLAGS, types);
  api_call_warden_list(r, &b, item, told);
}

void event_list(struct req *r)
{
  ask(r, STR_NONE);
}

void event_list_sandbox(struct req *r)
{
  struct str id;
  if (api_box_id(r, &id))
    ask(r, id);
}
