/* SPDX-License-Identifier: Apache-2.0 */
/* warden_webhook.c - signatures, the sender's reports, and the queue of deliveries in the store. */
#include "store_lab.h"

#include "warden/db/event.h"
#include "warden/db/webhook_store.h"
#include "warden/webhook/delivery_report.h"
#include "warden/webhook/signature.h"
#include <fcntl.h>
#include <stdio.h>

#define SECRET "secret-for-event-signature-verification"
#define HOOK   "11111111-1111-4111-8111-111111111111"
#define OTHER  "22222222-2222-4222-8222-222222222222"

static void add_hook(struct store *s, const char *id, const char *team, const char *events, bool enabled)
{
  struct row_webhook h = {.name = (char *)"name",
                          .url = (char *)"http://host/",
                          .origin = (char *)"http://host:80",
                          .events = (char *)events,
                          .secret = BUF_INIT(100),
                          .enabled = enabled,
                          .created_us = 1};
  struct err err = ERR_NONE;
  snprintf(h.id, sizeof(h.id), "%s", id);
  snprintf(h.team, sizeof(h.team), "%s", team);
  buf_add(&h.secret, "a\0b", 3);
  assert_int_equal(store_webhook_put(s, &h, &err), 0);
  buf_free(&h.secret);
}

static void record_only(struct store *s, const char *id, enum event_type type)
{
  struct event e = {.at_us = 1000, .team = "team", .sandbox = "box", .type = type, .data = ""};
  struct err err = ERR_NONE;
  snprintf(e.id, sizeof(e.id), "%s", id);
  assert_int_equal(event_record(s, &e, &err), 0);
}

struct fans {
  struct row_fanout all[16];
  size_t n;
};

static int keep_fan(const struct row_fanout *f, void *arg)
{
  struct fans *fans = arg;
  assert_true(fans->n < ARRAY_LEN(fans->all));
  fans->all[fans->n] = *f;
  fans->all[fans->n++].targets = xstrdup(f->targets);
  return 0;
}

/* How many attempts they became. */
static size_t fan_out(struct store *s)
{
  struct fans fans = {0};
  struct err err = ERR_NONE;
  size_t made, sum = 0;
  store_fanouts(s, 0, keep_fan, &fans);
  for (size_t i = 0; i < fans.n; i++) {
    assert_int_equal(store_fan_out(s, &fans.all[i], &made, &err), 0);
    sum += made;
    free(fans.all[i].targets);
  }
  return sum;
}

static void record(struct store *s, const char *id, enum event_type type)
{
  record_only(s, id, type);
  fan_out(s);
}

struct found {
  struct row_attempt all[64];
  size_t n;
};

static int keep(const struct row_attempt *a, void *arg)
{
  struct found *f = arg;
  assert_true(f->n < ARRAY_LEN(f->all));
  f->all[f->n++] = *a;
  return 0;
}

static struct found open_ones(struct store *s)
{
  struct found f = {0};
  store_attempts_open(s, 0, keep, &f);
  return f;
}

static void signatures_are_those_of_the_contract(void **state)
{
  char text[SIGNATURE_TEXT];
  signature_v1(STR(SECRET), STR("{}"), text);
  assert_string_equal(text, "b2Uvo0F7orYcfGPG5zENvpgljVwNc9hbpUgAWcc/pi8");
  signature_v1(STR(SECRET), STR("{\"n\":1}"), text);
  assert_string_equal(text, "cDhKBdB/dZNZKz8+KY5XNS65ZjlAkBXLe1gSAjycGVw");
}

static void report(struct buf *b, uint64_t class, const char *id)
{
  wire_begin(b, WIRE_SENT, 0, 0);
  wire_putz(b, W_ID, id);
  wire_put_u64(b, W_CLASS, class);
}

