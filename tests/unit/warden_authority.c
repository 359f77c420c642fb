/* SPDX-License-Identifier: Apache-2.0 */
/* warden_authority.c - a gate that was taken over, on its link to the warden: it may ask what the edge needs, and what
 * it can show a key for; nothing else, and nothing in another team's name. The handlers, the catalog and the store are
 * the real ones. */
#include "unit.h"

#include "warden/box/box.h"
#include "warden/rpc/authority.h"
#include "warden/rpc/rpc.h"
#include "wire/api_key.h"
#include "warden/core/token_index.h"
#include "warden/core/warden_state.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>

#define SECRET "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char dir[] = "/tmp/cloche-unit-authority.XXXXXX";

struct lab {
  uv_loop_t loop;
  struct warden_config config;
  struct warden warden;
  int gate, root;
  struct ipc *gate_ipc; /* the warden's end */
  char team[2][40];     /* the gate was shown a key of the first one */
  uint8_t key[2][SHA256_LEN];
};
static struct lab lab;

static void open_team(struct catalog *c, int i, const char *name)
{
  struct err err = ERR_NONE;
  struct row_team t = {0};
  char text[KEY_TEXT], mask[64];
  snprintf(t.name, sizeof(t.name), "%s", name);
  assert_int_equal(catalog_team_put(c, &t, &err), 0);
  snprintf(lab.team[i], sizeof(lab.team[i]), "%s", t.id);
  key_make(text, lab.key[i], mask);
  assert_int_equal(
      catalog_key_add(c, str_of(t.id), STR("key"), str_make(lab.key[i], SHA256_LEN), str_of(mask), NULL, &err), 0);
}

