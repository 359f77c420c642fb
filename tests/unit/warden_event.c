/* SPDX-License-Identifier: Apache-2.0 */
/* warden_event.c - lifecycle events: what they say, how they are spelled, who reads which of them, and how they go. */
#include "store_lab.h"

#include "warden/db/event.h"
#include "warden/db/team_sample.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define TEAM_1 "11111111-1111-4111-8111-111111111111"
#define TEAM_2 "22222222-2222-4222-8222-222222222222"

static struct row_box row_of(const char *id, const char *team)
{
  struct row_box r = {.execution = "33333333-3333-4333-8333-333333333333",
                      .template_id = "tplsnapshot",
                      .base = "tplbase",
                      .build = "44444444-4444-4444-8444-444444444444"};
  snprintf(r.id, sizeof(r.id), "%s", id);
  snprintf(r.team, sizeof(r.team), "%s", team);
  return r;
}

/* ---- data ---- */

static void metadata_is_a_flat_object_of_strings_or_nothing(void **state)
{
  static const struct {
    const char *config, *metadata;
  } table[] = {
      {"{\"metadata\":{\"a\":\"b\"}}", "{\"a\":\"b\"}"},
      {"{\"metadata\":{\"a\":\"b\",\"c\":\"d\"},\"network\":{}}", "{\"a\":\"b\",\"c\":\"d\"}"},
      {"{\"metadata\":{\"}\":\"{\\\"}\\\\\"},\"x\":\"}\"}", "{\"}\":\"{\\\"}\\\\\"}"},
      {"{\"metadata\":{\"\xc3\xa9\":\"\"}}", "{\"\xc3\xa9\":\"\"}"},
      {"{\"metadata\":{}}", ""},
      {"{}", ""},
      {"", ""},
      {"{\"network\":{\"metadata\":{\"a\":\"b\"}}}", ""},
      {"{\"metadata\":{\"a\":1}}", ""},
      {"{\"metadata\":{\"a\":{\"b\":\"c\"}}}", ""},
      {"{\"metadata\":{\"a\":\"b\"", ""},
      {"{\"metadata\":{\"a\":\"b", ""},
      {"{\"metadata\":{\"a\":\"b\\", ""},
      {"{\"metadata\":{\"a\":\"b\",}}", ""},
      {"{\"metadata\":{\"a\":\"new\nline\"}}", ""},
      {"{\"metadata\":", ""},
      {"{\"metadata\":{\"a\":\"\\u00e9\\n\"}}", "{\"a\":\"\\u00e9\\n\"}"},
      {"{\"metadata\":{\"a\":\"\\u00g9\"}}", ""},
      {"{\"metadata\":{\"a\":\"\\x\"}}", ""},
      {"{\"metadata\":{\"a\":\"\xff\"}}", ""},
  };
  for (size_t i = 0; i < ARRAY_LEN(table); i++) {
    struct str m = event_metadata(str_of(table[i].config));
    if (!str_is(m, table[i].metadata))
      fail_msg("%s: '" STR_FMT "'", table[i].config, STR_ARG(m));
  }
}

static void every_end_has_a_reason(void **state)
{
  static const struct {
    const char *cause, *reason;
  } table[] = {
      {"timeout: its lifetime of 5 s was over", "timeout"},
      {"timeout: it reached its end of life and could not be paused: x", "timeout"},
      {"killed: by request", "request"},
      {"killed: by API key 'the server's administrator'", "request"},
      {"killed: by the root user of the host", "admin"},
      {"killed: by the server's administrator", "admin"},
      {"stopped: the server was shut down", "admin"},
      {"lost: its node was restarted or crashed: it was not running when the daemon came back", "orphaned"},
      {"lost: its template was deleted: its files were not there when the daemon came back", "base_template_missing"},
      {"crashed: its first process ended unexpectedly", "unknown"},
      {"out of memory: the box used all of its 512 MB and the kernel ended python3", "unknown"},
      {"", "unknown"},
  };
  for (size_t i = 0; i < ARRAY_LEN(table); i++)
    assert_string_equal(event_kill_reason(str_of(table[i].cause)), table[i].reason);
}

static void check_data(const struct event_data *d, const char *want)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  event_data_json(&b, d);
  assert_string_equal(b.n ? buf_z(&b) : "", want);
}

