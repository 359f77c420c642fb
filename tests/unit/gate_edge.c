/* SPDX-License-Identifier: Apache-2.0 */
/* gate_edge.c - decisions of the proxy: which requests need the warden, who may go in, what a paused, ended or full box
 * answers, and which connection into the box is taken. */
#include "gate_lab.h"

#define BOX "iabc"

static void settle(void)
{
  for (int i = 0; i < 20; i++)
    lab_turn();
}

/* What the warden says of the box from now on. */
static void box_is(unsigned box_state, unsigned flags)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  uint8_t hash[SHA256_LEN];
  lab.status = 0;
  buf_clear(&lab.fields);
  wire_begin(&b, WIRE_REPLY, 0, 0);
  wire_putz(&b, W_ID, BOX);
  wire_putz(&b, W_TEAM, LAB_TEAM);
  wire_put_u64(&b, W_STATE, box_state);
  wire_put_u64(&b, W_FLAGS, flags);
  wire_put_u64(&b, W_TIER, TIER_CHECKPOINT);
  wire_put_u64(&b, W_RUN, 1);
  sha256_of("access", 6, hash);
  wire_put(&b, W_TOKEN_HASH, str_make(hash, sizeof(hash)));
  sha256_of("traffic", 7, hash);
  wire_put(&b, W_TRAFFIC_HASH, str_make(hash, sizeof(hash)));
  buf_adds(&lab.fields, str_skip(buf_str(&b), sizeof(struct wire_head)));
}

/* A connection into the box; returns the service's end. */
static int service(void)
{
  int pair[2];
  lab_pair(pair);
  lab.fd = pair[1];
  return pair[0];
}

static void announce(enum wire_type type, const char *cause)
{
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, type, 0, 0);
  wire_putz(&b, W_ID, BOX);
  if (cause) {
    wire_putz(&b, W_CAUSE, cause);
    wire_put_u64(&b, W_END, 1767323045000000);
  }
  lab_send(&b);
  settle();
}

static int begin(unsigned port, const char *path, const char *headers)
{
  int fd = lab_connect();
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  buf_addf(&b, "GET %s HTTP/1.1\r\nHost: %u-" BOX ".box.test\r\n%s\r\n", path, port, headers);
  assert_int_equal(send(fd, b.p, b.n, 0), (ssize_t)b.n);
  settle();
  return fd;
}

static int get(unsigned port, const char *path, const char *headers, struct buf *out)
{
  int fd = begin(port, path, headers), status = lab_answer(fd, out);
  close(fd);
  lab_turn();
  return status;
}

/* The service sees the request and answers it. */
static void serve_seen(int fd, struct buf *seen)
{
  static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  char request[4096];
  ssize_t n = -1;
  for (int i = 0; n <= 0 && i < 1000; i++) {
    lab_turn();
    n = recv(fd, request, sizeof(request), 0);
  }
  assert_true(n > 0);
  buf_clear(seen);
  buf_add(seen, request, (size_t)n);
  assert_int_equal(send(fd, answer, strlen(answer), 0), (ssize_t)strlen(answer));
}

static void serve_with(int fd, const char *answer)
{
  char request[4096];
  ssize_t n = -1;
  for (int i = 0; n <= 0 && i < 1000; i++) {
    lab_turn();
    n = recv(fd, request, sizeof(request), 0);
  }
  assert_true(n > 0);
  assert_int_equal(send(fd, answer, strlen(answer), 0), (ssize_t)strlen(answer));
}

static void serve(int fd)
{
  cleanup_buf struct buf seen = BUF_INIT(4096);
  serve_seen(fd, &seen);
}

static void what_opens_the_api_does_not_reach_the_agent(void **state)
{
  static const unsigned ports[] = {ENVD_PORT, INTERPRETER_PORT, 8000};
  cleanup_buf struct buf out = BUF_INIT(1 << 16), seen = BUF_INIT(4096);
  box_is(BOX_RUNNING, 0);
  for (size_t i = 0; i < ARRAY_LEN(ports); i++) {
    int far = service(),
        near = begin(ports[i], "/health",
                     "X-API-KEY: e2b_secret\r\nx-admin-token: root-secret\r\nX-Access-Token: mine\r\n");
    serve_seen(far, &seen);
    assert_int_equal(lab_answer(near, &out), 200);
    assert_true(lab_says(&seen, "X-Access-Token: mine\r\n"));
    assert_int_equal(lab_says(&seen, "e2b_secret"), ports[i] == 8000); /* a service may have keys of its own */
    assert_int_equal(lab_says(&seen, "root-secret"), ports[i] == 8000);
    close(near);
    close(far);
  }
}

