/* SPDX-License-Identifier: Apache-2.0 */
/* warden_egress.c - policies of boxes at the egress gateway: the test is the gateway, at the other end of the link. And
 * their settings in the store: sealed, and closed where they can't be read. */
#include "store_lab.h"

#include "warden/core/box_egress.h"
#include "warden/core/box_state.h"
#include "warden/core/warden_state.h"
#include "warden/db/box_egress_store.h"
#include "warden/egress/keep.h"
#include "warden/egress/policies.h"
#include "warden/secret/secrets.h"
#include "wire/egress_policy.h"
#include <sys/socket.h>
#include <unistd.h>

#define TEAM  "00000000-0000-4000-8000-000000000001"
#define OTHER "00000000-0000-4000-8000-000000000002"

struct lab {
  uv_loop_t loop;
  struct warden_config config;
  struct warden warden;
  struct box boxes[3];
  char key_file[DATA_PATH_SIZE];
  int far; /* the gateway's end */
  int result, calls;
  char message[512];
};

static struct lab opened[9]; /* one per test */
static size_t nopened;

/* ---- what a test has ---- */

static struct box_egress *settings(bool with_secret)
{
  struct egress_piece pieces[] = {{.kind = EGRESS_LITERAL, .text = STR("Bearer ")},
                                  {.kind = EGRESS_SECRET, .text = STR("key")}};
  struct egress_header header = {STR("Authorization"), pieces, with_secret ? 2 : 1};
  struct egress_host host = {STR("api.example.com"), &header, 1};
  struct egress_secret secret = {.name = STR("key"), .missing = true};
  struct egress_policy p = {.hosts = &host,
                            .nhosts = 1,
                            .secrets = &secret,
                            .nsecrets = with_secret,
                            .ca_cert = STR("-"),
                            .ca_key = STR("-")};
  cleanup_buf struct buf packed = BUF_INIT(EGRESS_POLICY_MAX);
  struct box_egress *e = NULL;
  struct err err = ERR_NONE;
  egress_policy_pack(&packed, &p);
  if (box_egress_read(buf_str(&packed), STR_NONE, &e, &err))
    fail_msg("%s", err.msg);
  buf_addz(&e->cert, "CERT");
  buf_addz(&e->key, "KEY");
  return e;
}

static void name_box(struct lab *l, struct box *b, const char *id, const char *team)
{
  *b = (struct box){.warden = &l->warden};
  snprintf(b->row.id, sizeof(b->row.id), "%s", id);
  snprintf(b->row.team, sizeof(b->row.team), "%s", team);
  map_put(&l->warden.boxes, str_of(id), b);
}

/* Box 0 names a secret, box 1 does not, box 2 is another team's and names one. Never closed: policies stay to the end
 * of a process. */
static struct lab *lab_open(const char *name)
{
  struct lab *l = &opened[nopened++];
  struct err err = ERR_NONE;
  uv_loop_init(&l->loop);
  l->warden = (struct warden){.config = &l->config, .loop = &l->loop, .store = fresh(name)};
  l->config.egress_s = 1;
  l->config.team_secrets_max = 10;
  l->config.data = dir;
  snprintf(l->key_file, sizeof(l->key_file), "%s/%s.key", dir, name);
  l->config.secrets_key_file = l->key_file;
  assert_int_equal(secrets_open(&l->warden, &err), 0);
  policies_open(&l->warden);
  for (int i = 0; i < 3; i++) {
    name_box(l, &l->boxes[i], ((const char *[]){"ibox0", "ibox1", "ibox2"})[i], i == 2 ? OTHER : TEAM);
    l->boxes[i].egress = settings(i != 1);
  }
  l->far = -1;
  return l;
}

static void link_up(struct lab *l)
{
  int pair[2];
  if (l->far >= 0)
    close(l->far);
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
  l->far = pair[1];
  policies_link(&l->warden, pair[0]);
}

static void turn(struct lab *l)
{
  for (int i = 0; i < 5; i++)
    uv_run(&l->loop, UV_RUN_NOWAIT);
}

struct told {
  enum egress_type type; /* 0: nothing came */
  struct egress_set_body set;
  bool missing;
  char value[64]; /* of the secret */
};