static void data_holds_what_there_is_to_say(void **state)
{
  check_data(&(struct event_data){0}, "");
  check_data(&(struct event_data){.metadata = STR("{\"a\":\"b\"}")}, "{\"sandbox_metadata\":{\"a\":\"b\"}}");
  check_data(&(struct event_data){.set_timeout_us = 1767323045678901}, "{\"set_timeout\":\"2026-01-02T03:04:05Z\"}");
  check_data(
      &(struct event_data){.execution = true, .started_us = 1767323045678901, .ended_us = 1767323047678901, .cpus = 2},
      "{\"execution\":{\"started_at\":\"2026-01-02T03:04:05.678901Z\",\"vcpu_count\":2,\"memory_mb\":0,\"execution_"
      "time\":2000}}");
  check_data(&(struct event_data){.metadata = STR("{\"a\":\"b\"}"),
                                  .execution = true,
                                  .started_us = 1767323045678901,
                                  .ended_us = 5, /* the clock went back */
                                  .cpus = 1,
                                  .memory_mb = 512,
                                  .kill_reason = "request",
                                  .kill_cause = "killed: by API key 'a \"b\"'"},
             "{\"sandbox_metadata\":{\"a\":\"b\"},\"execution\":{\"started_at\":\"2026-01-02T03:04:05.678901Z\","
             "\"vcpu_count\":1,\"memory_mb\":512,\"execution_time\":0},\"kill_reason\":\"request\",\"kill_cause\":"
             "\"killed: by API key 'a \\\"b\\\"'\"}");
}

static void the_network_is_told_as_prefixes_and_names(void **state)
{
  check_data(&(struct event_data){.network = true},
             "{\"network_egress\":{\"allowed_cidrs\":[],\"denied_cidrs\":[],\"allowed_domains\":[]}}");
  check_data(
      &(struct event_data){.network = true,
                           .allow = STR("8.8.8.8\n*.example.com\n10.0.0.0/8\nfd00::1\nexample.com\n"),
                           .deny = STR("1.2.3.4\n0.0.0.0/0\n"),
                           .no_internet = true},
      "{\"network_egress\":{\"allowed_cidrs\":[\"8.8.8.8/32\",\"10.0.0.0/8\",\"fd00::1/128\"],"
      "\"denied_cidrs\":[\"1.2.3.4/32\",\"0.0.0.0/0\"],\"allowed_domains\":[\"*.example.com\",\"example.com\"]}}");
  check_data(&(struct event_data){.network = true, .no_internet = true},
             "{\"network_egress\":{\"allowed_cidrs\":[],\"denied_cidrs\":[\"0.0.0.0/0\"],\"allowed_domains\":[]}}");
}

/* ---- spellings ---- */

static void one_event_has_two_spellings(void **state)
{
  struct row_box row = row_of("ibox", TEAM_1);
  struct event e = event_of(&row, EVENT_CREATED, 1767323045678901, "");
  cleanup_buf struct buf rest = BUF_INIT(4096), body = BUF_INIT(4096), want = BUF_INIT(4096);
  event_rest_json(&rest, &e);
  event_body_json(&body, &e);
  buf_addf(&want,
           "{\"id\":\"%s\",\"version\":\"v2\",\"type\":\"sandbox.lifecycle.created\",\"timestamp\":\"2026-01-02T03:04:"
           "05.678901Z\",\"eventCategory\":\"lifecycle\",\"eventLabel\":\"create\",\"eventData\":null,\"sandboxId\":"
           "\"ibox\",\"sandboxExecutionId\":\"33333333-3333-4333-8333-333333333333\",\"sandboxTemplateId\":\"tplbase\","
           "\"sandboxBuildId\":\"44444444-4444-4444-8444-444444444444\",\"sandboxTeamId\":\"" TEAM_1 "\"}",
           e.id);
  assert_true(uuid_valid(str_of(e.id)));
  assert_string_equal(buf_z(&rest), buf_z(&want));
  buf_clear(&want);
  buf_addf(&want,
           "{\"id\":\"%s\",\"version\":\"v2\",\"type\":\"sandbox.lifecycle.created\",\"timestamp\":\"2026-01-02T03:04:"
           "05.678901Z\",\"event_category\":\"lifecycle\",\"event_label\":\"create\",\"sandbox_id\":\"ibox\","
           "\"sandbox_execution_id\":\"33333333-3333-4333-8333-333333333333\",\"sandbox_template_id\":\"tplbase\","
           "\"sandbox_build_id\":\"44444444-4444-4444-8444-444444444444\",\"sandbox_team_id\":\"" TEAM_1 "\"}",
           e.id);
  assert_string_equal(buf_z(&body), buf_z(&want));
}

