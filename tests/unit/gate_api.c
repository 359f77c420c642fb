/* SPDX-License-Identifier: Apache-2.0 */
/* gate_api.c - which route a request means, which error a client gets for one of the warden's, and what is refused
 * before a handler sees it: paths, methods, keys, bodies. */
#include "gate_lab.h"

#include "net/netloop.h"
#include "wire/buildlog.h"
#include <sys/mman.h>

static int find(const char *method, const char *path, struct route_match *m)
{
  static struct arena a = ARENA_INIT(1 << 20);
  struct route_path p;
  int r = route_split(&a, str_of(path), &p);
  return r ? r : route_find(str_of(method), &p, m);
}

static void a_path_and_a_method_name_a_route(void **state)
{
  static const struct {
    const char *method, *path;
    handler_fn handler;
    const char *id, *second;
  } table[] = {
      {"POST", "/sandboxes", sandbox_create_v1, NULL, NULL},
      {"POST", "/v2/sandboxes", sandbox_create_v2, NULL, NULL},
      {"GET", "//sandboxes/iabc", sandbox_get, "iabc", NULL},
      {"GET", "/sandboxes/metrics", sandbox_metrics_many, NULL, NULL},
      {"DELETE", "/sandboxes/iabc", sandbox_kill, "iabc", NULL},
      {"POST", "/v2/sandboxes/iabc/connect", sandbox_connect_v2, "iabc", NULL},
      {"GET", "/templates/aliases/team%2Fname", template_alias, "team/name", NULL},
      {"GET", "/templates/t1/builds/b1/status", build_status, "t1", "b1"},
      {"PUT", "/uploads/t1/abc", upload_put, "t1", "abc"},
  };
  for (size_t i = 0; i < ARRAY_LEN(table); i++) {
    struct route_match m;
    assert_int_equal(find(table[i].method, table[i].path, &m), 0);
    assert_ptr_equal(m.entry->handler, table[i].handler);
    assert_true(!table[i].id || str_is(m.id, table[i].id));
    assert_true(!table[i].second || str_is(m.second, table[i].second));
  }
}

static void other_paths_and_methods_name_none(void **state)
{
  struct route_match m;
  assert_int_equal(find("GET", "/", &m), -ENOENT);
  assert_int_equal(find("GET", "/nothing", &m), -ENOENT);
  assert_int_equal(find("GET", "/sandboxes/a/b/c", &m), -ENOENT);
  assert_int_equal(find("GET", "/sandboxes%2Fmetrics", &m), -ENOENT);
  assert_int_equal(find("PATCH", "/sandboxes", &m), -ENOTSUP);
  assert_int_equal(find("PUT", "/sandboxes/iabc", &m), -ENOTSUP);
  assert_null(m.entry);
  assert_int_equal(find("GET", "/a/%zz", &m), -EINVAL);
  assert_int_equal(find("GET", "/1/2/3/4/5/6/7/8/9", &m), -EINVAL);
}

static void the_api_owns_the_paths_that_take_a_key(void **state)
{
  assert_true(api_owns(STR("/sandboxes/iabc/connect")));
  assert_true(api_owns(STR("/v2/sandboxes")));
  assert_true(api_owns(STR("/templates")));
  assert_false(api_owns(STR("/health")));
  assert_false(api_owns(STR("/metrics")));
  assert_false(api_owns(STR("/files")));
  assert_false(api_owns(STR("/process.Process/Start")));
}

static void an_error_says_whether_a_repeat_helps(void **state)
{
  static const struct {
    int error, status;
    bool changes, final;
    uint64_t after;
  } table[] = {
      {-EINVAL, 400, true, false, 0},  {-EACCES, 401, true, false, 0}, {-EPERM, 403, true, false, 0},
      {-ENOENT, 404, true, false, 0},  {-EBUSY, 409, true, false, 0},  {-EFBIG, 422, true, false, 0},
      {-EAGAIN, 429, true, true, 0},   {-EDQUOT, 429, true, false, 7}, {-ESHUTDOWN, 503, true, false, 1},
      {-ENOBUFS, 503, true, false, 1}, {-ENOSPC, 507, true, true, 0},  {-EIO, 500, true, true, 0},
      {-EIO, 500, false, false, 0},
  };
  for (size_t i = 0; i < ARRAY_LEN(table); i++) {
    struct api_failure f = api_failure_of(table[i].error, 7, table[i].changes);
    assert_int_equal(f.status, table[i].status);
    assert_int_equal(f.final, table[i].final);
    assert_int_equal(f.retry_after_s, table[i].after);
  }
  assert_int_equal(api_failure_of(-EDQUOT, 0, true).retry_after_s, 1);
}