static void the_control_planes_paths_of_the_agent_are_closed(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 16);
  static const char *const paths[] = {"/init", "/freeze", "/%69nit", "/x/../init", "//init"};
  for (size_t i = 0; i < ARRAY_LEN(paths); i++)
    assert_int_equal(get(ENVD_PORT, paths[i], "", &out), 404);
  assert_int_equal(lab.requests, 0);
}

static void a_box_that_is_not_there_is_said_to_be_so_exactly(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 16);
  lab.status = -ENOENT;
  lab.message = NULL;
  assert_int_equal(get(8000, "/", "", &out), 502);
  assert_true(lab_says(&out, "\"message\":\"The sandbox was not found\""));
}

static void the_cause_of_an_end_reaches_the_client(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 16);
  lab.status = -ENOENT;
  lab.message = NULL;
  lab.cause = "killed: by request";
  assert_int_equal(get(8000, "/", "", &out), 502);
  assert_true(lab_says(&out, "\"message\":\"The sandbox was not found: it ended at "));
  assert_true(lab_says(&out, ", killed: by request\""));
}

static void a_route_is_requested_once_and_again_while_the_box_is_held(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 16);
  box_is(BOX_RUNNING, BOX_PRIVATE);
  assert_int_equal(get(8000, "/", "", &out), 403);
  assert_int_equal(get(8000, "/", "", &out), 403);
  assert_int_equal(lab.requests, 1);
  announce(WIRE_BOX_HOLD, NULL);
  assert_int_equal(get(8000, "/", "", &out), 403);
  assert_int_equal(lab.requests, 2);
  assert_int_equal(get(8000, "/", "", &out), 403); /* it runs on: the hold is over */
  assert_int_equal(lab.requests, 2);
  announce(WIRE_BOX_ENDED, "killed: by request");
  lab.status = -ENOENT;
  lab.message = NULL;
  assert_int_equal(get(8000, "/", "", &out), 502);
  assert_int_equal(lab.requests, 3);
}

static void private_ports_need_the_traffic_token(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 16);
  box_is(BOX_RUNNING, BOX_PRIVATE);
  assert_int_equal(get(8000, "/", "", &out), 403);
  assert_true(lab_says(&out, "is missing"));
  assert_int_equal(get(8000, "/", "E2b-Traffic-Access-Token: guess\r\n", &out), 403);
  assert_true(lab_says(&out, "is invalid"));
  unsigned before = lab.requests;
  int far = service(), near = begin(8000, "/", "E2b-Traffic-Access-Token: traffic\r\n");
  assert_int_equal(lab.last_type, WIRE_BOX_DIAL);
  assert_int_equal(lab.requests, before + 1);
  serve(far);
  assert_int_equal(lab_answer(near, &out), 200);
  close(near);
  close(far);
}

static void the_interpreter_of_a_secure_box_needs_the_access_token(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 16);
  box_is(BOX_RUNNING, BOX_SECURE);
  assert_int_equal(get(INTERPRETER_PORT, "/execute", "", &out), 401);
  assert_int_equal(get(INTERPRETER_PORT, "/execute", "X-Access-Token: guess\r\n", &out), 401);
  assert_true(lab_says(&out, "is invalid"));
}

static void an_idle_connection_is_used_again_for_its_own_port(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 16);
  box_is(BOX_RUNNING, 0);
  assert_int_equal(get(8001, "/", "E2b-Traffic-Access-Token: x\r\n", &out),
                   502); /* nothing listens: the route is known */
  unsigned before = lab.requests;
  int far = service(), near = begin(8000, "/a", "");
  serve(far);
  assert_int_equal(lab_answer(near, &out), 200);
  assert_int_equal(lab.requests, before + 1);
  settle();
  close(near);
  near = begin(8000, "/b", "");
  serve(far); /* the same connection: the warden was not asked for another */
  assert_int_equal(lab_answer(near, &out), 200);
  assert_int_equal(lab.requests, before + 1);
  close(near);
  int other = service();
  near = begin(8002, "/", "");
  assert_int_equal(lab.requests, before + 2);
  serve(other);
  assert_int_equal(lab_answer(near, &out), 200);
  close(near);
  close(far);
  close(other);
}