static void reports_are_cut_and_checked(void **state)
{
  static char long_text[WIRE_MAX / 2];
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  struct delivery_report r;
  memset(long_text, 'x', sizeof(long_text) - 1);
  report(&b, DELIVERY_HTTP, HOOK);
  wire_put_u64(&b, W_HTTP_STATUS, 70000);
  wire_put_u64(&b, W_DURATION, UINT64_MAX);
  wire_put(&b, W_BODY, (struct str){long_text, 50000});
  wire_put(&b, W_HEADERS, (struct str){long_text, 50000});
  assert_int_equal(delivery_report_read(buf_str(&b), &r), 0);
  assert_int_equal(r.end.http_status, 0);
  assert_true(r.end.duration_ms <= 3600000);
  assert_int_equal(r.end.body.n, DELIVERY_KEPT);
  assert_int_equal(r.end.headers.n, 0);
  report(&b, DELIVERY_CLASSES, HOOK);
  assert_int_not_equal(delivery_report_read(buf_str(&b), &r), 0);
  report(&b, DELIVERY_OK, "no id");
  assert_int_not_equal(delivery_report_read(buf_str(&b), &r), 0);
  wire_begin(&b, WIRE_SEND, 0, 0);
  assert_int_not_equal(delivery_report_read(buf_str(&b), &r), 0);
  assert_int_not_equal(delivery_report_read(STR("short"), &r), 0);
}

static void an_event_is_queued_for_those_who_want_it(void **state)
{
  struct store *s = fresh("queue");
  add_hook(s, HOOK, "team", "sandbox.lifecycle.created,sandbox.lifecycle.killed", true);
  add_hook(s, OTHER, "team", "sandbox.lifecycle.paused", true);
  add_hook(s, "off", "team", "sandbox.lifecycle.created", false);
  add_hook(s, "theirs", "another team", "sandbox.lifecycle.created", true);
  record(s, "e1", EVENT_CREATED);
  record(s, "e2", EVENT_UPDATED);
  struct found f = open_ones(s);
  assert_int_equal(f.n, 1);
  assert_string_equal(f.all[0].webhook, HOOK);
  assert_string_equal(f.all[0].event, "e1");
  assert_int_equal(f.all[0].number, 1);
  assert_int_equal(f.all[0].first, f.all[0].seq);
  cleanup_buf struct buf body = BUF_INIT(4096);
  assert_int_equal(store_attempt_body(s, "e1", &body), 0);
  assert_int_equal(body.n, f.all[0].bytes);
  assert_non_null(strstr(buf_z(&body), "\"sandbox_id\":\"box\""));
  store_close(s);
}

static void an_event_that_is_rolled_back_is_not_queued(void **state)
{
  struct store *s = fresh("rollback");
  struct err err = ERR_NONE;
  add_hook(s, HOOK, "team", "sandbox.lifecycle.created", true);
  assert_int_equal(store_begin(s, &err), 0);
  record_only(s, "e1", EVENT_CREATED);
  assert_int_not_equal(store_end(s, -EIO, &err), 0);
  assert_int_equal(fan_out(s), 0);
  assert_int_equal(open_ones(s).n, 0);
  store_close(s);
}

static int count(const struct delivery_view *v, void *arg)
{
  size_t *n = arg;
  ++*n;
  return 0;
}

static size_t listed(struct store *s, struct delivery_query q, int64_t *more)
{
  size_t n = 0;
  q.webhook = HOOK;
  q.team = q.team ? q.team : "team";
  q.to_us = q.to_us ? q.to_us : INT64_MAX;
  q.states = q.states ? q.states : 3;
  q.groups = q.groups ? q.groups : 10;
  assert_int_equal(store_deliveries(s, &q, count, &n, more), 0);
  return n;
}