static int open_line(enum peer_kind kind)
{
  int pair[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
  struct ipc *ipc = rpc_accept(&lab.warden, pair[0], kind);
  if (kind == PEER_GATE)
    lab.gate_ipc = ipc;
  fd_nonblock(pair[1]);
  return pair[1];
}

static int lab_open(void **state)
{
  struct err err = ERR_NONE;
  char path[128], first[KEY_TEXT];
  if (!mkdtemp(dir))
    return -1;
  uv_loop_init(&lab.loop);
  lab.config = (struct warden_config){.data = dir, .domain = "", .admin_token = "admin-token", .timeout_max_s = 3600};
  lab.warden = (struct warden){.config = &lab.config, .loop = &lab.loop};
  snprintf(lab.warden.secret, sizeof(lab.warden.secret), "%s", SECRET);
  snprintf(path, sizeof(path), "%s/db", dir);
  if (store_open(path, &lab.warden.store, &err) || catalog_open(lab.warden.store, &lab.warden.catalog, first, &err))
    return -1;
  open_team(lab.warden.catalog, 0, "shown");
  open_team(lab.warden.catalog, 1, "victim");
  lab.gate = open_line(PEER_GATE);
  lab.root = open_line(PEER_ROOT);
  return 0;
}

static int lab_close(void **state)
{
  close(lab.gate);
  close(lab.root);
  uv_run(&lab.loop, UV_RUN_NOWAIT);
  catalog_close(lab.warden.catalog);
  store_close(lab.warden.store);
  return path_remove_tree(AT_FDCWD, dir);
}

/* A running box without processes: as far as questions go there is no difference. */
static struct box *put_box(const char *id, int team, unsigned flags, size_t config)
{
  struct box *b = xcalloc(1, sizeof(*b));
  b->warden = &lab.warden;
  b->jail.pidfd = b->jail.netns = -1;
  snprintf(b->row.id, sizeof(b->row.id), "%s", id);
  memcpy(b->row.team, lab.team[team], sizeof(b->row.team));
  b->row.state = BOX_RUNNING;
  b->row.flags = flags;
  b->row.run = 1;
  b->row.config = xcalloc(1, config + 1);
  memset(b->row.config, 'c', config);
  b->row.init = xstrdup("{\"accessToken\":\"in-the-init\"}");
  b->row.allow = xstrdup("");
  b->row.deny = xstrdup("");
  map_put(&lab.warden.boxes, str_of(b->row.id), b);
  token_index_add(b);
  return b;
}

static void drop_box(struct box *b)
{
  map_del(&lab.warden.boxes, str_of(b->row.id));
  token_index_remove(b);
  free(b->row.config);
  free(b->row.init);
  free(b->row.allow);
  free(b->row.deny);
  free(b);
}

struct told {
  int status;
  size_t items, bytes;
  struct buf reply;
};

/* Reads until the reply to `id` comes. */
static void hear(int fd, uint64_t id, struct told *t)
{
  static _Alignas(8) char p[WIRE_MAX];
  *t = (struct told){.status = 1};
  buf_init(&t->reply, WIRE_MAX);
  for (int turns = 0; t->status == 1 && turns < 100000; turns++) {
    uv_run(&lab.loop, UV_RUN_NOWAIT);
    int got = -1;
    size_t n = 1;
    ssize_t k = fd_recv(fd, p, sizeof(p), &got, &n, MSG_DONTWAIT);
    if (n && got >= 0)
      close(got);
    struct str packet = {p, k > 0 ? (size_t)k : 0};
    if (k <= 0 || wire_check(packet) || wire_head(packet)->id != id)
      continue;
    t->bytes += packet.n;
    t->items += wire_head(packet)->type == WIRE_ITEM;
    if (wire_head(packet)->type != WIRE_REPLY)
      continue;
    t->status = wire_head(packet)->status;
    buf_adds(&t->reply, packet);
  }
  assert_int_not_equal(t->status, 1);
}

static void put_hash(struct buf *b, enum wire_tag tag, const uint8_t hash[SHA256_LEN])
{
  wire_put(b, tag, str_make(hash, SHA256_LEN));
}

static int ask(int fd, struct buf *b, struct told *t)
{
  static uint64_t ids;
  uint64_t id = ++ids;
  memcpy(b->p + offsetof(struct wire_head, id), &id, sizeof(id));
  assert_int_equal(send(fd, b->p, b->n, 0), b->n);
  hear(fd, id, t);
  int status = t->status;
  return status;
}

static int asked(int fd, struct buf *b)
{
  struct told t;
  int status = ask(fd, b, &t);
  buf_free(&t.reply);
  return status;
}

static const enum wire_type of_a_team[] = {
    WIRE_BOX_CREATE,         WIRE_BOX_LIST,        WIRE_BOX_KILL,        WIRE_BOX_TIMEOUT,     WIRE_BOX_PAUSE,
    WIRE_BOX_CONFIG,         WIRE_BOX_LOG,         WIRE_BOX_NET_LOG,     WIRE_BOX_USAGE,       WIRE_BOX_FORK,
    WIRE_USAGE_LATEST,       WIRE_SNAPSHOT,        WIRE_SNAPSHOT_LIST,   WIRE_TEMPLATE_LIST,   WIRE_TEMPLATE_FIND,
    WIRE_TEMPLATE_TAGS,      WIRE_TEMPLATE_BUILDS, WIRE_TEMPLATE_CHANGE, WIRE_TEMPLATE_DELETE, WIRE_TAG_PUT,
    WIRE_TAG_DELETE,         WIRE_BUILD_REQUEST,   WIRE_BUILD_START,     WIRE_BUILD_GET,       WIRE_BUILD_CANCEL,
    WIRE_FILE_LOOK,          WIRE_KEY_CREATE,      WIRE_KEY_LIST,        WIRE_KEY_RENAME,      WIRE_KEY_DELETE,
    WIRE_WEBHOOK_CREATE,     WIRE_WEBHOOK_LIST,    WIRE_WEBHOOK_GET,     WIRE_WEBHOOK_CHANGE,  WIRE_WEBHOOK_DELETE,
    WIRE_WEBHOOK_DELIVERIES, WIRE_WEBHOOK_STATS,
};

static void without_a_key_a_gate_asks_nothing_of_a_team(void **state)
{
  struct box *b = put_box("ivictim", 1, BOX_SECURE, 10);
  for (size_t i = 0; i < ARRAY_LEN(of_a_team); i++)
    for (int team = -1; team < 2; team++) {
      cleanup_buf struct buf p = BUF_INIT(4096);
      wire_begin(&p, of_a_team[i], 0, 0);
      wire_putz(&p, W_ID, "ivictim");
      if (team >= 0)
        wire_putz(&p, W_TEAM, lab.team[team]);
      assert_int_equal(asked(lab.gate, &p), -EACCES);
    }
  drop_box(b);
}

/* The cause of an end names the key to the team only: an id is no secret. */
static void the_name_of_a_key_is_told_to_its_team_only(void **state)
{
  static const struct {
    const char *id, *cause, *shown;
  } table[] = {{"ikilled", "killed: by API key 'ci-deploy'", "killed: by request"},
               {"iover", "timeout: its lifetime of 1 s was over", "timeout: its lifetime of 1 s was over"}};
  static const enum wire_type types[] = {WIRE_BOX_GET, WIRE_BOX_CONNECT, WIRE_BOX_DIAL};
  for (size_t i = 0; i < ARRAY_LEN(table); i++) {
    assert_int_equal(store_box_ended(lab.warden.store, table[i].id, lab.team[0], clock_wall_us(), table[i].cause, NULL),
                     0);
    for (size_t k = 0; k < 2 * ARRAY_LEN(types) - 1; k++) { /* dial: by nobody only */
      bool keyed = k >= ARRAY_LEN(types);
      struct told t;
      cleanup_buf struct buf p = BUF_INIT(4096);
      wire_begin(&p, types[k % ARRAY_LEN(types)], 0, 0);
      wire_putz(&p, W_ID, table[i].id);
      if (keyed) {
        put_hash(&p, W_PROOF, lab.key[0]);
        wire_putz(&p, W_TEAM, lab.team[0]);
      }
      assert_int_equal(ask(lab.gate, &p, &t), -ENOENT);
      struct str cause = wire_get(buf_str(&t.reply), W_CAUSE);
      assert_true(str_is(cause, keyed ? table[i].cause : table[i].shown));
      assert_true(wire_u64(buf_str(&t.reply), W_END, 0) > 0);
      buf_free(&t.reply);
    }
  }
}

static void a_key_opens_its_own_team_only(void **state)
{
  struct box *b = put_box("ivictim", 1, BOX_SECURE, 10);
  for (size_t i = 0; i < ARRAY_LEN(of_a_team); i++) {
    cleanup_buf struct buf p = BUF_INIT(4096);
    wire_begin(&p, of_a_team[i], 0, 0);
    wire_putz(&p, W_ID, "ivictim");
    wire_putz(&p, W_TEAM, lab.team[1]);
    put_hash(&p, W_PROOF, lab.key[0]);
    assert_int_equal(asked(lab.gate, &p), -EPERM);
  }
  static const enum wire_type about_a_box[] = {WIRE_BOX_GET,   WIRE_BOX_KILL,    WIRE_BOX_TIMEOUT,
                                               WIRE_BOX_PAUSE, WIRE_BOX_CONNECT, WIRE_BOX_CONFIG};
  for (size_t i = 0; i < ARRAY_LEN(about_a_box); i++) {
    cleanup_buf struct buf p = BUF_INIT(4096);
    wire_begin(&p, about_a_box[i], 0, 0);
    wire_putz(&p, W_ID, "ivictim");
    put_hash(&p, W_PROOF, lab.key[0]);
    assert_int_equal(asked(lab.gate, &p), -ENOENT);
  }
  drop_box(b);
}

static void what_is_not_in_the_table_is_roots_alone(void **state)
{
  static const enum wire_type of_root[] = {WIRE_BUILD_SHOW,     WIRE_GC, WIRE_BOX_TOKEN, WIRE_TEMPLATE_IMPORT,
                                           WIRE_TEMPLATE_STORE, 200,     4000000};
  for (size_t i = 0; i < ARRAY_LEN(of_root); i++) {
    cleanup_buf struct buf p = BUF_INIT(4096);
    wire_begin(&p, of_root[i], 0, 0);
    wire_putz(&p, W_ID, "ivictim");
    put_hash(&p, W_PROOF, lab.key[0]);
    put_hash(&p, W_ADMIN, lab.key[0]);
    assert_int_equal(asked(lab.gate, &p), -EPERM);
  }
  cleanup_buf struct buf p = BUF_INIT(4096);
  wire_begin(&p, WIRE_BOX_TOKEN, 0, 0);
  wire_putz(&p, W_ID, "ivictim");
  assert_int_equal(asked(lab.root, &p), 0);
}

static void a_type_without_a_row_is_unknown_to_root_too(void **state)
{
  cleanup_buf struct buf p = BUF_INIT(4096);
  wire_begin(&p, 200, 0, 0);
  assert_int_equal(asked(lab.root, &p), -ENOSYS);
}

static void administration_needs_the_administrators_token(void **state)
{
  static const enum wire_type of_admin[] = {WIRE_TEAM_LIST, WIRE_TEAM_KILL, WIRE_TEAM_PUT};
  uint8_t right[SHA256_LEN];
  sha256_of("admin-token", 11, right);
  for (size_t i = 0; i < ARRAY_LEN(of_admin); i++) {
    cleanup_buf struct buf p = BUF_INIT(4096);
    wire_begin(&p, of_admin[i], 0, 0);
    wire_putz(&p, W_TEAM, lab.team[1]);
    assert_int_equal(asked(lab.gate, &p), -EACCES);
    put_hash(&p, W_PROOF, lab.key[0]);
    assert_int_equal(asked(lab.gate, &p), -EACCES);
    cleanup_buf struct buf wrong = BUF_INIT(4096);
    wire_begin(&wrong, of_admin[i], 0, 0);
    put_hash(&wrong, W_ADMIN, lab.key[0]);
    assert_int_equal(asked(lab.gate, &wrong), -EACCES);
    cleanup_buf struct buf good = BUF_INIT(4096);
    wire_begin(&good, of_admin[i], 0, 0);
    wire_putz(&good, W_NAME, "a team");
    put_hash(&good, W_ADMIN, right);
    assert_int_equal(asked(lab.gate, &good), 0);
  }
  lab.config.admin_token = ""; /* none is set: the hash of nothing opens nothing */
  sha256_of("", 0, right);
  cleanup_buf struct buf p = BUF_INIT(4096);
  wire_begin(&p, WIRE_TEAM_LIST, 0, 0);
  put_hash(&p, W_ADMIN, right);
  assert_int_equal(asked(lab.gate, &p), -EACCES);
  lab.config.admin_token = "admin-token";
}

static void a_route_tells_no_token_and_the_owner_gets_both(void **state)
{
  struct box *b = put_box("imine", 0, BOX_SECURE | BOX_PRIVATE, 10);
  char access[TOKEN_TEXT], traffic[TOKEN_TEXT];
  token_make(STR(SECRET), TOKEN_ACCESS, STR("imine"), access);
  token_make(STR(SECRET), TOKEN_TRAFFIC, STR("imine"), traffic);
  struct told t;
  cleanup_buf struct buf p = BUF_INIT(4096);
  wire_begin(&p, WIRE_BOX_GET, 0, 0);
  wire_putz(&p, W_ID, "imine");
  assert_int_equal(ask(lab.gate, &p, &t), 0);
  struct str route = buf_str(&t.reply);
  assert_true(str_search(route, str_of(access)) < 0);
  assert_true(str_search(route, str_of(traffic)) < 0);
  assert_true(str_search(route, STR(SECRET)) < 0);
  assert_true(str_search(route, STR("in-the-init")) < 0);
  assert_non_null(wire_get(route, W_TEAM).p); /* gates count what each team has open; an id proves nothing */
  assert_int_equal(wire_get(route, W_TOKEN_HASH).n, SHA256_LEN);
  buf_free(&t.reply);
  put_hash(&p, W_PROOF, lab.key[0]);
  assert_int_equal(ask(lab.gate, &p, &t), 0);
  assert_true(str_is(wire_get(buf_str(&t.reply), W_TOKEN), access));
  assert_true(str_is(wire_get(buf_str(&t.reply), W_TRAFFIC), traffic));
  buf_free(&t.reply);
  drop_box(b);
}

static void traffic_may_wake_but_not_connect(void **state)
{
  struct box *b = put_box("ivictim", 1, BOX_SECURE, 10);
  for (unsigned mode = CONNECT_CONNECT; mode <= CONNECT_JOIN; mode++) {
    cleanup_buf struct buf p = BUF_INIT(4096);
    wire_begin(&p, WIRE_BOX_CONNECT, 0, 0);
    wire_putz(&p, W_ID, "ivictim");
    wire_put_u64(&p, W_MODE, mode);
    assert_int_equal(asked(lab.gate, &p), mode == CONNECT_TRAFFIC || mode == CONNECT_JOIN ? 0 : -EACCES);
  }
  drop_box(b);
}

static void an_id_of_another_team_can_not_be_taken_over(void **state)
{
  struct box *b = put_box("ivictim", 1, BOX_SECURE, 10);
  static const char *const ids[] = {"ivictim", "../../etc", "", "iABC", "i-1", "i/2"};
  for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
    cleanup_buf struct buf p = BUF_INIT(4096);
    wire_begin(&p, WIRE_BOX_CREATE, 0, 0);
    wire_putz(&p, W_ID, ids[i]);
    wire_putz(&p, W_REF, "base");
    put_hash(&p, W_PROOF, lab.key[0]);
    assert_int_equal(asked(lab.gate, &p), i ? -EINVAL : -EEXIST);
  }
  assert_ptr_equal(map_get(&lab.warden.boxes, STR("ivictim")), b);
  struct box *mine = put_box("imine", 0, BOX_SECURE, 10);
  static const struct {
    const char *ids, *build;
  } forks[] = {{"ivictim", "4f3c2b1a-0000-4000-8000-000000000001"},
               {"../x", "4f3c2b1a-0000-4000-8000-000000000001"},
               {"inew", "../../../etc/cron.d/x"}};
  for (size_t i = 0; i < ARRAY_LEN(forks); i++) {
    cleanup_buf struct buf p = BUF_INIT(4096);
    wire_begin(&p, WIRE_BOX_FORK, 0, 0);
    wire_putz(&p, W_ID, "imine");
    wire_putz(&p, W_REF, forks[i].ids);
    wire_putz(&p, W_BUILD, forks[i].build);
    put_hash(&p, W_PROOF, lab.key[0]);
    assert_int_equal(asked(lab.gate, &p), -EINVAL);
  }
  drop_box(mine);
  drop_box(b);
}