static void an_idle_connection_that_the_service_closed_is_not_used(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 16);
  box_is(BOX_RUNNING, 0);
  int far = service(), near = begin(ENVD_PORT, "/health", "");
  serve(far);
  assert_int_equal(lab_answer(near, &out), 200);
  settle();
  close(near);
  close(far);
  unsigned before = lab.requests;
  far = service();
  near = begin(ENVD_PORT, "/health", "");
  assert_int_equal(lab.requests, before + 1);
  serve(far);
  assert_int_equal(lab_answer(near, &out), 200);
  close(near);
  close(far);
}

static void a_request_without_an_answer_yet_learns_why_the_box_ended(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 16);
  box_is(BOX_RUNNING, 0);
  int far = service(), near = begin(ENVD_PORT, "/files", "");
  announce(WIRE_BOX_ENDED, "out of memory: all used");
  assert_int_equal(lab_answer(near, &out), 502);
  assert_true(lab_says(&out, "The sandbox was not found: it ended at "));
  assert_true(lab_says(&out, "out of memory: all used"));
  close(near);
  close(far);
}

static void an_answer_under_way_is_cut_without_an_end(void **state)
{
  static const char head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n";
  cleanup_buf struct buf out = BUF_INIT(1 << 16);
  char piece[4096];
  box_is(BOX_RUNNING, 0);
  int far = service(), near = begin(ENVD_PORT, "/files", "");
  assert_int_equal(send(far, head, strlen(head), 0), (ssize_t)strlen(head));
  settle();
  announce(WIRE_BOX_ENDED, "killed: by request");
  ssize_t n;
  while ((n = recv(near, piece, sizeof(piece), 0)) > 0)
    buf_add(&out, piece, (size_t)n);
  assert_true(n == 0 || errno == ECONNRESET);
  assert_true(lab_says(&out, "\r\nhi\r\n"));
  assert_false(lab_says(&out, "\r\n0\r\n"));
  close(near);
  close(far);
}

/* Clients kill a box as soon as they have its answer, so both reach a busy gate in one iteration of its loop. */
static void a_whole_answer_leaves_the_connection_open_when_the_box_ends(void **state)
{
  static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  static const char next[] = "GET / HTTP/1.1\r\nHost: 8000-" BOX ".box.test\r\n\r\n";
  cleanup_buf struct buf out = BUF_INIT(1 << 16), ended = BUF_INIT(1024);
  box_is(BOX_RUNNING, 0);
  int far = service(), near = begin(ENVD_PORT, "/files", "");
  wire_begin(&ended, WIRE_BOX_ENDED, 0, 0);
  wire_putz(&ended, W_ID, BOX);
  assert_int_equal(send(far, answer, strlen(answer), 0), (ssize_t)strlen(answer));
  lab_send(&ended);
  assert_int_equal(lab_answer(near, &out), 200);
  assert_true(lab_says(&out, "\r\n\r\nok"));
  lab.status = -ENOENT;
  assert_int_equal(send(near, next, strlen(next), MSG_NOSIGNAL), (ssize_t)strlen(next));
  assert_int_equal(lab_answer(near, &out), 502);
  close(near);
  close(far);
}

static void a_full_box_refuses_and_says_its_limit(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 16);
  int near[3], far[3];
  box_is(BOX_RUNNING, 0);
  for (size_t i = 0; i < ARRAY_LEN(near); i++) {
    far[i] = service();
    near[i] = begin(ENVD_PORT, "/files", "");
  }
  assert_int_equal(get(ENVD_PORT, "/files", "", &out), 429);
  assert_true(lab_says(&out, "\"connectionLimit\":3"));
  serve(far[0]);
  assert_int_equal(lab_answer(near[0], &out), 200);
  settle();
  close(near[0]);
  int again = begin(ENVD_PORT, "/files", "");
  serve(far[0]);
  assert_int_equal(lab_answer(again, &out), 200);
  close(again);
  for (size_t i = 0; i < ARRAY_LEN(near); i++) {
    close(far[i]);
    if (i)
      close(near[i]);
  }
}

static void a_paused_box_is_resumed_only_by_those_who_may(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 16);
  box_is(BOX_PAUSED, BOX_SECURE);
  assert_int_equal(get(ENVD_PORT, "/health", "X-Access-Token: access\r\n", &out), 502);
  assert_true(lab_says(&out, "\"message\":\"The sandbox was not found\""));
  assert_int_equal(lab.last_type, WIRE_BOX_GET);
  box_is(BOX_PAUSED, BOX_SECURE | BOX_AUTO_RESUME);
  assert_int_equal(get(ENVD_PORT, "/health", "", &out), 403);
  assert_int_equal(get(ENVD_PORT, "/health", "X-Access-Token: guess\r\n", &out), 403);
  assert_int_equal(lab.last_type, WIRE_BOX_GET);
  int near = begin(ENVD_PORT, "/health", "X-Access-Token: access\r\n");
  assert_int_equal(lab.last_type, WIRE_BOX_CONNECT);
  assert_int_equal(wire_u64(buf_str(&lab.last), W_MODE, 99), CONNECT_TRAFFIC);
  close(near);
}