static bool has(const struct buf *b, const char *part)
{
  return str_search(buf_str(b), str_of(part)) >= 0;
}

static void a_checkpoint_has_neither_label_nor_category(void **state)
{
  struct row_box row = row_of("ibox", TEAM_1);
  row.base[0] = 0;
  struct event e = event_of(&row, EVENT_CHECKPOINTED, 1767323045678901, "{\"sandbox_metadata\":{\"a\":\"b\"}}");
  cleanup_buf struct buf rest = BUF_INIT(4096), body = BUF_INIT(4096);
  event_rest_json(&rest, &e);
  event_body_json(&body, &e);
  assert_true(has(&body, "\"event_category\":\"\",\"event_label\":\"\",\"event_data\":{\"sandbox_metadata\":{\"a\""));
  assert_true(has(&rest, "\"eventData\":{\"sandbox_metadata\":{\"a\":\"b\"}}"));
  assert_true(has(&rest, "\"sandboxTemplateId\":\"tplsnapshot\""));
}

static void the_six_names_are_known_and_no_other(void **state)
{
  for (enum event_type t = EVENT_CREATED; t < EVENT_TYPES_END; t++) {
    assert_int_equal(event_type_of(str_of(event_type_name(t))), t);
    assert_true(str_search(STR(EVENT_NAMES_TEXT), str_of(event_type_name(t))) >= 0);
  }
  assert_int_equal(event_type_of(STR("create")), 0);
  assert_int_equal(event_type_of(STR("")), 0);
  assert_string_equal(event_type_name(0), "");
  assert_string_equal(event_type_name(EVENT_TYPES_END), "");
}

/* ---- the table ---- */

struct seen {
  size_t n;
  char sandbox[64][BOX_ID_SIZE];
  int64_t seq[64];
};

static int see(const struct event *e, void *arg)
{
  struct seen *s = arg;
  assert_true(s->n < 64);
  snprintf(s->sandbox[s->n], BOX_ID_SIZE, "%s", e->sandbox);
  s->seq[s->n++] = e->seq;
  return 0;
}

static void put(struct store *s, const char *id, const char *team, enum event_type type, int64_t at)
{
  struct row_box row = row_of(id, team);
  struct event e = event_of(&row, type, at, "");
  struct err err = ERR_NONE;
  assert_int_equal(store_begin(s, &err), 0);
  assert_int_equal(store_end(s, event_record(s, &e, &err), &err), 0);
  assert_true(e.seq > 0);
}

static struct seen ask(struct store *s, struct event_query q)
{
  struct seen seen = {0};
  q.limit = q.limit ? q.limit : 60;
  assert_int_equal(events_read(s, &q, see, &seen), 0);
  return seen;
}

static void events_are_read_by_team_sandbox_type_and_page(void **state)
{
  struct store *s = fresh("read"), *reader = NULL;
  put(s, "i1", TEAM_1, EVENT_CREATED, 1000);
  put(s, "i2", TEAM_1, EVENT_CREATED, 2000);
  put(s, "i3", TEAM_2, EVENT_CREATED, 2000);
  put(s, "i1", TEAM_1, EVENT_UPDATED, 2000); /* equal times: in the order they came */
  put(s, "i1", TEAM_1, EVENT_KILLED, 3000);
  assert_int_equal(store_open_reader(s, &reader, NULL), 0);
  struct seen all = ask(reader, (struct event_query){.team = STR(TEAM_1), .after = -1, .ascending = true});
  assert_int_equal(all.n, 4);
  assert_int_equal(all.seq[0], 1);
  assert_int_equal(all.seq[1], 2);
  assert_int_equal(all.seq[2], 4);
  assert_int_equal(all.seq[3], 5);
  struct seen newest = ask(reader, (struct event_query){.team = STR(TEAM_1), .after = -1, .limit = 2, .offset = 1});
  assert_int_equal(newest.n, 2);
  assert_int_equal(newest.seq[0], 4);
  assert_int_equal(newest.seq[1], 2);
  struct seen one = ask(reader, (struct event_query){.team = STR(TEAM_1), .sandbox = STR("i1"), .after = -1});
  assert_int_equal(one.n, 3);
  assert_int_equal(ask(reader, (struct event_query){.team = STR(TEAM_2), .sandbox = STR("i1"), .after = -1}).n, 0);
  assert_int_equal(ask(reader, (struct event_query){.sandbox = STR("i3"), .after = -1}).n, 1);
  struct event_query types = {
      .team = STR(TEAM_1), .after = -1, .types = EVENT_BIT(EVENT_UPDATED) | EVENT_BIT(EVENT_KILLED)};
  assert_int_equal(ask(reader, types).n, 2);
  types.since_us = 2500;
  assert_int_equal(ask(reader, types).n, 1);
  assert_int_equal(ask(reader, (struct event_query){.after = 3, .ascending = true}).seq[0], 4);
  assert_int_equal(ask(reader, (struct event_query){.after = 3, .team = STR(TEAM_2)}).n, 0);
  assert_int_equal(ask(reader, (struct event_query){.team = STR(TEAM_1), .after = -1, .offset = UINT64_MAX}).n, 0);
  assert_true(events_know(reader, STR("i1"), STR(TEAM_1), 0));
  assert_false(events_know(reader, STR("i1"), STR(TEAM_2), 0));
  assert_false(events_know(reader, STR("i1"), STR(TEAM_1), 3001));
  assert_int_equal(event_count(s), 5);
  store_close(reader);
  store_close(s);
}