static void upload_links_carry_their_own_right(void **state)
{
  static const char hash[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
  uint64_t later = (uint64_t)clock_wall_us() / 1000000 + 60;
  char good[2 * SHA256_LEN + 1], old[2 * SHA256_LEN + 1];
  upload_sign(&lab.warden, str_of(lab.team[0]), STR(hash), later, good);
  upload_sign(&lab.warden, str_of(lab.team[0]), STR(hash), 1, old);
  const struct {
    const char *team, *signature;
    uint64_t expires;
    int status;
  } table[] = {
      {lab.team[0], good, later, 0}, {lab.team[1], good, later, -EPERM}, {lab.team[0], good, later + 1, -EPERM},
      {lab.team[0], old, 1, -EPERM}, {lab.team[0], "", later, -EPERM},   {"", good, later, -EPERM},
  };
  for (size_t i = 0; i < ARRAY_LEN(table); i++) {
    cleanup_buf struct buf p = BUF_INIT(4096);
    wire_begin(&p, WIRE_FILE_OPEN, 0, 0);
    wire_putz(&p, W_TEAM, table[i].team);
    wire_putz(&p, W_NAME, hash);
    wire_putz(&p, W_ID, "abcdefgh12");
    wire_put_u64(&p, W_TO, table[i].expires);
    wire_putz(&p, W_SIGNATURE, table[i].signature);
    put_hash(&p, W_PROOF, lab.key[1]);
    assert_int_equal(asked(lab.gate, &p), table[i].status);
  }
}

static void a_deleted_key_proves_nothing(void **state)
{
  struct err err = ERR_NONE;
  const struct row_key *k;
  uint8_t hash[SHA256_LEN];
  char text[KEY_TEXT], mask[64];
  key_make(text, hash, mask);
  assert_int_equal(catalog_key_add(lab.warden.catalog, str_of(lab.team[0]), STR("gone"), str_make(hash, SHA256_LEN),
                                   str_of(mask), &k, &err),
                   0);
  cleanup_buf struct buf p = BUF_INIT(4096);
  wire_begin(&p, WIRE_BOX_LIST, 0, 0);
  put_hash(&p, W_PROOF, hash);
  assert_int_equal(asked(lab.gate, &p), 0);
  char id[64];
  snprintf(id, sizeof(id), "%s", k->id);
  assert_int_equal(catalog_key_delete(lab.warden.catalog, str_of(lab.team[0]), str_of(id), &err), 0);
  assert_int_equal(asked(lab.gate, &p), -EACCES);
}

/* ---- who signed this? ---- */

static void signature_over(const char *before, const char *id, const char *expires, char out[64])
{
  char token[TOKEN_TEXT];
  uint8_t digest[SHA256_LEN];
  cleanup_buf struct buf text = BUF_INIT(1 << 17), b = BUF_INIT(128);
  token_make(STR(SECRET), TOKEN_ACCESS, str_of(id), token);
  buf_addz(&text, before);
  buf_addz(&text, token);
  buf_addz(&text, expires);
  sha256_of(text.p, text.n, digest);
  buf_addz(&b, "v1_");
  base64_add(&b, digest, sizeof(digest), false);
  str_copyz(buf_str(&b), out, 64);
}

static void signature_of(const char *id, const char *expires, char out[64])
{
  signature_over("/home/user/a:read:user:", id, expires, out);
}

static void put_text(struct buf *p, const char *text, const char *expires, const char *signature)
{
  wire_begin(p, WIRE_SIGNED_FIND, 0, 0);
  wire_putz(p, W_NAME, text);
  wire_putz(p, W_REF, expires);
  wire_putz(p, W_SIGNATURE, signature);
}

static void put_signed(struct buf *p, const char *expires, const char *signature)
{
  put_text(p, "/home/user/a:read:user:", expires, signature);
}

static void a_signature_leads_to_its_box_and_a_wrong_one_nowhere(void **state)
{
  struct box *boxes[1500];
  char id[24], signature[64];
  for (size_t i = 0; i < ARRAY_LEN(boxes); i++) {
    snprintf(id, sizeof(id), "ibox%zu", i);
    boxes[i] = put_box(id, (int)(i % 2), i == 700 ? 0 : BOX_SECURE, 10);
  }
  drop_box(boxes[3]); /* another one takes its place in the table */
  static const size_t wanted[] = {0, 1, 2, 4, 511, 512, 513, 1498, 1499};
  for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
    struct told t;
    cleanup_buf struct buf p = BUF_INIT(4096);
    snprintf(id, sizeof(id), "ibox%zu", wanted[i]);
    signature_of(id, i % 2 ? ":1900000000" : "", signature);
    put_signed(&p, i % 2 ? ":1900000000" : "", signature);
    assert_int_equal(ask(lab.gate, &p, &t), 0);
    assert_true(str_is(wire_get(buf_str(&t.reply), W_ID), id));
    buf_free(&t.reply);
  }
  static const char *const none[] = {"ibox3", "ibox700", "iother"};
  for (size_t i = 0; i < ARRAY_LEN(none); i++) {
    cleanup_buf struct buf p = BUF_INIT(4096);
    signature_of(none[i], "", signature);
    put_signed(&p, "", signature);
    assert_int_equal(asked(lab.gate, &p), -EACCES);
  }
  static const char *const broken[] = {"", "v1_", "v1_short", "v2_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "x"};
  for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
    cleanup_buf struct buf p = BUF_INIT(4096);
    put_signed(&p, "", broken[i]);
    assert_int_equal(asked(lab.gate, &p), -EACCES);
  }
  for (size_t i = 0; i < ARRAY_LEN(boxes); i++)
    if (i != 3)
      drop_box(boxes[i]);
}

