/* SPDX-License-Identifier: Apache-2.0 */
/* dockerfile.c - a client's Dockerfile: what the gate accepts of it the warden must read, without a NUL byte in any
 * text. The first byte chooses: d the text of one, everything else a client's JSON. */
#include "must.h"

#include "gate/api/template/recipe_dockerfile.h"

static bool plain(struct str s)
{
  return !s.n || !memchr(s.p, 0, s.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  cleanup_arena struct arena a = ARENA_INIT(16 << 20), b = ARENA_INIT(16 << 20);
  cleanup_buf struct buf out = BUF_INIT(2 * RECIPE_MAX), body = BUF_INIT(4 << 20);
  struct err err = ERR_NONE;
  struct recipe r;
  if (!size)
    return 0;
  if (data[0] == 'd') {
    struct jw w = JW(&body);
    jw_open(&w, '{');
    jw_key(&w, "dockerfile");
    jw_str(&w, str_make(data + 1, size - 1));
    jw_close(&w, '}');
  } else {
    buf_add(&body, data, size);
  }
  int code = recipe_from_dockerfile(json_read(&a, buf_str(&body), 0, NULL), &out, &err);
  MUST(code == 0 || (code == -EINVAL && err.msg[0]));
  if (code)
    return 0;
  MUST(recipe_read(&b, buf_str(&out), &r, &err) == 0);
  MUST(r.image.n && plain(r.image) && plain(r.start) && plain(r.ready));
  for (size_t i = 0; i < r.nsteps; i++)
    for (size_t n = 0; n < r.steps[i].nargs; n++)
      MUST(plain(r.steps[i].args[n]));
  return 0;
}