/* ---- whole requests ---- */

static void each_route_names_its_own_failure(void **state)
{
  static const struct {
    const char *method, *path, *body, *message;
  } table[] = {
      {"POST", "/v2/sandboxes", "{\"templateID\":\"base\"}", "Failed to place sandbox: disk broke"},
      {"GET", "/v2/sandboxes", NULL, "Failed to list sandboxes: disk broke"},
      {"GET", "/sandboxes/iabc", NULL, "Failed to get sandbox: disk broke"},
      {"DELETE", "/sandboxes/iabc", NULL, "Failed to kill sandbox: disk broke"},
      {"POST", "/sandboxes/iabc/pause", "{}", "Failed to pause sandbox: disk broke"},
      {"POST", "/sandboxes/iabc/resume", "{}", "Failed to resume sandbox: disk broke"},
      {"POST", "/v2/sandboxes/iabc/connect", "{}", "Failed to connect to sandbox: disk broke"},
      {"POST", "/sandboxes/iabc/snapshots", "{}", "Failed to create snapshot: disk broke"},
      {"POST", "/sandboxes/iabc/fork", "{}", "Failed to fork sandbox: disk broke"},
      {"GET", "/templates", NULL, "Failed to list templates: disk broke"},
      {"DELETE", "/templates/t1", NULL, "Failed to delete template: disk broke"},
      {"GET", "/api-keys", NULL, "Failed to list API keys: disk broke"},
      {"POST", "/api-keys", "{\"name\":\"k\"}", "Failed to create API key: disk broke"},
  };
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  lab.status = -EIO;
  lab.message = "disk broke";
  for (size_t i = 0; i < ARRAY_LEN(table); i++) {
    struct str body = table[i].body ? str_of(table[i].body) : STR_NONE;
    assert_int_equal(lab_keyed(table[i].method, table[i].path, body, &out), 500);
    assert_true(lab_says(&out, table[i].message));
    assert_int_equal(lab_says(&out, "Should-Retry: false"), strcmp(table[i].method, "GET") != 0);
  }
}

static void a_failed_create_says_for_programs_whether_it_may_succeed(void **state)
{
  static const struct {
    int error;
    const char *code;
  } table[] = {{-EIO, "\"error_code\":\"sandbox_create_failed\""},
               {-ESHUTDOWN, "\"error_code\":\"sandbox_create_failed\""},
               {-EINVAL, "\"error_code\":\"sandbox_create_refused\""},
               {-ENOENT, NULL},
               {-EAGAIN, NULL}};
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  for (size_t i = 0; i < ARRAY_LEN(table); i++) {
    lab.status = table[i].error;
    lab_keyed("POST", "/v2/sandboxes", STR("{\"templateID\":\"base\"}"), &out);
    assert_int_equal(lab_says(&out, "error_code"), table[i].code != NULL);
    assert_true(!table[i].code || lab_says(&out, table[i].code));
  }
}

static void a_limit_is_final_and_a_rate_says_when(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  struct str body = STR("{\"templateID\":\"base\"}");
  lab.status = -EAGAIN;
  lab.message = "the limit of 1 running sandboxes is reached";
  assert_int_equal(lab_keyed("POST", "/v2/sandboxes", body, &out), 429);
  assert_true(lab_says(&out, "Should-Retry: false"));
  assert_false(lab_says(&out, "Retry-After"));
  lab.status = -EDQUOT;
  lab.retry_s = 3;
  assert_int_equal(lab_keyed("POST", "/v2/sandboxes", body, &out), 429);
  assert_true(lab_says(&out, "Retry-After: 3\r\n"));
  assert_false(lab_says(&out, "Should-Retry"));
}