static void an_event_goes_with_the_change_that_fails(void **state)
{
  struct store *s = fresh("rollback");
  struct row_box row = row_of("i1", TEAM_1);
  struct event e = event_of(&row, EVENT_CREATED, 1000, "");
  struct err err = ERR_NONE;
  assert_int_equal(store_begin(s, &err), 0);
  assert_int_equal(event_record(s, &e, &err), 0);
  assert_int_equal(store_end(s, -ENOSPC, &err), -ENOSPC);
  assert_int_equal(events_last(s), 0);
  assert_int_equal(store_begin(s, &err), 0); /* nested: the inner failure counts, whatever the outer one says */
  assert_int_equal(event_record(s, &e, &err), 0);
  assert_int_equal(store_begin(s, &err), 0);
  assert_int_equal(store_end(s, -EIO, &err), -EIO);
  assert_true(store_end(s, 0, &err) < 0);
  assert_int_equal(events_last(s), 0);
  put(s, "i1", TEAM_1, EVENT_CREATED, 1000); /* and the store goes on */
  assert_int_equal(events_last(s), 1);
  store_close(s);
}

static int trim(struct store *s, int64_t before_us, uint64_t total, unsigned most)
{
  return events_trim(s, &(struct event_bounds){.before_us = before_us, .team = 1000000, .total = total}, most);
}

static void add_team(struct store *s, const char *id)
{
  struct row_team t = {0};
  struct err err = ERR_NONE;
  snprintf(t.id, sizeof(t.id), "%s", id);
  snprintf(t.name, sizeof(t.name), "%s", id);
  snprintf(t.slug, sizeof(t.slug), "%s", id);
  assert_int_equal(store_team_put(s, &t, &err), 0);
}

/* The metadata in events is a client's: bytes are bounded with the number of events, and in each transaction. */
static void large_events_count_by_their_size(void **state)
{
  struct store *s = fresh("large");
  add_team(s, TEAM_1);
  struct row_box row = row_of("ilarge", TEAM_1);
  struct err err = ERR_NONE;
  char *data = xcalloc(1, (100 << 10) + 1);
  memset(data, ' ', 100 << 10);
  for (int i = 1; i <= 50; i++) {
    struct event e = event_of(&row, EVENT_UPDATED, i, data);
    assert_int_equal(store_begin(s, &err), 0);
    assert_int_equal(store_end(s, event_record(s, &e, &err), &err), 0);
    assert_int_equal(e.seq, i * 101);
  }
  assert_int_equal(trim(s, 0, 10000, 250), 0);
  assert_int_equal(trim(s, 0, 1010, 250), 21); /* forty must go, two megabytes at a time */
  assert_int_equal(trim(s, 0, 1010, 250), 19);
  assert_int_equal(trim(s, 0, 1010, 250), 0);
  free(data);
  store_close(s);
}

static void old_events_and_too_many_go_in_slices(void **state)
{
  struct store *s = fresh("trim");
  add_team(s, TEAM_1);
  char id[8];
  for (int i = 1; i <= 20; i++) {
    snprintf(id, sizeof(id), "i%d", i);
    put(s, id, TEAM_1, EVENT_CREATED, i * 100);
  }
  assert_int_equal(trim(s, 0, 100, 5), 0);
  assert_int_equal(trim(s, 801, 100, 5), 5); /* eight are old enough, five at a time */
  assert_int_equal(trim(s, 801, 100, 5), 3);
  assert_int_equal(trim(s, 801, 100, 5), 0);
  assert_int_equal(trim(s, 0, 10, 5), 2); /* twelve are left, ten may be */
  assert_int_equal(trim(s, 0, 10, 5), 0);
  struct seen left = ask(s, (struct event_query){.after = 0, .ascending = true});
  assert_int_equal(left.n, 10);
  assert_int_equal(left.seq[0], 11);
  assert_int_equal(trim(s, INT64_MAX, 0, 100), 9); /* the newest keeps its number from being given again */
  put(s, "ilast", TEAM_1, EVENT_CREATED, 5000);
  assert_int_equal(events_last(s), 21);
  store_close(s);
}