/* Ends the only open attempt of the event as failed; with another one to follow, or as success. */
static void finish(struct store *s, const char *event, bool fails)
{
  struct found f = open_ones(s);
  struct err err = ERR_NONE;
  for (size_t i = 0; i < f.n; i++) {
    if (strcmp(f.all[i].event, event) != 0)
      continue;
    struct row_attempt next = f.all[i];
    struct attempt_end end = {.class = fails ? DELIVERY_HTTP : DELIVERY_OK, .duration_ms = 10, .http_status = 500};
    uuid4(next.id);
    next.number++;
    assert_int_equal(store_attempt_begin(s, f.all[i].seq, 2000, "http://host/", "{}", &err), 0);
    assert_int_equal(store_attempt_end(s, f.all[i].seq, &end, fails ? &next : NULL, &err), 0);
    return;
  }
  fail_msg("no attempt of %s", event);
}

static void attempts_of_one_event_are_one_group(void **state)
{
  struct store *s = fresh("groups");
  int64_t more;
  add_hook(s, HOOK, "team", "sandbox.lifecycle.created,sandbox.lifecycle.killed", true);
  record(s, "e1", EVENT_CREATED);
  record(s, "e2", EVENT_KILLED);
  finish(s, "e1", true);
  finish(s, "e2", false);
  finish(s, "e1", false);
  assert_int_equal(open_ones(s).n, 0);
  assert_int_equal(listed(s, (struct delivery_query){0}, &more), 3);
  assert_int_equal(more, 0);
  assert_int_equal(listed(s, (struct delivery_query){.groups = 1}, &more), 1); /* e2, the later event */
  assert_int_not_equal(more, 0);
  assert_int_equal(listed(s, (struct delivery_query){.groups = 1, .cursor = more}, &more), 2);
  assert_int_equal(more, 0);
  assert_int_equal(listed(s, (struct delivery_query){.groups = 1, .ascending = true}, &more), 2);
  assert_int_equal(listed(s, (struct delivery_query){.states = 2}, &more), 2);
  assert_int_equal(listed(s, (struct delivery_query){.types = STR("sandbox.lifecycle.killed")}, &more), 1);
  assert_int_equal(listed(s, (struct delivery_query){.from_us = 3000}, &more), 0);
  assert_int_equal(listed(s, (struct delivery_query){.team = "another team"}, &more), 0); /* with the same id */
  assert_int_equal(listed(s, (struct delivery_query){.to_us = 2000}, &more), 0);
  store_close(s);
}

static int add_up(const struct wire_webhook_bucket *b, void *arg)
{
  struct wire_webhook_bucket *all = arg;
  all->total += b->total;
  all->failed += b->failed;
  all->sum_ms += b->sum_ms;
  return 0;
}

static void figures_count_attempts(void **state)
{
  struct store *s = fresh("stats");
  struct wire_webhook_bucket all = {0};
  add_hook(s, HOOK, "team", "sandbox.lifecycle.created", true);
  record(s, "e1", EVENT_CREATED);
  finish(s, "e1", true);
  finish(s, "e1", false);
  assert_int_equal(store_delivery_stats(s, "team", HOOK, 0, 10000, 1000, add_up, &all), 0);
  assert_int_equal(all.total, 2);
  assert_int_equal(all.failed, 1);
  assert_int_equal(all.sum_ms, 20);
  store_close(s);
}

static void what_waits_is_there_after_a_restart(void **state)
{
  struct store *s = fresh("restart");
  struct err err = ERR_NONE;
  add_hook(s, HOOK, "team", "sandbox.lifecycle.created", true);
  record(s, "e1", EVENT_CREATED);
  record(s, "e2", EVENT_CREATED);
  struct found before = open_ones(s);
  assert_int_equal(store_attempt_begin(s, before.all[0].seq, 5, "http://host/", "{}", &err), 0);
  store_close(s);
  s = fresh("restart");
  struct found after = open_ones(s);
  assert_int_equal(after.n, 2);
  assert_int_equal(after.all[0].state, ATTEMPT_UNDER_WAY);
  assert_int_equal(after.all[1].state, ATTEMPT_WAITING);
  assert_string_equal(after.all[1].id, before.all[1].id);
  store_close(s);
}