static void browsers_may_read_the_headers_about_repeats(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  assert_int_equal(lab_ask("GET", "/sandboxes", "Origin: http://page.test\r\n", STR_NONE, &out), 401);
  assert_true(lab_says(&out, "Access-Control-Allow-Origin: *"));
  assert_true(lab_says(&out, "Retry-After, Should-Retry"));
  assert_int_equal(lab_ask("OPTIONS", "/sandboxes",
                           "Origin: http://page.test\r\nAccess-Control-Request-Method: POST\r\n"
                           "Access-Control-Request-Headers: idempotency-key\r\n",
                           STR_NONE, &out),
                   204);
  assert_true(lab_says(&out, "Access-Control-Allow-Headers: idempotency-key"));
}

static void nothing_reaches_the_warden_without_a_key(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  assert_int_equal(lab_ask("GET", "/sandboxes", NULL, STR_NONE, &out), 401);
  assert_int_equal(lab_ask("GET", "/sandboxes", "X-API-Key: e2b_nothex\r\n", STR_NONE, &out), 401);
  assert_int_equal(lab_keyed("PATCH", "/sandboxes", STR_NONE, &out), 405);
  assert_int_equal(lab_keyed("GET", "/nowhere", STR_NONE, &out), 404);
  assert_int_equal(lab_keyed("GET", "/%zz", STR_NONE, &out), 400);
  assert_int_equal(lab.requests, 0);
}

static void bodies_are_bounded_and_must_be_objects(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20), large = BUF_INIT(1 << 20);
  assert_int_equal(lab_keyed("POST", "/v2/sandboxes", STR_NONE, &out), 400);
  assert_int_equal(lab_keyed("POST", "/v2/sandboxes", STR("[]"), &out), 400);
  assert_int_equal(lab_keyed("POST", "/v2/sandboxes", STR("{\"templateID\":"), &out), 400);
  assert_true(lab_says(&out, "at byte"));
  assert_int_equal(lab_keyed("POST", "/v2/sandboxes", STR("null"), &out), 400);
  buf_addz(&large, "{\"templateID\":\"");
  for (size_t i = 0; i < lab.config.api_body_max; i++)
    buf_addc(&large, 'x');
  buf_addz(&large, "\"}");
  assert_int_equal(lab_keyed("POST", "/v2/sandboxes", buf_str(&large), &out), 413);
  assert_int_equal(lab.requests, 0);
  lab.status = -ENOENT;
  assert_int_equal(lab_keyed("DELETE", "/sandboxes/iabc", STR("null"), &out), 404); /* an optional body may be null */
  assert_int_equal(lab.requests, 1);
}

/* {"x":[1,1,...]} */
static void put_values(struct buf *b, size_t n)
{
  buf_addz(b, "{\"x\":[1");
  for (size_t i = 1; i < n; i++)
    buf_addz(b, ",1");
  buf_addz(b, "]}");
}

static void the_memory_of_a_parsed_body_is_bounded(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20), many = BUF_INIT(1 << 20);
  lab.config.api_body_max = 1 << 20;
  lab.status = -ENOENT;
  put_values(&many, 100000);
  assert_int_equal(lab_keyed("DELETE", "/sandboxes/iabc", buf_str(&many), &out), 413);
  assert_true(lab_says(&out, "more than 4194304 bytes"));
  assert_int_equal(lab.requests, 0);
  /* steps of a build may be many: it is refused for its shape, not its size */
  assert_int_equal(
      lab_keyed("POST", "/v2/templates/t1/builds/391b03d6-06d0-46ac-99ce-e2daa119b53e", buf_str(&many), &out), 400);
  assert_false(lab_says(&out, "bytes of memory"));
  buf_clear(&many);
  put_values(&many, 20000);
  assert_int_equal(lab_keyed("DELETE", "/sandboxes/iabc", buf_str(&many), &out), 404);
}

/* The warden's next packet is a question about a box, not about a key. */
static bool warden_is_asked(void)
{
  struct wire_head h;
  return recv(lab.warden, &h, sizeof(h), MSG_PEEK) == (ssize_t)sizeof(h) && h.type != WIRE_AUTH;
}