/* ---- the log ---- */

struct crowd {
  struct store *store;
  _Atomic bool over;
  _Atomic unsigned reads;
};

static int dawdle(const struct event *e, void *arg)
{
  poll(NULL, 0, 2);
  return 0;
}

/* Reads, and reads again at once: with several of them there is always one. */
static void *read_on(void *arg)
{
  struct crowd *c = arg;
  while (!c->over) {
    struct store *reader;
    struct event_query q = {.after = 0, .ascending = true, .limit = 20};
    assert_int_equal(store_open_reader(c->store, &reader, NULL), 0);
    events_read(reader, &q, dawdle, NULL);
    store_close(reader);
    c->reads++;
  }
  return NULL;
}

static void readers_without_a_gap_do_not_keep_the_log_growing(void **state)
{
  struct crowd c = {.store = fresh("log")};
  struct row_box row = row_of("ilarge", TEAM_1);
  pthread_t threads[4];
  struct err err = ERR_NONE;
  uint64_t most = 0, bound = 1 << 20;
  char *data = xcalloc(1, (100 << 10) + 1);
  memset(data, ' ', 100 << 10);
  store_bound(c.store, bound, 1000000);
  for (int i = 0; i < 30; i++)
    put(c.store, "i1", TEAM_1, EVENT_CREATED, i);
  for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, read_on, &c), 0);
    poll(NULL, 0, 10);
  }
  for (int i = 0; i < 300; i++) { /* thirty times the bound */
    struct event e = event_of(&row, EVENT_UPDATED, i, data);
    assert_int_equal(store_begin(c.store, &err), 0);
    assert_int_equal(store_end(c.store, event_record(c.store, &e, &err), &err), 0);
    if (i % 5 == 4)
      store_checkpoint(c.store);
    most = MAX(most, store_log_size(c.store));
  }
  c.over = true;
  for (size_t i = 0; i < ARRAY_LEN(threads); i++)
    pthread_join(threads[i], NULL);
  assert_true(c.reads > 0);
  if (most > 4 * bound)
    fail_msg("the log had %llu bytes", (unsigned long long)most);
  free(data);
  store_close(c.store);
}

static void a_reader_that_takes_too_long_is_stopped(void **state)
{
  struct store *s = fresh("late"), *reader;
  struct err err = ERR_NONE;
  struct event_query q = {.after = 0, .ascending = true, .limit = 1000, .offset = 1};
  struct seen none = {0};
  assert_int_equal(store_begin(s, &err), 0);
  for (int i = 0; i < 5000; i++)
    put(s, "i1", TEAM_1, EVENT_CREATED, i);
  assert_int_equal(store_end(s, 0, &err), 0);
  store_bound(s, 1 << 20, 1);
  assert_int_equal(store_open_reader(s, &reader, &err), 0);
  q.offset = 4999; /* it steps over them */
  assert_true(events_read(reader, &q, see, &none) < 0);
  assert_int_equal(store_read_late(reader, &err), -ENOBUFS);
  store_close(reader);
  store_bound(s, 1 << 20, 60000000);
  assert_int_equal(store_open_reader(s, &reader, &err), 0);
  assert_int_equal(events_read(reader, &q, see, &none), 0);
  assert_int_equal(store_read_late(reader, &err), 0);
  store_close(reader);
  store_close(s);
}

/* ---- metrics of teams ---- */

struct points {
  struct team_sample all[64];
  size_t n;
};

static void add_point(const struct team_sample *t, void *arg)
{
  struct points *p = arg;
  assert_true(p->n < ARRAY_LEN(p->all));
  p->all[p->n++] = *t;
}

static struct points points_of(struct store *s, struct team_sample_query q)
{
  struct points p = {0};
  team_sample_each(s, STR(TEAM_1), &q, add_point, &p);
  return p;
}