static void put_boxes(struct box **boxes, size_t n)
{
  char id[24];
  for (size_t i = 0; i < n; i++) {
    snprintf(id, sizeof(id), "ibox%zu", i);
    boxes[i] = put_box(id, 0, BOX_SECURE, 10);
  }
}

static void drop_boxes(struct box **boxes, size_t n)
{
  for (size_t i = 0; i < n; i++)
    drop_box(boxes[i]);
}

static char *long_text(const char *begin, char fill, size_t n)
{
  char *p = xmalloc(n + 1);
  memset(p, fill, n);
  p[n] = 0;
  memcpy(p, begin, strlen(begin));
  return p;
}

/* All of them are signed well: what refuses them is that a try against every box would hash what a client without a key
 * chose, as long as it likes. */
static void only_texts_that_clients_write_are_searched_for(void **state)
{
  struct box *boxes[512];
  put_boxes(boxes, ARRAY_LEN(boxes));
  cleanup_free char *long_expiry = long_text(":", '7', 60 << 10);
  cleanup_free char *long_path = long_text("/", 'a', 60 << 10), *path = long_text("/", 'a', 4095);
  const struct {
    const char *text, *expires;
    int status;
  } table[] = {
      {"/a:read:user:", "", 0},
      {"/a:read:user:", ":1900000000", 0},
      {"/a:read:user:", ":18446744073709551615", 0},
      {path, "", 0},
      {"/a:read:user:", long_expiry, -EACCES},
      {"/a:read:user:", ":184467440737095516150", -EACCES},
      {"/a:read:user:", ":", -EACCES},
      {"/a:read:user:", "1900000000", -EACCES},
      {"/a:read:user:", ":-1", -EACCES},
      {"/a:read:user:", ":1 ", -EACCES},
      {"/a:read:user:", ":soon", -EACCES},
      {long_path, "", -EACCES},
  };
  for (size_t i = 0; i < ARRAY_LEN(table); i++) {
    char signature[64];
    cleanup_buf struct buf p = BUF_INIT(WIRE_MAX);
    signature_over(table[i].text, "ibox0", table[i].expires, signature);
    put_text(&p, table[i].text, table[i].expires, signature);
    assert_int_equal(asked(lab.gate, &p), table[i].status);
  }
  drop_boxes(boxes, ARRAY_LEN(boxes));
}