/* One turn, but the question about the box stays unanswered. */
static void lab_key_turn(void)
{
  static char packet[WIRE_MAX] __attribute__((aligned(8)));
  uv_run(&lab_loop, UV_RUN_NOWAIT);
  ssize_t n = warden_is_asked() ? 0 : recv(lab.warden, packet, sizeof(packet), 0);
  if (n > 0)
    lab_warden_replies((struct str){packet, (size_t)n});
}

static void a_parsed_body_counts_as_held_until_the_end(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20), body = BUF_INIT(1 << 20), all = BUF_INIT(1 << 20);
  struct net *net = net_of(&lab_loop);
  uint64_t before = net->held;
  int fd = lab_connect();
  lab.status = -ENOENT;
  put_values(&body, 20000);
  buf_addf(&all, "DELETE /sandboxes/iabc HTTP/1.1\r\nHost: api\r\nX-API-Key: %s\r\nContent-Length: %zu\r\n\r\n",
           lab.key, body.n);
  buf_adds(&all, buf_str(&body));
  assert_int_equal(send(fd, all.p, all.n, 0), (ssize_t)all.n);
  for (int i = 0; i < 1000 && !warden_is_asked(); i++)
    lab_key_turn();
  assert_true(warden_is_asked());
  assert_true(net->held > before + (1 << 20));
  assert_int_equal(lab_answer(fd, &out), 404);
  close(fd);
  for (int i = 0; i < 20; i++)
    lab_turn();
  assert_int_equal(net->held, before);
  net_unref(net);
}

static void a_malformed_sandbox_id_is_refused_here(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  assert_int_equal(lab_keyed("GET", "/sandboxes/UPPER", STR_NONE, &out), 400);
  assert_int_equal(lab_keyed("GET", "/sandboxes/a-b-c", STR_NONE, &out), 400);
  assert_int_equal(lab_keyed("GET", "/sandboxes/a%2Fb", STR_NONE, &out), 400);
  assert_int_equal(lab.requests, 0);
  lab.status = -ENOENT;
  lab.message = NULL;
  assert_int_equal(lab_keyed("GET", "/sandboxes/iabc-6532622b", STR_NONE, &out), 404);
  assert_true(str_is(wire_get(buf_str(&lab.last), W_ID), "iabc"));
}

static void a_team_has_a_bounded_number_of_open_requests(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  struct usage *held = NULL;
  lab.config.team_connections_max = 1;
  assert_int_equal(usage_enter(lab.gate, LAB_TEAM, USAGE_API, &held), 0);
  assert_int_equal(lab_keyed("GET", "/sandboxes", STR_NONE, &out), 429);
  assert_true(lab_says(&out, "Retry-After: 1\r\n"));
  usage_leave(lab.gate, USAGE_API, &held);
  lab.status = -EIO;
  assert_int_equal(lab_keyed("GET", "/sandboxes", STR_NONE, &out), 500);
}

static void requests_and_boxes_of_a_team_have_one_limit(void **state)
{
  struct usage *held[8] = {0}, *other = NULL;
  lab.config.team_connections_max = 8;
  for (size_t i = 0; i < 7; i++)
    assert_int_equal(usage_enter(lab.gate, LAB_TEAM, USAGE_BOX, &held[i]), 0);
  assert_int_equal(usage_enter(lab.gate, LAB_TEAM, USAGE_BOX, &other), -EDQUOT); /* the last is for the API */
  assert_int_equal(usage_enter(lab.gate, LAB_TEAM, USAGE_API, &held[7]), 0);
  assert_int_equal(usage_enter(lab.gate, LAB_TEAM, USAGE_API, &other), -EDQUOT);
  usage_leave(lab.gate, USAGE_BOX, &held[0]);
  assert_int_equal(usage_enter(lab.gate, LAB_TEAM, USAGE_API, &held[0]), 0);
  assert_int_equal(usage_enter(lab.gate, LAB_TEAM, USAGE_BOX, &other), -EDQUOT);
  usage_leave(lab.gate, USAGE_API, &held[0]);
  usage_leave(lab.gate, USAGE_API, &held[7]);
  for (size_t i = 1; i < 7; i++)
    usage_leave(lab.gate, USAGE_BOX, &held[i]);
}