static void metrics_are_joined_to_so_many_points_at_most(void **state)
{
  struct store *s = fresh("usage");
  struct err err = ERR_NONE;
  assert_int_equal(store_begin(s, &err), 0);
  for (int i = 0; i < 1000; i++) {
    struct team_sample t = {
        .at_us = 1000 + i * 10, .span_us = 10, .running = (uint64_t)(i == 500 ? 9 : 1), .starts = 2};
    t.starts = i == 700 ? 5 : 2;
    assert_int_equal(team_sample_add(s, STR(TEAM_1), &t, &err), 0);
    assert_int_equal(team_sample_add(s, STR(TEAM_2), &(struct team_sample){t.at_us, 10, 100, 100}, &err), 0);
  }
  assert_int_equal(store_end(s, 0, &err), 0);
  struct points p = points_of(s, (struct team_sample_query){.to_us = INT64_MAX, .width_us = 1, .points = 50});
  assert_in_range(p.n, 25, 51);
  uint64_t starts = 0, running = 0;
  int64_t span = 0;
  for (size_t i = 0; i < p.n; i++) {
    starts += p.all[i].starts;
    span += p.all[i].span_us;
    running = MAX(running, p.all[i].running);
  }
  assert_int_equal(starts, 2003);
  assert_int_equal(span, 10000);
  assert_int_equal(running, 9);
  p = points_of(s, (struct team_sample_query){.from_us = 1000, .to_us = 1090, .width_us = 50, .points = 50});
  assert_int_equal(p.n, 2);
  assert_int_equal(p.all[0].at_us, 1040);
  p = points_of(s, (struct team_sample_query){.to_us = INT64_MAX, .mode = USAGE_MOST_RUNNING});
  assert_int_equal(p.n, 1);
  assert_int_equal(p.all[0].at_us, 6000);
  p = points_of(s, (struct team_sample_query){.to_us = INT64_MAX, .mode = USAGE_MOST_RATE});
  assert_int_equal(p.n, 1);
  assert_int_equal(p.all[0].at_us, 8000);
  store_close(s);
}

static size_t left_of(struct store *s, const char *team)
{
  return ask(s, (struct event_query){.team = str_of(team), .after = -1}).n;
}

static void one_teams_events_push_out_nobody_elses(void **state)
{
  struct store *s = fresh("teams");
  struct event_bounds b = {.team = 1000, .total = 30};
  add_team(s, TEAM_1);
  add_team(s, TEAM_2);
  for (int i = 1; i <= 5; i++)
    put(s, "iquiet", TEAM_1, EVENT_CREATED, i);
  for (int i = 10; i < 60; i++)
    put(s, "iloud", TEAM_2, EVENT_CREATED, i);
  while (events_trim(s, &b, 7) > 0)
    ;
  assert_int_equal(left_of(s, TEAM_1), 5);
  assert_int_equal(left_of(s, TEAM_2), 25);
  b = (struct event_bounds){.team = 10, .total = 1000};
  while (events_trim(s, &b, 7) > 0)
    ;
  assert_int_equal(left_of(s, TEAM_1), 5);
  struct seen loud = ask(s, (struct event_query){.team = STR(TEAM_2), .after = -1});
  assert_int_equal(loud.n, 10);
  assert_int_equal(loud.seq[0], 55); /* the latest ones */
  put(s, "iloud", TEAM_2, EVENT_CREATED, 100);
  assert_int_equal(events_last(s), 56);
  store_close(s);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(metadata_is_a_flat_object_of_strings_or_nothing),
      cmocka_unit_test(every_end_has_a_reason),
      cmocka_unit_test(data_holds_what_there_is_to_say),
      cmocka_unit_test(the_network_is_told_as_prefixes_and_names),
      cmocka_unit_test(one_event_has_two_spellings),
      cmocka_unit_test(a_checkpoint_has_neither_label_nor_category),
      cmocka_unit_test(the_six_names_are_known_and_no_other),
      cmocka_unit_test(events_are_read_by_team_sandbox_type_and_page),
      cmocka_unit_test(an_event_goes_with_the_change_that_fails),
      cmocka_unit_test(large_events_count_by_their_size),
      cmocka_unit_test(old_events_and_too_many_go_in_slices),
      cmocka_unit_test(one_teams_events_push_out_nobody_elses),
      cmocka_unit_test(readers_without_a_gap_do_not_keep_the_log_growing),
      cmocka_unit_test(a_reader_that_takes_too_long_is_stopped),
      cmocka_unit_test(metrics_are_joined_to_so_many_points_at_most),
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