static size_t answers_waiting(void)
{
  _Alignas(8) char answer[4096];
  size_t n = 0;
  while (recv(lab.gate, answer, sizeof(answer), 0) > 0)
    n++;
  return n;
}

/* Questions arrive by the dozen in one turn of the loop and share what one turn may spend. */
static void a_turn_of_the_loop_has_one_budget_for_all_searches(void **state)
{
  struct box *boxes[SEEK_SLICE - 8];
  char signature[64];
  put_boxes(boxes, ARRAY_LEN(boxes));
  signature_of("iother", "", signature);
  for (uint64_t i = 0; i < 32; i++) {
    cleanup_buf struct buf p = BUF_INIT(4096);
    put_signed(&p, "", signature);
    memcpy(p.p + offsetof(struct wire_head, id), &(uint64_t){2000000 + i}, sizeof(uint64_t));
    assert_int_equal(send(lab.gate, p.p, p.n, 0), p.n);
  }
  size_t answered = 0, turns = 0;
  for (; answered < 32 && turns < 1000; turns++) {
    uv_run(&lab.loop, UV_RUN_NOWAIT);
    size_t n = answers_waiting();
    assert_true(n <= 2);
    answered += n;
  }
  assert_int_equal(answered, 32);
  assert_true(turns >= 31);
  drop_boxes(boxes, ARRAY_LEN(boxes));
}

