/* SPDX-License-Identifier: Apache-2.0 */
/* gate_network.c - network settings: a table of what passes and what is refused, and what is told back. */
#include "unit.h"

#include "gate/api/sandbox/network_egress.h"
#include <stdio.h>

static int read_text(struct arena *a, const char *text, const char *internet, unsigned features, struct network *n,
                     struct err *err)
{
  struct json_error why;
  struct json *j = json_read(a, str_of(text), 0, &why), *i = internet ? json_read(a, str_of(internet), 0, &why) : NULL;
  assert_non_null(j);
  return network_read(j, i, features, n, err);
}

static void entries_are_told_apart(void **state)
{
  static const struct {
    const char *text;
    enum network_entry kind;
  } table[] = {
      {"1.1.1.1", ENTRY_ADDRESS},
      {"2001:db8::1", ENTRY_ADDRESS},
      {"10.0.0.0/8", ENTRY_RANGE},
      {"2001:db8::/32", ENTRY_RANGE},
      {"0.0.0.0/0", ENTRY_RANGE},
      {"example.com", ENTRY_DOMAIN},
      {"*.example.com", ENTRY_DOMAIN},
      {"*", ENTRY_DOMAIN},
      {"localhost", ENTRY_DOMAIN},
      {"a-b.c_d.e", ENTRY_DOMAIN},
      {"1.2.3", ENTRY_BAD},
      {"1.2.3.4.5", ENTRY_BAD},
      {"1.1.1.1/33", ENTRY_BAD},
      {"::1/129", ENTRY_BAD},
      {"1.1.1.1/", ENTRY_BAD},
      {"example.com/8", ENTRY_BAD},
      {"example.com:80", ENTRY_BAD},
      {"", ENTRY_BAD},
      {"a..b", ENTRY_BAD},
      {".a", ENTRY_BAD},
      {"a.", ENTRY_BAD},
      {"-a.b", ENTRY_BAD},
      {"a-.b", ENTRY_BAD},
      {"a b", ENTRY_BAD},
      {"*.*", ENTRY_BAD},
      {"a.*", ENTRY_BAD},
      {"http://x", ENTRY_BAD},
      {"1.1.1.1/-1", ENTRY_BAD},
  };
  for (size_t i = 0; i < ARRAY_LEN(table); i++)
    if (network_entry(str_of(table[i].text)) != table[i].kind)
      fail_msg("'%s' is taken for %d", table[i].text, network_entry(str_of(table[i].text)));
}

#define RULE(headers)  "{\"rules\":{\"a.b\":[{\"transform\":{\"headers\":{" headers "}}}]}}"
#define PROXY(members) "{\"egressProxy\":{\"address\":\"p.example.com:1080\"," members "}}"

#define AT(address)    "{\"egressProxy\":{\"address\":\"" address "\"}}"