#define HASH64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* An upload whose body does not come; the warden opens a file for it. */
static int upload_into(int file)
{
  static const char head[] = "PUT /uploads/" LAB_TEAM "/" HASH64 "?expires=9999999999&signature=" HASH64
                             " HTTP/1.1\r\nHost: api\r\nContent-Length: 10\r\n\r\n";
  int fd = lab_connect();
  lab.fd = file;
  assert_int_equal(send(fd, head, strlen(head), 0), (ssize_t)strlen(head));
  for (int i = 0; i < 20; i++)
    lab_turn();
  return fd;
}

static int upload_begin(void)
{
  return upload_into(open("/dev/null", O_WRONLY | O_CLOEXEC));
}

static void an_upload_counts_for_the_team_of_its_link(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  struct usage *held = NULL;
  lab.config.team_connections_max = 1;
  lab.config.upload_max = 1000;
  int first = upload_begin();
  assert_int_equal(lab.last_type, WIRE_FILE_OPEN);
  assert_int_equal(usage_enter(lab.gate, LAB_TEAM, USAGE_API, &held), -EDQUOT);
  assert_int_equal(lab_keyed("GET", "/sandboxes", STR_NONE, &out), 429);
  int second = upload_begin();
  assert_int_equal(lab.last_type, WIRE_FILE_CLOSE); /* its file is given back at once */
  assert_int_equal(lab_answer(second, &out), 429);
  close(second);
  close(first);
  for (int i = 0; i < 20; i++)
    lab_turn();
  assert_int_equal(usage_enter(lab.gate, LAB_TEAM, USAGE_API, &held), 0);
  usage_leave(lab.gate, USAGE_API, &held);
}

static void settle(void)
{
  for (int i = 0; i < 30; i++)
    lab_turn();
}

/* A file whose writes wait until somebody reads `rest`: a disk that stands still. */
static int stuck_file(int *rest)
{
  static const char full[65536];
  int pair[2];
  assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
  assert_int_equal(fcntl(pair[1], F_SETPIPE_SZ, (int)sizeof(full)), (int)sizeof(full));
  assert_int_equal(write(pair[1], full, sizeof(full)), (ssize_t)sizeof(full));
  *rest = pair[0];
  return pair[1];
}

static void drain(int fd, size_t n)
{
  char piece[4096];
  while (n) {
    ssize_t k = read(fd, piece, MIN(n, sizeof(piece)));
    assert_true(k > 0);
    n -= (size_t)k;
  }
}

static void an_upload_to_a_slow_disk_delays_nobody_else(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  int disk;
  char byte;
  lab.config.upload_max = 1000;
  int client = upload_into(stuck_file(&disk));
  alarm(20); /* a gate that waits for the disk waits for ever */
  assert_int_equal(send(client, "01234", 5, 0), 5);
  settle();
  assert_int_equal(lab_keyed("GET", "/sandboxes", STR_NONE, &out), 200);
  assert_int_equal(send(client, "56789", 5, 0), 5);
  settle();
  assert_int_equal(recv(client, &byte, 1, MSG_PEEK), -1); /* not answered before it is written */
  assert_int_not_equal(lab.last_type, WIRE_FILE_CLOSE);
  drain(disk, 65536);
  assert_int_equal(lab_answer(client, &out), 200);
  assert_int_equal(lab.last_type, WIRE_FILE_CLOSE);
  assert_int_equal(wire_u64(buf_str(&lab.last), W_COUNT, 0), 10);
  char text[10];
  assert_int_equal(read(disk, text, sizeof(text)), 10);
  assert_memory_equal(text, "0123456789", 10);
  alarm(0);
  close(client);
  close(disk);
  settle();
}

static void a_client_that_leaves_an_upload_under_way_takes_its_file_along(void **state)
{
  int disk, file = stuck_file(&disk);
  char byte;
  lab.config.upload_max = 1000;
  int client = upload_into(file);
  alarm(20);
  assert_int_equal(send(client, "01234", 5, 0), 5);
  settle();
  close(client);
  for (int i = 0; i < 1000 && lab.last_type != WIRE_FILE_CLOSE; i++)
    lab_turn();
  assert_int_equal(lab.last_type, WIRE_FILE_CLOSE);
  drain(disk, 65536);
  assert_int_equal(fcntl(disk, F_SETFL, O_NONBLOCK), 0);
  while (read(disk, &byte, 1) != 0) /* its bytes, if a thread had them already; the end: the gate has closed it */
    lab_turn();
  alarm(0);
  close(disk);
  settle();
}