/* No request waits for another's search for longer than a slice takes, and the number that waits is bounded. */
static void a_flood_of_searches_is_refused_and_hinders_nobody(void **state)
{
  struct box *boxes[1500];
  char id[24], signature[64];
  for (size_t i = 0; i < ARRAY_LEN(boxes); i++) {
    snprintf(id, sizeof(id), "ibox%zu", i);
    boxes[i] = put_box(id, 0, BOX_SECURE, 10);
  }
  signature_of("iother", "", signature);
  size_t refused = 0, wrong = 0;
  cleanup_buf struct buf p = BUF_INIT(4096);
  for (uint64_t i = 0; i < 200; i++) {
    put_signed(&p, "", signature);
    memcpy(p.p + offsetof(struct wire_head, id), &(uint64_t){1000000 + i}, sizeof(uint64_t));
    assert_int_equal(send(lab.gate, p.p, p.n, 0), p.n);
  }
  for (int turns = 0; refused + wrong < 200 && turns < 100000; turns++) {
    _Alignas(8) char answer[4096];
    uv_run(&lab.loop, UV_RUN_NOWAIT);
    for (ssize_t k; (k = recv(lab.gate, answer, sizeof(answer), 0)) > 0;) {
      int status = wire_head((struct str){answer, (size_t)k})->status;
      refused += status == -EAGAIN;
      wrong += status == -EACCES;
    }
  }
  assert_int_equal(refused + wrong, 200);
  assert_true(refused > 0);
  assert_true(wrong >= SEEK_MAX);
  for (size_t i = 0; i < ARRAY_LEN(boxes); i++)
    drop_box(boxes[i]);
}