static void a_browser_sees_a_page_that_says_more(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 16);
  box_is(BOX_PAUSED, 0);
  assert_int_equal(get(8000, "/", "User-Agent: Mozilla/5.0\r\nAccept: text/html\r\n", &out), 502);
  assert_true(lab_says(&out, "The sandbox was not found: it is paused"));
}

static void a_port_without_a_service_is_tried_for_a_second(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 16);
  box_is(BOX_RUNNING, 0);
  assert_int_equal(get(ENVD_PORT, "/health", "", &out), 502);
  assert_true(lab_says(&out, "\"message\":\"The sandbox is running but port is not open\""));
}

static int ask_for_file(const char *query, const char *headers, struct buf *out)
{
  char path[512];
  snprintf(path, sizeof(path), "/files?path=/a%s", query);
  return lab_ask("GET", path, headers, STR_NONE, out);
}

static void what_no_client_would_sign_counts_as_a_guess(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 16);
  char token[TOKEN_GIVEN_MAX + 64] = "X-Access-Token: ", signature[TOKEN_GIVEN_MAX + 64] = "&signature=";
  memset(token + strlen(token), 'a', TOKEN_GIVEN_MAX + 1);
  strcat(token, "\r\n");
  memset(signature + strlen(signature), 'a', TOKEN_GIVEN_MAX + 1);
  lab.gate->throttle.per_minute = 3;
  assert_int_equal(ask_for_file("&signature=", NULL, &out), 401);
  assert_int_equal(ask_for_file(signature, NULL, &out), 401);
  assert_int_equal(ask_for_file("", token, &out), 502);
  assert_int_equal(ask_for_file("&signature=", NULL, &out), 429);
  assert_int_equal(ask_for_file("", token, &out), 429);
  assert_int_equal(lab.requests, 0);
  map_put(&lab.gate->signed_urls, STR("v1_known"), xstrdup(BOX)); /* goes in all the same */
  lab.status = -ENOENT;
  lab.message = NULL;
  assert_int_equal(ask_for_file("&signature=v1_known", NULL, &out), 502);
  assert_int_equal(lab.requests, 1);
  free(map_del(&lab.gate->signed_urls, STR("v1_known")));
  map_free(&lab.gate->signed_urls);
  throttle_free(&lab.gate->throttle);
}

static void the_cookies_of_a_box_are_its_hosts_alone(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 16);
  box_is(BOX_RUNNING, 0);
  int inside = service(), client = begin(8000, "/", "");
  serve_with(inside, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nSet-Cookie: a=1; Domain=.box.test; Path=/\r\n"
                     "Set-Cookie: b=2;DOMAIN = box.test ;Secure;domain=test\r\nset-cookie: c=\"x; Domain=box.test\"\r\n"
                     "Set-Cookie: Domain=kept; HttpOnly\r\nSet-Cookie: d=4; domain\r\nX-Other: y; Domain=box.test\r\n"
                     "\r\nok");
  assert_int_equal(lab_answer(client, &out), 200);
  assert_true(lab_says(&out, "Set-Cookie: a=1; Path=/\r\n"));
  assert_true(lab_says(&out, "Set-Cookie: b=2;Secure\r\n"));
  assert_true(lab_says(&out, "set-cookie: c=\"x\r\n")); /* as a browser takes it apart */
  assert_true(lab_says(&out, "Set-Cookie: Domain=kept; HttpOnly\r\n"));
  assert_true(lab_says(&out, "Set-Cookie: d=4\r\n"));
  assert_true(lab_says(&out, "X-Other: y; Domain=box.test\r\n"));
  close(client);
  close(inside);
  settle();
}