static void a_deleted_one_leaves_nothing(void **state)
{
  struct store *s = fresh("delete");
  struct err err = ERR_NONE;
  uint64_t rows, bytes;
  int64_t more;
  size_t removed;
  add_hook(s, HOOK, "team", "sandbox.lifecycle.created", true);
  record(s, "e1", EVENT_CREATED);
  finish(s, "e1", false);
  record(s, "e2", EVENT_CREATED);
  record_only(s, "e3", EVENT_CREATED);
  assert_int_equal(store_webhook_delete(s, HOOK, &err), 0);
  assert_int_equal(fan_out(s), 0);
  assert_int_equal(store_deliveries_trim(s, 0, 100, &removed), 0);
  assert_int_equal(removed, 3); /* two attempts, and the note that it is gone */
  assert_int_equal(open_ones(s).n, 0);
  assert_int_equal(listed(s, (struct delivery_query){0}, &more), 0);
  cleanup_buf struct buf body = BUF_INIT(4096);
  assert_int_equal(store_attempt_body(s, "e1", &body), -ENOENT);
  assert_int_equal(store_attempt_body(s, "e2", &body), -ENOENT);
  assert_int_equal(store_attempt_body(s, "e3", &body), -ENOENT);
  store_deliveries_usage(s, "team", &rows, &bytes);
  assert_int_equal(rows, 0);
  assert_int_equal(bytes, 0);
  store_close(s);
}

static void many_deliveries_of_a_deleted_one_go_trim_by_trim(void **state)
{
  struct store *s = fresh("trims");
  struct found f = {0};
  size_t removed;
  add_hook(s, HOOK, "team", "sandbox.lifecycle.created", true);
  for (int i = 0; i < 6; i++) {
    char id[8];
    snprintf(id, sizeof(id), "e%d", i);
    record(s, id, EVENT_CREATED);
  }
  assert_int_equal(store_webhook_delete(s, HOOK, NULL), 0);
  for (int i = 0; i < 3; i++)
    assert_int_equal(store_deliveries_trim(s, 0, 2, &removed), 0);
  store_attempts_open(s, 0, keep, &f);
  assert_int_equal(f.n, 0);
  store_close(s);
}

static void an_event_for_many_webhooks_is_one_row_until_it_is_fanned_out(void **state)
{
  struct store *s = fresh("fan");
  struct fans fans = {0};
  for (int i = 0; i < 50; i++) {
    char id[UUID_SIZE];
    snprintf(id, sizeof(id), "hook-%d", i);
    add_hook(s, id, "team", "sandbox.lifecycle.created", true);
  }
  record_only(s, "e1", EVENT_CREATED);
  assert_int_equal(open_ones(s).n, 0);
  store_fanouts(s, 0, keep_fan, &fans);
  assert_int_equal(fans.n, 1);
  free(fans.all[0].targets);
  add_hook(s, "later", "team", "sandbox.lifecycle.created", true); /* the types are those of the event's moment */
  assert_int_equal(fan_out(s), 50);
  assert_int_equal(open_ones(s).n, 50);
  assert_int_equal(fan_out(s), 0);
  store_close(s);
}

static bool no_room(const char *team, void *arg)
{
  ++*(int *)arg;
  return false;
}

static void an_event_without_room_is_recorded_and_not_queued(void **state)
{
  struct store *s = fresh("room");
  int asked = 0;
  cleanup_buf struct buf body = BUF_INIT(4096);
  add_hook(s, HOOK, "team", "sandbox.lifecycle.created", true);
  store_webhook_rules(s, &(struct webhook_rules){.room = no_room, .arg = &asked});
  record(s, "e1", EVENT_CREATED);
  record(s, "e2", EVENT_KILLED); /* nobody wants it: nobody is asked */
  assert_int_equal(asked, 1);
  assert_int_equal(events_last(s), 2);
  assert_int_equal(open_ones(s).n, 0);
  assert_int_equal(store_attempt_body(s, "e1", &body), -ENOENT);
  store_close(s);
}