/* ---- long answers ---- */

/* 1,000 boxes with 100 KB of settings each: more than any link holds. The asker gets all of them, and who asks
 * meanwhile an answer. */
static void a_list_larger_than_the_link_comes_whole(void **state)
{
  struct box *boxes[1000];
  char id[24];
  for (size_t i = 0; i < ARRAY_LEN(boxes); i++) {
    snprintf(id, sizeof(id), "ibox%zu", i);
    boxes[i] = put_box(id, 0, BOX_SECURE, 100000);
  }
  cleanup_buf struct buf p = BUF_INIT(4096);
  wire_begin(&p, WIRE_BOX_LIST, 777000, 0);
  put_hash(&p, W_PROOF, lab.key[0]);
  assert_int_equal(send(lab.gate, p.p, p.n, 0), p.n);
  for (int i = 0; i < 50; i++) /* nobody reads */
    uv_run(&lab.loop, UV_RUN_NOWAIT);
  assert_true(ipc_queued(lab.gate_ipc) < 2 * LINK_PACE);
  wire_begin(&p, WIRE_STATUS, 0, 0);
  assert_int_equal(asked(lab.root, &p), 0);
  drop_box(boxes[999]); /* it ends while the list is told */
  struct told t;
  hear(lab.gate, 777000, &t);
  assert_int_equal(t.status, 0);
  assert_true(t.items >= 999);
  assert_true(t.bytes > 99 * 1000000);
  buf_free(&t.reply);
  for (size_t i = 0; i < 999; i++)
    drop_box(boxes[i]);
}