static void read_policy(int fd, struct told *t)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  cleanup_buf struct buf text = BUF_INIT(EGRESS_POLICY_MAX);
  struct egress_policy p;
  struct err err = ERR_NONE;
  assert_true(fd >= 0);
  assert_int_equal(buf_reserve(&text, t->set.length), 0);
  assert_int_equal(pread(fd, text.p, t->set.length, 0), t->set.length);
  if (egress_policy_read(&a, str_make(text.p, t->set.length), &p, &err))
    fail_msg("%s", err.msg);
  assert_string_equal(p.box, t->set.box);
  assert_true(str_is(p.ca_key, "KEY"));
  t->missing = p.nsecrets && p.secrets[0].missing;
  if (p.nsecrets)
    str_copyz(p.secrets[0].value, t->value, sizeof(t->value));
  close(fd);
}

static struct told next(struct lab *l)
{
  char packet[EGRESS_PACKET_MAX];
  struct told t = {0};
  union egress_body body;
  struct str text;
  int fd = -1;
  size_t nfds = 1;
  turn(l);
  ssize_t n = fd_recv(l->far, packet, sizeof(packet), &fd, &nfds, MSG_DONTWAIT);
  if (n <= 0)
    return t;
  assert_int_equal(egress_packet_read(str_make(packet, (size_t)n), &t.type, &body, &text), 0);
  if (t.type == EGRESS_SET || t.type == EGRESS_REMOVE)
    t.set = body.set;
  if (t.type == EGRESS_SET)
    read_policy(nfds ? fd : -1, &t);
  return t;
}

static void answer(struct lab *l, uint64_t generation, int status, const char *why)
{
  cleanup_buf struct buf packet = BUF_INIT(EGRESS_PACKET_MAX);
  union egress_body body = {.applied = {.generation = generation, .status = status}};
  egress_packet(&packet, EGRESS_APPLIED, &body, str_of(why));
  assert_int_equal(send(l->far, packet.p, packet.n, 0), packet.n);
  turn(l);
}

static void on_done(void *arg, int result, const struct err *err)
{
  struct lab *l = arg;
  l->calls++;
  l->result = result;
  snprintf(l->message, sizeof(l->message), "%s", result ? err->msg : "");
}

static void wait_done(struct lab *l, int64_t ms)
{
  for (int64_t until = clock_mono_us() + ms * 1000; !l->calls && clock_mono_us() < until;) {
    turn(l);
    usleep(1000);
  }
}

/* ---- policies ---- */

static void a_link_gets_all_that_are_wanted_and_then_the_end(void **state)
{
  struct lab *l = lab_open("link");
  uint64_t last = 0;
  policy_want(&l->boxes[0]);
  policy_want(&l->boxes[1]);
  for (int i = 0; i < 2; i++) {
    link_up(l);
    struct told a = next(l), b = next(l), end = next(l);
    assert_int_equal(a.type, EGRESS_SET);
    assert_int_equal(b.type, EGRESS_SET);
    assert_string_not_equal(a.set.box, b.set.box);
    assert_true(a.set.generation > last);
    assert_true(b.set.generation > a.set.generation);
    assert_int_equal(end.type, EGRESS_SYNC);
    assert_int_equal(next(l).type, 0);
    last = b.set.generation;
  }
}

static void a_box_waits_for_the_gateway_s_word_on_its_own_generation(void **state)
{
  struct lab *l = lab_open("wait");
  link_up(l);
  assert_int_equal(next(l).type, EGRESS_SYNC);
  policy_apply(&l->boxes[1], on_done, l);
  struct told t = next(l);
  assert_int_equal(t.type, EGRESS_SET);
  answer(l, t.set.generation - 1, 0, "");
  assert_int_equal(l->calls, 0);
  answer(l, t.set.generation, 0, "");
  assert_int_equal(l->calls, 1);
  assert_int_equal(l->result, 0);
  answer(l, t.set.generation, 0, ""); /* said twice */
  assert_int_equal(l->calls, 1);
  policy_apply(&l->boxes[1], on_done, l);
  answer(l, next(l).set.generation, -EINVAL, "of no use");
  assert_int_equal(l->calls, 2);
  assert_int_equal(l->result, -EIO);
  assert_non_null(strstr(l->message, "of no use"));
}

static void without_a_gateway_the_wait_has_an_end(void **state)
{
  struct lab *l = lab_open("late");
  policy_apply(&l->boxes[1], on_done, l);
  turn(l);
  assert_int_equal(l->calls, 0);
  wait_done(l, 5000);
  assert_int_equal(l->result, -ESHUTDOWN);
  assert_non_null(strstr(l->message, "egress_seconds"));
}

static void a_gateway_that_comes_in_time_ends_the_wait(void **state)
{
  struct lab *l = lab_open("intime");
  policy_apply(&l->boxes[1], on_done, l);
  link_up(l);
  struct told t = next(l);
  assert_int_equal(t.type, EGRESS_SET);
  answer(l, t.set.generation, 0, "");
  assert_int_equal(l->calls, 1);
  assert_int_equal(l->result, 0);
}