static int list_begin(const char *path, const char *key)
{
  int fd = lab_connect();
  cleanup_buf struct buf b = BUF_INIT(4096);
  buf_addf(&b, "GET %s HTTP/1.1\r\nHost: api\r\nX-API-Key: %s\r\n\r\n", path, key);
  assert_int_equal(send(fd, b.p, b.n, 0), (ssize_t)b.n);
  settle();
  return fd;
}

static void listings_of_one_team_leave_places_to_others(void **state)
{
  static const char *const paths[] = {"/sandboxes", "/v2/sandboxes", "/templates", "/snapshots", "/v2/sandboxes"};
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  uint8_t hash[SHA256_LEN];
  char other_key[KEY_TEXT], mask[64];
  int fds[ARRAY_LEN(paths)];
  lab.holds = true;
  for (size_t i = 0; i < ARRAY_LEN(paths); i++)
    fds[i] = list_begin(paths[i], lab.key);
  assert_int_equal(lab.requests, 2);
  lab.team = "22222222-2222-4222-8222-222222222222";
  key_make(other_key, hash, mask);
  int other = list_begin("/sandboxes", other_key);
  assert_int_equal(lab.requests, 3); /* it does not wait for the first team's */
  close(fds[0]);
  settle();
  assert_int_equal(lab.requests, 3); /* the warden still works for the one who left */
  lab_release();
  settle();
  assert_int_equal(lab.requests, 4);
  close(fds[3]); /* it waited, and does no more */
  settle();
  while (lab.held.n) {
    lab_release();
    settle();
  }
  assert_int_equal(lab.requests, 5);
  for (size_t i = 0; i < ARRAY_LEN(paths); i++)
    if (i != 0 && i != 3) {
      assert_int_equal(lab_answer(fds[i], &out), 200);
      close(fds[i]);
    }
  assert_int_equal(lab_answer(other, &out), 200);
  close(other);
  settle();
}

#define BUILD_PATH "/templates/t1/builds/33333333-3333-4333-8333-333333333333"

/* Very many short lines, then one error; reading it takes far longer than a turn. */
static int large_log(void)
{
  int fd = memfd_create("log", MFD_CLOEXEC);
  cleanup_buf struct buf b = BUF_INIT((size_t)128 << 20);
  struct buildlog_head h = {.wall_us = 1767323045000000, .len = 1, .level = LOG_INFO, .step = "1"};
  for (size_t i = 0; i < 1500000; i++) {
    buf_add(&b, &h, sizeof(h));
    buf_addc(&b, 'x');
  }
  h.level = LOG_ERROR;
  h.len = 8;
  buf_add(&b, &h, sizeof(h));
  buf_addz(&b, "the last");
  assert_int_equal(fd_write_all(fd, b.p, b.n), 0);
  return fd;
}

static void a_long_build_log_is_read_between_other_work(void **state)
{
  static const char *const paths[] = {BUILD_PATH "/logs?level=error", BUILD_PATH "/logs?direction=backward&limit=1",
                                      BUILD_PATH "/status?level=error"};
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  cleanup_fd int log = large_log();
  char byte;
  assert_int_equal(lab_keyed("GET", "/sandboxes", STR_NONE, &out), 200); /* the key is known now */
  for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
    int fd = lab_connect();
    cleanup_buf struct buf b = BUF_INIT(4096);
    lab.requests = 0;
    lab.fd = dup(log);
    buf_addf(&b, "GET %s HTTP/1.1\r\nHost: api\r\nX-API-Key: %s\r\n\r\n", paths[i], lab.key);
    assert_int_equal(send(fd, b.p, b.n, 0), (ssize_t)b.n);
    for (int k = 0; k < 1000 && !lab.requests; k++)
      lab_turn();
    for (int k = 0; k < 3; k++)
      lab_turn();
    assert_int_equal(recv(fd, &byte, 1, MSG_PEEK), -1);
    assert_int_equal(lab_answer(fd, &out), 200);
    assert_true(lab_says(&out, "\"message\":\"the last\""));
    assert_false(lab_says(&out, "\"message\":\"x\""));
    close(fd);
    lab_turn();
  }
}