static void what_is_wrong_is_named(void **state)
{
  static const struct {
    const char *text, *word;
    int code;
  } table[] = {
      {"[]", "object", -EINVAL},
      {"{\"denyOut\":[\"example.com\"]}", "example.com", -EINVAL},
      {"{\"denyOut\":[\"0.0.0.0\"]}", "unspecified", -EINVAL},
      {"{\"denyOut\":[\"0.0.0.0/8\"]}", "unspecified", -EINVAL},
      {"{\"denyOut\":[\"::/0\"]}", "unspecified", -EINVAL},
      {"{\"denyOut\":[\"0.0.0.1/0\"]}", "unspecified", -EINVAL},
      {"{\"allowOut\":[\"0.0.0.0/7\"]}", "unspecified", -EINVAL},
      {"{\"allowOut\":[\"example.com\"]}", NETWORK_ALL, -EINVAL},
      {"{\"allowOut\":[\"example.com\"],\"denyOut\":[\"1.0.0.0/8\"]}", NETWORK_ALL, -EINVAL},
      {"{\"allowOut\":{}}", "array", -EINVAL},
      {"{\"allowOut\":[null]}", "strings", -EINVAL},
      {"{\"allowPublicTraffic\":1}", "allowPublicTraffic", -EINVAL},
      {"{\"maskRequestHost\":\"a b\"}", "maskRequestHost", -EINVAL},
      {"{\"maskRequestHost\":\"\"}", "maskRequestHost", -EINVAL},
      {"{\"maskRequestHost\":\"a:0\"}", "maskRequestHost", -EINVAL},
      {"{\"httpsPorts\":[49983]}", "49983", -EINVAL},
      {"{\"httpsPorts\":[\"443\"]}", "httpsPorts", -EINVAL},
      {"{\"httpsPorts\":[443,8443,443]}", "443 twice", -EINVAL},
      {"{\"dnsServers\":\"1.1.1.1\"}", "array", -EINVAL},
      {"{\"dnsServers\":[1]}", "strings", -EINVAL},
      {"{\"dnsServers\":[\"1.1.1.1\",\"::1\"]}", "'::1' is not an IPv4", -EINVAL},
      {"{\"dnsServers\":[\"dns.google\"]}", "dns.google", -EINVAL},
      {"{\"dnsServers\":[\"1.1.1.0/24\"]}", "1.1.1.0/24", -EINVAL},
      {"{\"dnsServers\":[\"1.1.1.1\\n9.9.9.9\"]}", "1.1.1.1", -EINVAL},
      {"{\"dnsServers\":[\"1.1.1.1\",\"1.1.1.1\",\"1.1.1.1\",\"1.1.1.1\",\"1.1.1.1\",\"1.1.1.1\",\"1.1.1.1\","
       "\"1.1.1.1\",\"1.1.1.1\",\"1.1.1.1\",\"1.1.1.1\"]}",
       "11 addresses; at most 10", -EINVAL},
      {"{\"egressProxy\":{}}", "address", -EINVAL},
      {"{\"egressProxy\":{\"address\":\"10.0.0.1:1\"}}", "private", -EINVAL},
      {"{\"egressProxy\":{\"address\":\"[::1]:1\"}}", "private", -EINVAL},
      {"{\"egressProxy\":{\"address\":\"[::ffff:10.0.0.1]:1\"}}", "private", -EINVAL},
      {"{\"egressProxy\":{\"address\":\"localhost:1\"}}", "private", -EINVAL},
      {"{\"egressProxy\":{\"address\":\"p.example.com:65536\"}}", "host:port", -EINVAL},
      {"{\"egressProxy\":{\"address\":\"p.example.com:1\",\"password\":\"x\"}}", "username", -EINVAL},
      {"{\"egressProxy\":{\"address\":\"p.example.com:1\"}}", "not available", -EPERM},
      {"{\"rules\":[]}", "rules", -EINVAL},
      {"{\"rules\":{\"1.2.3.4\":[{}]}}", "1.2.3.4", -EINVAL},
      {"{\"rules\":{\"a.b\":[]}}", "one rule", -EINVAL},
      {"{\"rules\":{\"a.b\":[{\"transform\":{\"headers\":{\"A:\":\"x\"}}}]}}", "A:", -EINVAL},
      {"{\"rules\":{\"a.b\":[{\"transform\":{\"headers\":{\"A\":\"x\\ny\"}}}]}}", "one line", -EINVAL},
      {"{\"rules\":{\"a.b\":[{\"transform\":{\"headers\":{\"A\":\"${e2b.secrets.}\"}}}]}}", "placeholder", -EINVAL},
      {"{\"rules\":{\"a.b\":[{\"transform\":{\"headers\":{\"A\":\"${e2b.other.x}\"}}}]}}", "placeholder", -EINVAL},
      {RULE("\"A\":\"${e2b.other.x}\""), "unknown placeholder '${e2b.other.x}'", -EINVAL},
      {RULE("\"A\":\"x ${e2b.secrets.k\""), "not closed", -EINVAL},
      {RULE("\"A\":\"${e2b.secrets.${e2b.secrets.k}}\""), "nested", -EINVAL},
      {RULE("\"A\":\"${e2b.secrets.a b}\""), "names no secret", -EINVAL},
      {RULE("\"A\":\"${e2b.identity.tokens.}\""), "names no token", -EINVAL},
      {RULE("\"A\":\"${e2b.}\""), "unknown placeholder", -EINVAL},
      {RULE("\"A\":\"x\\u0000y\""), "one line", -EINVAL},
      {RULE("\"A\":\"x\\ry\""), "one line", -EINVAL},
      {RULE("\"A\":\"x\\u001by\""), "one line", -EINVAL},
      {RULE("\"A\":\" x\""), "spaces around", -EINVAL},
      {RULE("\"A\":7"), "one line", -EINVAL},
      {RULE("\"\":\"x\""), "header name", -EINVAL},
      {RULE("\"Authorization\":\"x\",\"authorization\":\"y\""), "given twice", -EINVAL},
      {RULE("\"Content-Length\":\"3\""), "can't be set", -EINVAL},
      {RULE("\"transfer-encoding\":\"chunked\""), "can't be set", -EINVAL},
      {RULE("\"HOST\":\"x\""), "can't be set", -EINVAL},
      {RULE("\"Connection\":\"x\""), "can't be set", -EINVAL},
      {"{\"rules\":{\"*\":[{}]}}", "'*' is not a domain", -EINVAL},
      {"{\"rules\":{\"*.*.a\":[{}]}}", "*.*.a", -EINVAL},
      {"{\"rules\":{\"a.*\":[{}]}}", "a.*", -EINVAL},
      {"{\"rules\":{\"a.b\":[{}],\"A.B\":[{}]}}", "twice", -EINVAL},
      {"{\"rules\":{\"a.b\":[{\"transform\":[]}]}}", "transform", -EINVAL},
      {"{\"rules\":{\"a.b\":[{\"transform\":{\"headers\":[]}}]}}", "headers", -EINVAL},
      {"{\"rules\":{\"a.b\":[{}]}}", "not available", -EINVAL},
      {PROXY("\"tls\":true"), "tls", -EINVAL},
      {PROXY("\"tls\":{}"), "enabled", -EINVAL},
      {PROXY("\"tls\":{\"enabled\":1}"), "enabled", -EINVAL},
      {PROXY("\"tls\":{\"enabled\":false,\"serverName\":\"a.b\"}"), "serverName", -EINVAL},
      {PROXY("\"tls\":{\"enabled\":false,\"caCert\":\"x\"}"), "caCert", -EINVAL},
      {PROXY("\"tls\":{\"enabled\":true,\"serverName\":\"a b\"}"), "'a b'", -EINVAL},
      {PROXY("\"tls\":{\"enabled\":true,\"caCert\":\"x\"}"), "PEM", -EINVAL},
      {PROXY("\"tls\":{\"enabled\":true,\"caCert\":\"-----BEGIN CERTIFICATE-----\\nMII\"}"), "PEM", -EINVAL},
      {PROXY("\"username\":7"), "strings", -EINVAL},
      {PROXY("\"username\":\"\",\"password\":\"p\""), "needs a username", -EINVAL},
      {PROXY("\"username\":\"u\\r\\nX: y\""), "control characters", -EINVAL},
      {PROXY("\"username\":\"u\",\"password\":\"p\\u0000\""), "control characters", -EINVAL},
      {PROXY("\"tls\":{\"enabled\":true,\"serverName\":\"::1\"}"), "host name", -EINVAL},
      {"{\"egressProxy\":{\"address\":\"[2001:db8::1]:1080\"}}", "IPv6", -EINVAL},
      {"{\"egressProxy\":{\"address\":\"100.64.1.1:1080\"}}", "private", -EINVAL},
      {"{\"egressProxy\":7}", "object", -EINVAL},
      {AT("ftp://p.example.com:21"), "not 'ftp://p.example.com:21'", -EINVAL},
      {AT("socks4://p.example.com:1080"), "not 'socks4://p.example.com:1080'", -EINVAL},
      {AT("://p.example.com:1080"), "not '://p.example.com:1080'", -EINVAL},
      {AT("http://p.example.com"), "not 'http://p.example.com'", -EINVAL},
      {AT("http://p.example.com:3128/"), "not 'http://p.example.com:3128/'", -EINVAL},
      {AT("http://u:p@p.example.com:3128"), "host:port", -EINVAL},
      {AT("http://http://p.example.com:3128"), "host:port", -EINVAL},
      {AT("https://10.0.0.1:3128"), "private", -EINVAL},
      {AT("https://[2001:db8::1]:3128"), "IPv6", -EINVAL},
      {AT("http://p.example.com:3128\",\"username\":\"a:b"), "colon", -EINVAL},
      {"{\"egressProxy\":{\"address\":\"https://p.example.com:1\",\"tls\":{\"enabled\":false}}}", "https://", -EINVAL},
  };
  for (size_t i = 0; i < ARRAY_LEN(table); i++) {
    cleanup_arena struct arena a = ARENA_INIT(1 << 20);
    struct network n;
    struct err err = ERR_NONE;
    int r = read_text(&a, table[i].text, NULL, 0, &n, &err);
    if (r != table[i].code || !strstr(err.msg, table[i].word))
      fail_msg("%s: %d %s", table[i].text, r, err.msg);
  }
}