static void what_was_removed_is_not_sent_again(void **state)
{
  struct lab *l = lab_open("remove");
  link_up(l);
  next(l);
  policy_want(&l->boxes[1]);
  struct told set = next(l);
  policy_remove(&l->boxes[1]);
  struct told gone = next(l);
  assert_int_equal(gone.type, EGRESS_REMOVE);
  assert_true(gone.set.generation > set.set.generation);
  assert_int_equal(gone.set.length, 0);
  policy_remove(&l->boxes[1]);
  assert_int_equal(next(l).type, 0);
  policy_want(&l->boxes[0]);
  policy_remove(&l->boxes[0]); /* before it was sent */
  assert_int_equal(next(l).type, EGRESS_REMOVE);
  link_up(l);
  assert_int_equal(next(l).type, EGRESS_SYNC);
}

static void change_secret(struct lab *l, const char *team, const char *value)
{
  struct err err = ERR_NONE;
  struct row_secret row;
  if (!store_secret_find(l->warden.store, team, "key", &row)) {
    assert_int_equal(secret_delete(&l->warden, &row, &err), 0);
    row_secret_free(&row);
  }
  if (!value)
    return;
  row = (struct row_secret){.metadata = xstrdup("{}")};
  snprintf(row.id, sizeof(row.id), "sec_%.8s%.4s", team + 28, value);
  snprintf(row.team, sizeof(row.team), "%s", team);
  snprintf(row.name, sizeof(row.name), "key");
  if (secret_create(&l->warden, &row, str_of(value), &err))
    fail_msg("%s", err.msg);
  row_secret_free(&row);
}

static void a_changed_secret_is_sent_to_the_boxes_of_its_team_that_name_one(void **state)
{
  struct lab *l = lab_open("secret");
  for (int i = 0; i < 3; i++)
    policy_want(&l->boxes[i]);
  link_up(l);
  uint64_t last = 0;
  for (struct told t; (t = next(l)).type == EGRESS_SET; last = t.set.generation)
    assert_int_equal(t.missing, strcmp(t.set.box, "ibox1") != 0);
  change_secret(l, TEAM, "first");
  struct told t = next(l);
  assert_int_equal(t.type, EGRESS_SET);
  assert_string_equal(t.set.box, "ibox0");
  assert_true(t.set.generation > last);
  assert_string_equal(t.value, "first");
  assert_int_equal(next(l).type, 0);
  change_secret(l, TEAM, NULL);
  t = next(l);
  assert_int_equal(t.type, EGRESS_SET);
  assert_true(t.missing);
  change_secret(l, OTHER, "theirs");
  t = next(l);
  assert_string_equal(t.set.box, "ibox2");
  assert_string_equal(t.value, "theirs");
  assert_int_equal(next(l).type, 0);
  policy_remove(&l->boxes[0]);
  assert_int_equal(next(l).type, EGRESS_REMOVE);
  change_secret(l, TEAM, "second");
  assert_int_equal(next(l).type, 0);
}

/* ---- in the store ---- */

static void settings_are_read_back_for_their_own_box_alone(void **state)
{
  struct lab *l = lab_open("kept");
  struct box again, thief;
  struct err err = ERR_NONE;
  struct row_box_egress row;
  cleanup_buf struct buf sealed = BUF_INIT(1 << 20);
  assert_int_equal(egress_keep(&l->boxes[0], &err), 0);
  name_box(l, &again, "ibox0", TEAM);
  assert_int_equal(egress_recall(&again, &err), 0);
  assert_true(str_eq(buf_str(&again.egress->settings), buf_str(&l->boxes[0].egress->settings)));
  assert_true(str_is(buf_str(&again.egress->key), "KEY"));
  assert_true(again.egress->rules && again.egress->secrets && !again.egress->proxy && !again.egress->unread);
  assert_int_equal(store_box_egress_get(l->warden.store, "ibox0", row.key, &sealed), 0);
  assert_true(str_search(buf_str(&sealed), STR("api.example.com")) < 0);
  snprintf(row.box, sizeof(row.box), "ibox9");
  row.sealed = buf_str(&sealed);
  assert_int_equal(store_box_egress_put(l->warden.store, &row, &err), 0);
  name_box(l, &thief, "ibox9", TEAM);
  assert_int_equal(egress_recall(&thief, &err), -ESHUTDOWN);
  assert_true(thief.egress->unread);
  box_egress_free(thief.egress);
  box_egress_free(steal(&again.egress));
  assert_int_equal(egress_keep(&again, &err), 0); /* it has none any more */
  assert_int_equal(egress_recall(&again, &err), 0);
  assert_null(again.egress);
}