static void build_logs_of_one_team_are_read_a_few_at_once(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  int fds[6];
  lab.holds = true;
  for (size_t i = 0; i < ARRAY_LEN(fds); i++)
    fds[i] = list_begin(i % 2 ? BUILD_PATH "/logs" : BUILD_PATH "/status", lab.key);
  assert_int_equal(lab.requests, 4);
  close(fds[0]);
  settle();
  assert_int_equal(lab.requests, 5);
  while (lab.held.n) {
    lab_release();
    settle();
  }
  for (size_t i = 1; i < ARRAY_LEN(fds); i++) {
    assert_int_equal(lab_answer(fds[i], &out), 200);
    assert_true(lab_says(&out, i % 2 ? "{\"logs\":[]}" : "\"logEntries\":[]"));
    close(fds[i]);
  }
  settle();
}

static void a_domain_is_told_where_it_leads_back(void **state)
{
  static const struct {
    const char *configured, *host, *domain;
  } table[] = {
      {"", "127.0.0.1:3000", "localhost:3000"},
      {"", "localhost:8080", "localhost:8080"},
      {"", "LocalHost", "localhost"},
      {"", "[::1]:3000", "localhost:3000"},
      {"", "[::1]", "localhost"},
      {"", "api.localhost:44017", "localhost:44017"},
      {"box.test", "127.0.0.1:3000", "box.test"},
      {"box.test:8443", "api.box.test:8443", "box.test:8443"},
      {"", "192.168.1.5:3000", ""},
      {"", "server.lan:3000", ""},
      {"", "notlocalhost:3000", ""},
      {"", ".localhost:3000", ""},
      {"", "localhost:0", ""},
      {"", "localhost:65536", ""},
      {"", "localhost:30x", ""},
      {"", "localhost:", "localhost"},
      {"", "[::1]x", ""},
      {"", "", ""},
  };
  for (size_t i = 0; i < ARRAY_LEN(table); i++) {
    struct arena a = ARENA_INIT(4096);
    struct str got = box_domain(str_of(table[i].configured), str_of(table[i].host), &a);
    if (!str_is(got, table[i].domain))
      fail_msg("%s: " STR_FMT, table[i].host, STR_ARG(got));
    arena_free(&a);
  }
}

#define WHOLE(test) cmocka_unit_test_setup_teardown(test, lab_setup, lab_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_path_and_a_method_name_a_route),
      cmocka_unit_test(other_paths_and_methods_name_none),
      cmocka_unit_test(the_api_owns_the_paths_that_take_a_key),
      cmocka_unit_test(an_error_says_whether_a_repeat_helps),
      cmocka_unit_test(a_domain_is_told_where_it_leads_back),
      WHOLE(each_route_names_its_own_failure),
      WHOLE(a_failed_create_says_for_programs_whether_it_may_succeed),
      WHOLE(a_limit_is_final_and_a_rate_says_when),
      WHOLE(browsers_may_read_the_headers_about_repeats),
      WHOLE(nothing_reaches_the_warden_without_a_key),
      WHOLE(bodies_are_bounded_and_must_be_objects),
      WHOLE(the_memory_of_a_parsed_body_is_bounded),
      WHOLE(a_parsed_body_counts_as_held_until_the_end),
      WHOLE(a_malformed_sandbox_id_is_refused_here),
      WHOLE(a_team_has_a_bounded_number_of_open_requests),
      WHOLE(requests_and_boxes_of_a_team_have_one_limit),
      WHOLE(an_upload_counts_for_the_team_of_its_link),
      WHOLE(an_upload_to_a_slow_disk_delays_nobody_else),
      WHOLE(a_client_that_leaves_an_upload_under_way_takes_its_file_along),
      WHOLE(a_long_build_log_is_read_between_other_work),
      WHOLE(build_logs_of_one_team_are_read_a_few_at_once),
      WHOLE(listings_of_one_team_leave_places_to_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
