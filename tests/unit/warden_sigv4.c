/* warden_sigv4.c - the signature against the examples AWS published with its scheme. */
#include "unit.h"

#include "warden/sigv4.h"

#define DATE "20150830T123600Z"

static void signatures_are_those_of_the_published_examples(void **state)
{
  static const struct {
    const char *method, *signature;
  } cases[] = {{"GET", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
               {"POST", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"}};
  const struct sigv4_header headers[] = {{"host", STR("example.amazonaws.com")}, {"x-amz-date", STR(DATE)}};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    cleanup_buf struct buf out = BUF_INIT(1024), wanted = BUF_INIT(1024);
    struct sigv4 s = {.key_id = STR("AKIDEXAMPLE"),
                      .secret = STR("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
                      .region = STR("us-east-1"),
                      .service = STR("service"),
                      .method = cases[i].method,
                      .path = "/",
                      .headers = headers,
                      .nheaders = ARRAY_LEN(headers)};
    sigv4_sign(&s, DATE, &out);
    buf_addf(&wanted, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=%s",
             cases[i].signature);
    assert_string_equal(buf_z(&out), buf_z(&wanted));
  }
}

static void dates_are_of_greenwich_without_marks(void **state)
{
  char date[SIGV4_DATE];
  sigv4_date(1440938160LL * 1000000 + 999999, date);
  assert_string_equal(date, DATE);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(signatures_are_those_of_the_published_examples),
      cmocka_unit_test(dates_are_of_greenwich_without_marks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
