/* SPDX-License-Identifier: Apache-2.0 */
/* warden_source.c - how images are named, who may be asked, and what stands for an image. */
#include "unit.h"

#include "warden/build/source.h"
#include "warden/build/source_name.h"

static struct source_name name(const char *image)
{
  struct source_name n;
  struct err err = ERR_NONE;
  if (source_name_read(str_of(image), &n, &err))
    fail_msg("%s", err.msg);
  return n;
}

static void names_mean_what_they_mean_elsewhere(void **state)
{
  static const struct {
    const char *image, *transport, *host, *rest, *suite;
  } cases[] = {
      {"python:3.12", "docker", "docker.io", "library/python:3.12", ""},
      {"team/app", "docker", "docker.io", "team/app", ""},
      {"docker://ghcr.example/a/b:1", "docker", "ghcr.example", "a/b:1", ""},
      {"localhost/x", "docker", "localhost", "x", ""},
      {"127.0.0.1:5000/x@sha256:ab", "docker", "127.0.0.1:5000", "x@sha256:ab", ""},
      {"debian", "docker", "docker.io", "library/debian", "stable"},
      {"debian:12-slim", "docker", "docker.io", "library/debian:12-slim", "bookworm"},
      {"debian:trixie", "docker", "docker.io", "library/debian:trixie", "trixie"},
      {"debian:buzz", "docker", "docker.io", "library/debian:buzz", ""},
      {"other.example/debian:trixie", "docker", "other.example", "debian:trixie", ""},
      {"oci:shop/v1:tag", "oci", "", "shop/v1", ""},
      {"docker-archive:a.tar", "docker-archive", "", "a.tar", ""},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct source_name n = name(cases[i].image);
    assert_string_equal(n.transport, cases[i].transport);
    assert_string_equal(n.host, cases[i].host);
    assert_string_equal(n.rest, cases[i].rest);
    assert_string_equal(n.suite, cases[i].suite);
  }
  assert_string_equal(name("oci:shop/v1:tag").tag, "tag");
}

static void names_that_could_mean_more_are_refused(void **state)
{
  static const char *const bad[] = {"",     " ",        "-option", "a b",
                                    "a;b",  "$(x)",     "x/../y",  "host.example//x",
                                    "oci:", "oci:x:$t", "a\nb",    "h.example/-x"};
  struct source_name n;
  struct err err;
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    assert_int_equal(source_name_read(str_of(bad[i]), &n, &err), -EINVAL);
  assert_int_equal(source_name_read(str_make("a\0b", 3), &n, &err), -EINVAL);
}

static void only_listed_hosts_are_asked(void **state)
{
  static const char list[] = "docker.io *.trusted.example 127.0.0.1:* other.example:5000";
  static const char *const good[] = {"docker.io", "a.trusted.example", "A.Trusted.Example", "127.0.0.1:9",
                                     "other.example:5000"};
  static const char *const bad[] = {"trusted.example", "xtrusted.example", "evil.docker.io",     "docker.io.evil",
                                    "127.0.0.1",       "127.0.0.10:1",     "other.example:5001", ""};
  for (size_t i = 0; i < ARRAY_LEN(good); i++)
    assert_true(source_host_listed(list, good[i]));
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    assert_false(source_host_listed(list, bad[i]));
  assert_true(source_host_listed("*", "anything"));
  assert_false(source_host_listed("", "docker.io"));
}

static void a_template_stands_for_an_image(void **state)
{
  struct source_rules rules = {.aliases = "e2bdev/base=base x/y=z:v1"};
  assert_true(str_is(source_alias(&rules, STR("e2bdev/base")), "base"));
  assert_true(str_is(source_alias(&rules, STR("e2bdev/base:latest")), "base"));
  assert_true(str_is(source_alias(&rules, STR(" x/y ")), "z:v1"));
  assert_null(source_alias(&rules, STR("e2bdev/base:other")).p);
  assert_null(source_alias(&rules, STR("e2bdev/bas")).p);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_mean_what_they_mean_elsewhere),
      cmocka_unit_test(names_that_could_mean_more_are_refused),
      cmocka_unit_test(only_listed_hosts_are_asked),
      cmocka_unit_test(a_template_stands_for_an_image),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