static void told_back(struct network *n, const char *wanted)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  struct jw w = JW(&b);
  network_put(&w, n);
  assert_string_equal(buf_z(&b), wanted);
}

static void passwords_are_never_told_back(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct network n;
  assert_int_equal(
      read_text(&a, "{\"egressProxy\":{\"address\":\"p.example.com:1080\",\"username\":\"u\",\"password\":\"hush\"}}",
                NULL, NETWORK_PROXY, &n, NULL),
      0);
  told_back(&n,
            "{\"allowPublicTraffic\":true,\"egressProxy\":{\"address\":\"p.example.com:1080\",\"username\":\"u\"}}");
}

static void rules_are_told_back_with_names_in_lower_case(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct network n;
  assert_int_equal(read_text(&a,
                             "{\"rules\":{\"API.Example.com\":[{\"transform\":{\"headers\":{\"X-Key\":\"Bearer "
                             "${e2b.secrets.Key}\"}}}],\"*.b.c\":[{}],\"d.e\":[{\"transform\":{},\"stray\":1}]}}",
                             NULL, NETWORK_RULES, &n, NULL),
                   0);
  told_back(&n, "{\"allowPublicTraffic\":true,\"rules\":{\"api.example.com\":[{\"transform\":{\"headers\":{\"X-Key\":"
                "\"Bearer ${e2b.secrets.Key}\"}}}],\"*.b.c\":[{}],\"d.e\":[{\"transform\":{}}]}}");
}

