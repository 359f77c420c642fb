/* SPDX-License-Identifier: Apache-2.0 */
/* recipe.c - how templates are to be built, as clients write it and as the warden is told.
 *
 * The first byte chooses: p a packed recipe, s settings of a template or of an image's label, everything else a
 * client's JSON. What the gate accepts the warden must read, with as many steps and arguments, and without a NUL byte
 * in any text; what is read of settings must come out of the settings written from it. */
#include "must.h"

#include "gate/api/template/recipe_json.h"
#include "warden/build/build_state.h"

static bool plain(struct str s)
{
  return !s.n || !memchr(s.p, 0, s.n);
}

static void client(struct str in)
{
  cleanup_arena struct arena a = ARENA_INIT(16 << 20), b = ARENA_INIT(16 << 20);
  cleanup_buf struct buf out = BUF_INIT(2 * RECIPE_MAX);
  struct err err = ERR_NONE;
  struct recipe r;
  struct json *j = json_read(&a, in, 0, NULL);
  int code = recipe_from_json(j, &out, &err);
  MUST(code == 0 || (code == -EINVAL && err.msg[0]));
  if (code)
    return;
  struct json *steps = json_get(j, "steps");
  MUST(recipe_read(&b, buf_str(&out), &r, &err) == 0);
  MUST(r.nsteps == (json_given(steps) ? steps->count : 0) && !r.image.n != !r.template_ref.n);
  MUST(plain(r.image) && plain(r.template_ref) && plain(r.start) && plain(r.ready));
  struct json *k = json_given(steps) ? steps->kids : NULL;
  for (size_t i = 0; i < r.nsteps; i++, k = k->next) {
    struct json *args = json_get(k, "args");
    MUST(r.steps[i].type.n && r.steps[i].nargs == (json_given(args) ? args->count : 0));
    for (size_t n = 0; n < r.steps[i].nargs; n++)
      MUST(plain(r.steps[i].args[n]));
  }
}

static void packed(struct str in)
{
  cleanup_arena struct arena a = ARENA_INIT(16 << 20);
  struct err err = ERR_NONE;
  struct recipe r;
  int code = recipe_read(&a, in, &r, &err);
  MUST(code == 0 || (code == -EINVAL && err.msg[0]));
  size_t bytes = 0;
  for (size_t i = 0; !code && i < r.nsteps; i++)
    for (size_t n = 0; n < r.steps[i].nargs; n++)
      bytes += r.steps[i].args[n].n;
  MUST(code || bytes <= in.n);
}

static void settings(struct str in)
{
  struct build_state one = {0}, two = {0};
  cleanup_buf struct buf first = BUF_INIT(16 << 20), second = BUF_INIT(16 << 20);
  struct err err = ERR_NONE;
  int code = build_state_read(&one, in, &err);
  code = code ? code : build_state_exported(&one, in, &err);
  if (!code) {
    build_state_config(&one, true, &first);
    MUST(build_state_read(&two, buf_str(&first), &err) == 0);
    build_state_config(&two, true, &second);
    MUST(str_eq(buf_str(&first), buf_str(&second)));
  }
  build_state_free(&one);
  build_state_free(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (!size)
    return 0;
  struct str rest = str_make(data + 1, size - 1);
  if (data[0] == 'p')
    packed(rest);
  else if (data[0] == 's')
    settings(rest);
  else
    client(str_make(data, size));
  return 0;
}
