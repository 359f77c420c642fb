/* SPDX-License-Identifier: Apache-2.0 */
/* gate_routing.c - which box a request means, what a listing asks for, and who gets a page. */
#include "unit.h"

#include "gate/edge/edge.h"
#include "gate/api/list_query.h"
#include "gate/edge/edge_target.h"

static void hosts_name_boxes(void **state)
{
  static const struct {
    const char *host, *box; /* NULL: none */
    unsigned port;
  } table[] = {
      {"49983-iabc.localhost", "iabc", 49983},
      {"8000-iabc.box.test:8443", "iabc", 8000},
      {"8000-iabc-6532622b.box.test", "iabc", 8000},
      {"8000-iabc-a-b-c.box.test", "iabc", 8000},
      {"8000-iabc", NULL, 0},
      {"0-iabc.x", NULL, 0},
      {"65536-iabc.x", NULL, 0},
      {"http-iabc.x", NULL, 0},
      {"-iabc.x", NULL, 0},
      {"8000-.x", NULL, 0},
      {"8000-iABC.x", NULL, 0},
      {"8000-i_b.x", NULL, 0},
      {"127.0.0.1:3000", NULL, 0},
      {"api.box.test", NULL, 0},
      {"", NULL, 0},
  };
  for (size_t i = 0; i < ARRAY_LEN(table); i++) {
    struct edge_target t = {0};
    bool named = target_from_host(str_of(table[i].host), &t);
    assert_int_equal(named, table[i].box != NULL);
    if (named) {
      assert_string_equal(t.box, table[i].box);
      assert_int_equal(t.port, table[i].port);
    }
  }
}

static void paths_name_boxes(void **state)
{
  struct edge_target t = {0};
  assert_true(target_from_path(STR("/box/iabc/8000/a/b"), &t));
  assert_string_equal(t.box, "iabc");
  assert_int_equal(t.port, 8000);
  assert_int_equal(t.skip, strlen("/box/iabc/8000"));
  assert_true(target_from_path(STR("/box/iabc/80"), &t));
  static const char *const none[] = {"/box/iabc",      "/box/iabc/",  "/box//80/", "/box/iabc/http/",
                                     "/boxes/iabc/80", "/box/../80/", "/"};
  for (size_t i = 0; i < ARRAY_LEN(none); i++)
    assert_false(target_from_path(str_of(none[i]), &t));
}

static void headers_name_boxes(void **state)
{
  struct edge_target t = {0};
  assert_true(target_from_headers(STR("iabc-6532622b"), STR("49999"), &t));
  assert_string_equal(t.box, "iabc");
  assert_false(target_from_headers(STR("iabc"), STR_NONE, &t));
  assert_false(target_from_headers(STR_NONE, STR("80"), &t));
  assert_false(target_from_headers(STR("../x"), STR("80"), &t));
  char long_name[80];
  memset(long_name, 'a', sizeof(long_name));
  assert_false(target_from_headers((struct str){long_name, sizeof(long_name)}, STR("80"), &t));
}

/* As it looks once the query's own layer is off. */
static void metadata_is_encoded_twice_more(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct pair p[2];
  assert_int_equal(metadata_read(&a, STR("a%2520b=x%2526y"), p, 2), 1);
  assert_true(str_is(p[0].key, "a b"));
  assert_true(str_is(p[0].value, "x&y"));
  assert_int_equal(metadata_read(&a, STR("user=me&app=prod"), p, 2), 2);
  assert_true(str_is(p[1].value, "prod"));
  assert_int_equal(metadata_read(&a, STR("k="), p, 2), 1);
  assert_int_equal(p[0].value.n, 0);
  static const char *const bad[] = {"k", "a=b=c", "a=1&b", "a=1&b=2&c=3", "%zz=1", "a=%25z", "&"};
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    assert_true(metadata_read(&a, str_of(bad[i]), p, 2) < 0);
}

static int order(const void *a, const void *b)
{
  return page_key_order(a, b);
}