static void a_gate_signs_in_by_a_code_and_only_once(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  struct told t;
  char text[KEY_TEXT], mask[KEY_MASK_SIZE];
  uint8_t code[SHA256_LEN], key[SHA256_LEN];
  lab.config.console_code_s = 60;
  lab.config.console_session_h = 1;
  wire_begin(&b, WIRE_LOGIN_CODE, 0, 0);
  assert_true(asked(lab.gate, &b) < 0);
  wire_begin(&b, WIRE_LOGIN_CODE, 0, 0); /* a key makes codes of its own team only */
  put_hash(&b, W_PROOF, lab.key[0]);
  wire_putz(&b, W_TEAM, lab.team[1]);
  assert_int_equal(asked(lab.gate, &b), -EPERM);
  wire_begin(&b, WIRE_LOGIN_CODE, 0, 0);
  put_hash(&b, W_PROOF, lab.key[1]);
  assert_int_equal(ask(lab.gate, &b, &t), 0);
  struct str shown = wire_get(buf_str(&t.reply), W_SECRET);
  sha256_of(shown.p, shown.n, code);
  buf_free(&t.reply);
  key_make(text, key, mask);
  for (int turn = 0; turn < 2; turn++) {
    wire_begin(&b, WIRE_LOGIN, 0, 0);
    put_hash(&b, W_SECRET, code);
    put_hash(&b, W_KEYHASH, key);
    wire_putz(&b, W_MASK, mask);
    assert_int_equal(asked(lab.gate, &b), turn ? -EACCES : 0);
  }
  assert_string_equal(catalog_team_by_key(lab.warden.catalog, str_make(key, sizeof(key)))->id, lab.team[1]);
  free(lab.warden.login_codes);
  lab.warden.login_codes = NULL;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_a_key_a_gate_asks_nothing_of_a_team),
      cmocka_unit_test(the_name_of_a_key_is_told_to_its_team_only),
      cmocka_unit_test(a_key_opens_its_own_team_only),
      cmocka_unit_test(what_is_not_in_the_table_is_roots_alone),
      cmocka_unit_test(a_type_without_a_row_is_unknown_to_root_too),
      cmocka_unit_test(administration_needs_the_administrators_token),
      cmocka_unit_test(a_route_tells_no_token_and_the_owner_gets_both),
      cmocka_unit_test(traffic_may_wake_but_not_connect),
      cmocka_unit_test(an_id_of_another_team_can_not_be_taken_over),
      cmocka_unit_test(upload_links_carry_their_own_right),
      cmocka_unit_test(a_deleted_key_proves_nothing),
      cmocka_unit_test(a_gate_signs_in_by_a_code_and_only_once),
      cmocka_unit_test(a_signature_leads_to_its_box_and_a_wrong_one_nowhere),
      cmocka_unit_test(only_texts_that_clients_write_are_searched_for),
      cmocka_unit_test(a_turn_of_the_loop_has_one_budget_for_all_searches),
      cmocka_unit_test(a_flood_of_searches_is_refused_and_hinders_nobody),
      cmocka_unit_test(a_list_larger_than_the_link_comes_whole),
  };
  return cmocka_run_group_tests(tests, lab_open, lab_close);
}