static void rules_have_a_size_in_all(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  struct network n;
  struct err err = ERR_NONE;
  buf_addz(&b, "{\"rules\":{\"a.b\":[{\"transform\":{\"headers\":{");
  for (int i = 0; i < 17; i++) {
    buf_addf(&b, "%s\"H%d\":\"", i ? "," : "", i);
    for (int k = 0; k < 2000; k++)
      buf_addc(&b, 'x');
    buf_addc(&b, '"');
  }
  buf_addz(&b, "}}}]}}");
  assert_int_equal(read_text(&a, buf_z(&b), NULL, NETWORK_RULES, &n, &err), -EINVAL);
  assert_non_null(strstr(err.msg, "at most 32768"));
}

static int with_placeholders(int n, struct err *err)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  struct network net;
  buf_addz(&b, "{\"rules\":{\"a.b\":[{\"transform\":{\"headers\":{\"A\":\"");
  for (int i = 0; i < n; i++)
    buf_addf(&b, "%s${e2b.secrets.s%d}", i == n / 2 ? "\",\"B\":\"" : "", i);
  buf_addz(&b, "\"}}}]}}");
  return read_text(&a, buf_z(&b), NULL, NETWORK_RULES, &net, err);
}

static void rules_have_so_many_placeholders_in_all(void **state)
{
  struct err err = ERR_NONE;
  assert_int_equal(with_placeholders(64, &err), 0);
  assert_int_equal(with_placeholders(65, &err), -EINVAL);
  assert_non_null(strstr(err.msg, "65 placeholders; at most 64"));
}

static void a_proxys_certificates_are_never_told_back(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct network n;
  assert_int_equal(read_text(&a,
                             PROXY("\"username\":null,\"tls\":{\"enabled\":true,\"serverName\":\"in.side\",\"caCert\":"
                                   "\"-----BEGIN CERTIFICATE-----\\nMIIBAAAA\\n-----END CERTIFICATE-----\\n\"}"),
                             NULL, NETWORK_PROXY, &n, NULL),
                   0);
  told_back(&n, "{\"allowPublicTraffic\":true,\"egressProxy\":{\"address\":\"p.example.com:1080\",\"tls\":{\"enabled\":"
                "true,\"serverName\":\"in.side\"}}}");
}

static void a_scheme_says_what_a_proxy_speaks(void **state)
{
  static const struct {
    const char *address;
    bool http, tls;
  } table[] = {{"p.example.com:1080", false, false},
               {"socks5://p.example.com:1080", false, false},
               {"http://p.example.com:1080", true, false},
               {"HTTPS://p.example.com:1080", true, true}};
  for (size_t i = 0; i < ARRAY_LEN(table); i++) {
    cleanup_arena struct arena a = ARENA_INIT(1 << 20);
    struct network n;
    struct proxy_address x;
    char text[200];
    snprintf(text, sizeof(text), AT("%s"), table[i].address);
    assert_int_equal(read_text(&a, text, NULL, NETWORK_PROXY, &n, NULL), 0);
    assert_true(network_proxy_address(n.proxy, &x));
    assert_true(str_is(x.host, "p.example.com"));
    assert_int_equal(x.port, 1080);
    assert_int_equal(x.http, table[i].http);
    assert_int_equal(x.tls, table[i].tls);
    snprintf(text, sizeof(text), "{\"allowPublicTraffic\":true,\"egressProxy\":{\"address\":\"%s\"}}",
             table[i].address);
    told_back(&n, text);
  }
}

