/* SPDX-License-Identifier: Apache-2.0 */
/* registry_auth.c - see registry_auth.h. */
#include "warden/build/registry_auth.h"

#include "warden/core/helper_proc.h"

bool registry_auth_code(struct str s)
{
  for (size_t i = 0; i < s.n; i++) {
    char c = s.p[i];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' || c == '/' ||
          c == '='))
      return false;
  }
  return s.n > 0;
}

int registry_auth_read(const struct source_spec *s, int work, uint32_t uid, struct buf *code, struct err *err)
{
  cleanup_buf struct buf answer = BUF_INIT(2 * REGISTRY_AUTH_MAX);
  const char *const argv[] = {"/proc/self/exe", REGISTRY_AUTH_COMMAND, s->rules->ecr ? s->rules->ecr : "", NULL};
  struct helper_proc c = {.argv = argv,
                          .uid = uid,
                          .work = work,
                          .source = -1,
                          .seconds = source_seconds(s, REGISTRY_AUTH_SECONDS + 5),
                          .input = s->registry,
                          .answer = &answer,
                          .cancelled = s->cancelled};
  int r = helper_proc_run(&c, err);
  struct str line = str_trim(buf_str(&answer));
  if (!r && (!registry_auth_code(line) || buf_adds(code, line)))
    r = err_set(err, -EPROTO, "the helper process returned no usable credentials");
  if (answer.n)
    explicit_bzero(answer.p, answer.n);
  return r;
}