static void record_many(struct store *s, int n)
{
  for (int i = 0; i < n; i++) {
    char id[8];
    snprintf(id, sizeof(id), "e%d", i);
    record(s, id, EVENT_CREATED);
    finish(s, id, false);
  }
}

static void old_deliveries_go(void **state)
{
  struct store *s = fresh("trim");
  int64_t more;
  size_t removed;
  add_hook(s, HOOK, "team", "sandbox.lifecycle.created", true);
  record_many(s, 5);
  record(s, "waits", EVENT_CREATED);
  assert_int_equal(store_deliveries_trim(s, 2000, 100, &removed), 0); /* they began at 2000 */
  assert_int_equal(removed, 0);
  assert_int_equal(listed(s, (struct delivery_query){0}, &more), 5);
  assert_int_equal(store_deliveries_trim(s, 2001, 100, &removed), 0);
  assert_int_equal(removed, 5);
  assert_int_equal(listed(s, (struct delivery_query){0}, &more), 0);
  assert_int_equal(open_ones(s).n, 1);
  store_close(s);
}

static void too_many_deliveries_go_when_others_are_added(void **state)
{
  struct store *s = fresh("kept");
  int64_t more;
  uint64_t rows, bytes;
  add_hook(s, HOOK, "team", "sandbox.lifecycle.created", true);
  store_webhook_rules(s, &(struct webhook_rules){.kept = 3});
  record_many(s, 10);
  assert_int_equal(listed(s, (struct delivery_query){.groups = 20}, &more), 3);
  store_deliveries_usage(s, "team", &rows, &bytes);
  assert_int_equal(rows, 3);
  store_close(s);
}

static void deliveries_of_many_bytes_go_when_others_are_added(void **state)
{
  static char answer[4096];
  struct store *s = fresh("bytes");
  struct err err = ERR_NONE;
  uint64_t rows, bytes, most = 100 << 10;
  memset(answer, 'x', sizeof(answer));
  add_hook(s, HOOK, "team", "sandbox.lifecycle.created", true);
  store_webhook_rules(s, &(struct webhook_rules){.kept = 1000, .kept_bytes = most});
  for (int i = 0; i < 200; i++) {
    char id[8];
    snprintf(id, sizeof(id), "e%d", i);
    record(s, id, EVENT_CREATED);
    struct found f = open_ones(s);
    assert_int_equal(f.n, 1);
    assert_int_equal(store_attempt_end(s, f.all[0].seq,
                                       &(struct attempt_end){.class = DELIVERY_OK,
                                                             .body = {answer, sizeof(answer)},
                                                             .headers = {answer, sizeof(answer)}},
                                       NULL, &err),
                     0);
    store_deliveries_usage(s, "team", &rows, &bytes);
    assert_true(bytes <= most);
    assert_true(bytes >= rows * (2048 + 2 * sizeof(answer)));
  }
  assert_in_range(rows, 1, 10);
  store_close(s);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(signatures_are_those_of_the_contract),
      cmocka_unit_test(reports_are_cut_and_checked),
      cmocka_unit_test(an_event_is_queued_for_those_who_want_it),
      cmocka_unit_test(an_event_that_is_rolled_back_is_not_queued),
      cmocka_unit_test(attempts_of_one_event_are_one_group),
      cmocka_unit_test(figures_count_attempts),
      cmocka_unit_test(what_waits_is_there_after_a_restart),
      cmocka_unit_test(a_deleted_one_leaves_nothing),
      cmocka_unit_test(many_deliveries_of_a_deleted_one_go_trim_by_trim),
      cmocka_unit_test(an_event_for_many_webhooks_is_one_row_until_it_is_fanned_out),
      cmocka_unit_test(an_event_without_room_is_recorded_and_not_queued),
      cmocka_unit_test(old_deliveries_go),
      cmocka_unit_test(too_many_deliveries_go_when_others_are_added),
      cmocka_unit_test(deliveries_of_many_bytes_go_when_others_are_added),
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