static void name_servers_matter_beside_a_domain_only(void **state)
{
  static const struct {
    const char *text, *lines;
  } table[] = {
      {"{\"allowOut\":[\"a.b\"],\"denyOut\":[\"0.0.0.0/0\"]}", "a.b\n"},
      {"{\"allowOut\":[\"a.b\"],\"denyOut\":[\"0.0.0.0/0\"],\"dnsServers\":[\"9.9.9.9\",\"1.1.1.1\"]}",
       "a.b\ndns:9.9.9.9\ndns:1.1.1.1\n"},
      {"{\"allowOut\":[\"a.b\"],\"denyOut\":[\"0.0.0.0/0\"],\"dnsServers\":[]}", "a.b\ndns:none\n"},
      {"{\"allowOut\":[\"1.2.3.4\"],\"dnsServers\":[\"9.9.9.9\"]}", "1.2.3.4\n"},
      {"{\"dnsServers\":[]}", ""},
  };
  for (size_t i = 0; i < ARRAY_LEN(table); i++) {
    cleanup_arena struct arena a = ARENA_INIT(1 << 20);
    cleanup_buf struct buf b = BUF_INIT(4096);
    struct network n;
    assert_int_equal(read_text(&a, table[i].text, NULL, 0, &n, NULL), 0);
    network_allow_lines(&b, &n);
    assert_string_equal(buf_z(&b), table[i].lines);
  }
}

static void no_internet_replaces_what_is_denied(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct network n;
  assert_int_equal(read_text(&a, "{\"allowOut\":[\"a.b\"],\"denyOut\":[\"9.9.9.9\"]}", "false", 0, &n, NULL), 0);
  told_back(&n, "{\"allowPublicTraffic\":true,\"allowOut\":[\"a.b\"],\"denyOut\":[\"0.0.0.0/0\"]}");
}

static void an_update_keeps_what_comes_in(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct network n;
  struct json *old = json_read(
      &a,
      STR("{\"allowPublicTraffic\":false,\"maskRequestHost\":\"x\",\"httpsPorts\":[443],\"denyOut\":[\"1.1.1.1\"]}"), 0,
      NULL);
  assert_int_equal(read_text(&a, "{}", NULL, 0, &n, NULL), 0);
  network_keep_ingress(&n, old);
  assert_true(network_said(&n));
  told_back(&n, "{\"allowPublicTraffic\":false,\"maskRequestHost\":\"x\",\"httpsPorts\":[443]}");
  network_keep_ingress(&n, NULL);
  assert_false(network_said(&n));
}

static void masks_may_hold_the_port_anywhere(void **state)
{
  static const char *const good[] = {"app.internal", "app.internal:8080", "app.internal:${PORT}",
                                     "${PORT}-box.example.com", "localhost"};
  for (size_t i = 0; i < ARRAY_LEN(good); i++) {
    cleanup_arena struct arena a = ARENA_INIT(1 << 20);
    struct network n;
    char text[128];
    snprintf(text, sizeof(text), "{\"maskRequestHost\":\"%s\"}", good[i]);
    assert_int_equal(read_text(&a, text, NULL, 0, &n, NULL), 0);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(entries_are_told_apart),
      cmocka_unit_test(what_is_wrong_is_named),
      cmocka_unit_test(passwords_are_never_told_back),
      cmocka_unit_test(rules_are_told_back_with_names_in_lower_case),
      cmocka_unit_test(rules_have_a_size_in_all),
      cmocka_unit_test(rules_have_so_many_placeholders_in_all),
      cmocka_unit_test(a_proxys_certificates_are_never_told_back),
      cmocka_unit_test(a_scheme_says_what_a_proxy_speaks),
      cmocka_unit_test(no_internet_replaces_what_is_denied),
      cmocka_unit_test(an_update_keeps_what_comes_in),
      cmocka_unit_test(masks_may_hold_the_port_anywhere),
      cmocka_unit_test(name_servers_matter_beside_a_domain_only),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