/* Connections of one address on which nothing was accepted yet: two. */
static void a_client_is_known_when_the_box_has_answered(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 16);
  struct http_limits limits = http_limits_default;
  int inside[2], client[3];
  limits.address_max = 2;
  lab.config.box_connections_max = 100;
  http_server_free(lab.gate->server);
  lab.gate->server = http_server_new(&lab_loop, &limits, dispatch_request, lab.gate);
  box_is(BOX_RUNNING, 0);
  for (int i = 0; i < 2; i++) {
    inside[i] = service();
    client[i] = begin(8000, "/", "");
  }
  int third[2];
  lab_pair(third);
  assert_int_equal(http_server_adopt(lab.gate->server, third[1]), -EMFILE); /* two wait for a box that says nothing */
  close(third[0]);
  serve(inside[0]);
  assert_int_equal(lab_answer(client[0], &out), 200);
  client[2] = begin(8000, "/", ""); /* there is room for one more; it takes the first one's way in */
  serve(inside[0]);
  assert_int_equal(lab_answer(client[2], &out), 200);
  for (int i = 0; i < 3; i++)
    close(client[i]);
  close(inside[0]);
  close(inside[1]);
  settle();
}

static void questions_for_boxes_that_are_not_there_are_bounded(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 16);
  lab.gate->unknown.per_minute = 5;
  lab.status = -ENOENT;
  for (int i = 0; i < 5; i++)
    assert_int_equal(get(8000, "/", "", &out), 502);
  assert_int_equal(lab.requests, 5);
  assert_int_equal(get(8000, "/", "", &out), 429);
  assert_true(lab_says(&out, "Retry-After: "));
  assert_int_equal(lab.requests, 5); /* the warden is not asked */
  throttle_free(&lab.gate->unknown);
  lab.gate->unknown = (struct throttle){.per_minute = 5};
  for (int i = 0; i < 8; i++) { /* those that are there cost nothing */
    box_is(BOX_PAUSED, 0);
    assert_int_equal(get(8000, "/", "", &out), 502);
  }
  assert_int_equal(lab.requests, 13);
  throttle_free(&lab.gate->unknown);
}

static void a_box_that_exists_is_reached_whatever_others_of_the_address_have_guessed(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 16);
  struct err err = ERR_NONE;
  struct id_filter *ids = id_filter_new(&err);
  lab.gate->unknown.per_minute = 3;
  lab.status = -ENOENT;
  for (int i = 0; i < 3; i++)
    assert_int_equal(get(8000, "/", "", &out), 502);
  assert_int_equal(get(8000, "/", "", &out), 429);
  assert_int_equal(lab.requests, 3);
  lab.gate->ids = id_filter_attach(id_filter_fd(ids)); /* after the hello, which brought none */
  id_filter_add(ids, STR(BOX));
  for (int i = 0; i < 8; i++) {
    box_is(BOX_PAUSED, 0);
    assert_int_equal(get(8000, "/", "", &out), 502);
  }
  assert_int_equal(lab.requests, 11);
  id_filter_remove(ids, STR(BOX));
  assert_int_equal(get(8000, "/", "", &out), 429);
  assert_int_equal(lab.requests, 11);
  id_filter_free(steal(&lab.gate->ids));
  id_filter_free(ids);
  throttle_free(&lab.gate->unknown);
}

#define WHOLE(test) cmocka_unit_test_setup_teardown(test, lab_setup, lab_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      WHOLE(what_opens_the_api_does_not_reach_the_agent),
      WHOLE(the_control_planes_paths_of_the_agent_are_closed),
      WHOLE(a_box_that_is_not_there_is_said_to_be_so_exactly),
      WHOLE(the_cause_of_an_end_reaches_the_client),
      WHOLE(a_route_is_requested_once_and_again_while_the_box_is_held),
      WHOLE(private_ports_need_the_traffic_token),
      WHOLE(the_interpreter_of_a_secure_box_needs_the_access_token),
      WHOLE(an_idle_connection_is_used_again_for_its_own_port),
      WHOLE(an_idle_connection_that_the_service_closed_is_not_used),
      WHOLE(a_request_without_an_answer_yet_learns_why_the_box_ended),
      WHOLE(an_answer_under_way_is_cut_without_an_end),
      WHOLE(a_whole_answer_leaves_the_connection_open_when_the_box_ends),
      WHOLE(a_full_box_refuses_and_says_its_limit),
      WHOLE(a_paused_box_is_resumed_only_by_those_who_may),
      WHOLE(what_no_client_would_sign_counts_as_a_guess),
      WHOLE(the_cookies_of_a_box_are_its_hosts_alone),
      WHOLE(a_client_is_known_when_the_box_has_answered),
      WHOLE(questions_for_boxes_that_are_not_there_are_bounded),
      WHOLE(a_box_that_exists_is_reached_whatever_others_of_the_address_have_guessed),
      WHOLE(a_browser_sees_a_page_that_says_more),
      WHOLE(a_port_without_a_service_is_tried_for_a_second),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