static void pages_are_newest_first_and_ties_go_by_id(void **state)
{
  struct page_key k[] = {{5, STR("b")}, {9, STR("z")}, {5, STR("a")}, {1, STR("c")}};
  qsort(k, ARRAY_LEN(k), sizeof(k[0]), order);
  static const char *const want[] = {"z", "a", "b", "c"};
  for (size_t i = 0; i < ARRAY_LEN(k); i++)
    assert_true(str_is(k[i].id, want[i]));
}

static void a_page_key_belongs_to_its_order(void **state)
{
  cleanup_buf struct buf up = BUF_INIT(256), down = BUF_INIT(256);
  struct page_key k = {1767323045123456, STR("i1a2b3")}, back;
  page_key_put(&down, &k, false);
  page_key_put(&up, &k, true);
  assert_int_equal(page_key_read(buf_str(&down), false, &back), 0);
  assert_true(back.us == k.us && str_eq(back.id, k.id));
  assert_int_equal(page_key_read(buf_str(&up), true, &back), 0);
  assert_true(back.us == k.us && str_eq(back.id, k.id));
  struct page_key build = {7, STR("391b03d6-06d0-46ac-99ce-e2daa119b53e")};
  cleanup_buf struct buf of_build = BUF_INIT(256);
  page_key_put(&of_build, &build, false);
  assert_int_equal(page_key_read(buf_str(&of_build), false, &back), 0);
  assert_true(str_eq(back.id, build.id));
  assert_int_equal(page_key_read(buf_str(&down), true, &back), -EINVAL);
  assert_int_equal(page_key_read(buf_str(&up), false, &back), -EINVAL);
  static const char *const bad[] = {"", "__", "1__", "__a", "x__a", "1__a__desc", "99999999999999999999__a", "1_a"};
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    assert_int_equal(page_key_read(str_of(bad[i]), false, &back), -EINVAL);
}

static bool page_for(const char *agent, const char *accept, const char *mode, const char *with)
{
  struct http_header h[] = {{STR("User-Agent"), str_of(agent)},
                            {STR("Accept"), str_of(accept)},
                            {STR("Sec-Fetch-Mode"), str_of(mode)},
                            {STR("X-Requested-With"), str_of(with)}};
  struct http_header given[4];
  size_t n = 0;
  for (size_t i = 0; i < ARRAY_LEN(h); i++)
    if (h[i].value.p)
      given[n++] = h[i];
  struct http_head head = {.headers = given, .nheaders = n};
  return edge_wants_page(&head);
}

static void who_gets_a_page(void **state)
{
  static const char firefox[] = "Mozilla/5.0 Firefox/130.0";
  assert_true(page_for(firefox, "text/html", NULL, NULL));
  assert_true(page_for(firefox, NULL, NULL, NULL));
  assert_true(page_for("CHROME", "text/html,application/json", NULL, NULL));
  assert_true(page_for(firefox, NULL, "navigate", "XMLHttpRequest"));
  assert_false(page_for(firefox, "application/json", NULL, NULL));
  assert_false(page_for(firefox, "text/html", "cors", NULL));
  assert_false(page_for(firefox, "text/html", "websocket", NULL));
  assert_false(page_for(firefox, "text/html", "same-origin", NULL));
  assert_false(page_for(firefox, NULL, NULL, "XMLHttpRequest"));
  assert_false(page_for("node", "text/html", NULL, NULL));
  assert_false(page_for(NULL, NULL, NULL, NULL));
  char late[1024];
  memset(late, 'x', sizeof(late));
  snprintf(late + 600, sizeof(late) - 600, " %s", firefox);
  assert_false(page_for(late, "text/html", NULL, NULL)); /* only the beginning is looked at */
  assert_true(page_for(firefox, late, NULL, NULL));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hosts_name_boxes),
      cmocka_unit_test(paths_name_boxes),
      cmocka_unit_test(headers_name_boxes),
      cmocka_unit_test(metadata_is_encoded_twice_more),
      cmocka_unit_test(pages_are_newest_first_and_ties_go_by_id),
      cmocka_unit_test(a_page_key_belongs_to_its_order),
      cmocka_unit_test(who_gets_a_page),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