static void rotated(struct warden *w, const struct err *err, uint64_t resealed, void *arg)
{
  ((struct lab *)arg)->calls++;
  ((struct lab *)arg)->result = err ? err->code : 0;
}

static void another_master_key_takes_them_over(void **state)
{
  struct lab *l = lab_open("rotated");
  struct err err = ERR_NONE;
  struct box b;
  char before[SEAL_KEY_SIZE], id[BOX_ID_SIZE];
  snprintf(before, sizeof(before), "%s", secrets_key(&l->warden));
  for (int i = 0; i < 20; i++) { /* more than are done at once */
    snprintf(id, sizeof(id), "i%02d", i);
    name_box(l, &b, id, TEAM);
    b.egress = settings(true);
    assert_int_equal(egress_keep(&b, &err), 0);
    box_egress_free(b.egress);
  }
  assert_int_equal(secrets_rotate(&l->warden, rotated, l, &err), 0);
  wait_done(l, 20000);
  assert_int_equal(l->calls, 1);
  assert_int_equal(l->result, 0);
  assert_string_not_equal(secrets_key(&l->warden), before);
  for (int i = 0; i < 20; i++) {
    char key[SEAL_KEY_SIZE];
    cleanup_buf struct buf sealed = BUF_INIT(1 << 20);
    snprintf(id, sizeof(id), "i%02d", i);
    assert_int_equal(store_box_egress_get(l->warden.store, id, key, &sealed), 0);
    assert_string_equal(key, secrets_key(&l->warden));
    name_box(l, &b, id, TEAM);
    assert_int_equal(egress_recall(&b, &err), 0);
    box_egress_free(b.egress);
    map_del(&l->warden.boxes, str_of(id));
  }
}

/* Nothing goes out plainly meanwhile, and nothing is overwritten. */
static void without_the_master_key_a_box_is_closed_until_it_is_back(void **state)
{
  struct lab *l = lab_open("closed");
  struct box *b = &l->boxes[0];
  struct jail_net net = {0};
  struct err err = ERR_NONE;
  char away[DATA_PATH_SIZE + 8];
  assert_int_equal(egress_keep(b, &err), 0);
  snprintf(away, sizeof(away), "%s.away", l->key_file);
  assert_int_equal(rename(l->key_file, away), 0);
  secrets_close(&l->warden);
  assert_int_equal(secrets_open(&l->warden, &err), 0); /* as after a restart */
  assert_int_equal(access(l->key_file, F_OK), -1);
  box_egress_free(steal(&b->egress));
  assert_int_equal(egress_recall(b, &err), -ESHUTDOWN);
  box_egress_turn(b->egress, &net);
  assert_int_equal(net.egress, JAIL_EGRESS_TCP);
  assert_false(net.quic);
  assert_int_equal(egress_keep(b, &err), -ESHUTDOWN);
  link_up(l);
  next(l);
  policy_apply(b, on_done, l);
  wait_done(l, 5000);
  assert_int_equal(l->result, -ESHUTDOWN);
  assert_non_null(strstr(l->message, "cloche secret check"));
  assert_int_equal(next(l).type, 0);
  assert_int_equal(rename(away, l->key_file), 0);
  for (int i = 0; i < 50 && b->egress->unread; i++) { /* the key is looked for once a second */
    usleep(100000);
    policy_apply(b, on_done, l);
  }
  assert_int_equal(next(l).type, EGRESS_SET);
  assert_false(b->egress->unread);
  assert_true(b->egress->wanted);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_link_gets_all_that_are_wanted_and_then_the_end),
      cmocka_unit_test(a_box_waits_for_the_gateway_s_word_on_its_own_generation),
      cmocka_unit_test(without_a_gateway_the_wait_has_an_end),
      cmocka_unit_test(a_gateway_that_comes_in_time_ends_the_wait),
      cmocka_unit_test(what_was_removed_is_not_sent_again),
      cmocka_unit_test(a_changed_secret_is_sent_to_the_boxes_of_its_team_that_name_one),
      cmocka_unit_test(settings_are_read_back_for_their_own_box_alone),
      cmocka_unit_test(another_master_key_takes_them_over),
      cmocka_unit_test(without_the_master_key_a_box_is_closed_until_it_is_back),
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
