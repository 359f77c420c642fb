/* SPDX-License-Identifier: Apache-2.0 */
/* recipe_dockerfile.c - see recipe_dockerfile.h. Reading ends with the second FROM or the first COPY, so the time it
 * takes is in proportion to the text. */
#include "gate/api/template/recipe_dockerfile.h"

#include "wire/dockerfile.h"

#define READY "sleep 20" /* of CMD and ENTRYPOINT, as the SDKs have it */

struct plan {
  struct buf *recipe;
  struct buf start; /* of CMD or ENTRYPOINT, the last one */
  size_t steps;
};

/* A JSON list of words may bring bytes that the text itself has not. */
static int put(struct plan *p, enum recipe_tag tag, struct str value, struct err *err)
{
  if (value.n && memchr(value.p, 0, value.n))
    return err_set(err, -EINVAL, "'dockerfile' must not have NUL bytes");
  recipe_put(p->recipe, tag, value);
  return 0;
}

static int take_from(void *arg, struct str base, bool stage, struct err *err)
{
  return put(arg, RECIPE_IMAGE, base, err);
}

static int take_step(void *arg, const char *type, const struct str *args, size_t n, struct err *err)
{
  struct plan *p = arg;
  if (p->steps++ == RECIPE_STEPS_MAX)
    return err_set(err, -EINVAL, "'dockerfile' must have at most %d steps; join commands with &&", RECIPE_STEPS_MAX);
  int r = put(p, RECIPE_STEP, str_of(type), err);
  for (size_t i = 0; !r && i < n; i++)
    r = put(p, RECIPE_ARG, args[i], err);
  return r;
}

static int take_copy(void *arg, const struct dockerfile_copy *copy, struct err *err)
{
  return err_set(err, -EINVAL,
                 "Dockerfile, line %zu: COPY and ADD need files, which this request does not bring; build with POST "
                 "/v3/templates, which takes uploads, or with `cloche template build NAME --file Dockerfile`",
                 copy->line);
}

static int take_start(void *arg, struct str command, struct err *err)
{
  struct plan *p = arg;
  buf_clear(&p->start);
  return buf_adds(&p->start, command) ? err_set(err, -EINVAL, "the start command exceeds %u bytes", RECIPE_MAX) : 0;
}

static int take_stage(void *arg, struct str name, size_t line, struct err *err)
{
  return err_set(err, -EINVAL,
                 "Dockerfile, line %zu: this request builds one stage; build several with `cloche template build NAME "
                 "--file Dockerfile`",
                 line);
}

int recipe_from_dockerfile(const struct json *body, struct buf *out, struct err *err)
{
  static const struct dockerfile_ops ops = {take_from, take_step, take_copy, take_start, take_stage};
  const struct json *text = json_get(body, "dockerfile");
  if (!json_is(text, JSON_STRING) || !text->text.n)
    return err_set(err, -EINVAL, "'dockerfile' must be the text of a Dockerfile");
  if (text->text.n > DOCKERFILE_BODY_MAX)
    return err_set(err, -EINVAL, "'dockerfile' has %zu bytes; at most %u are taken", text->text.n, DOCKERFILE_BODY_MAX);
  if (memchr(text->text.p, 0, text->text.n))
    return err_set(err, -EINVAL, "'dockerfile' must not have NUL bytes");
  struct plan p = {.recipe = out, .start = BUF_INIT(RECIPE_MAX)};
  int r = dockerfile_read(text->text, &ops, &p, err);
  bool given = json_text(json_get(body, "startCmd"), STR_NONE).n > 0,
       waits = json_text(json_get(body, "readyCmd"), STR_NONE).n > 0;
  r = r ? r : recipe_put_text(body, "startCmd", RECIPE_START, out, err);
  r = r ? r : recipe_put_text(body, "readyCmd", RECIPE_READY, out, err);
  if (!r && !given && p.start.n)
    r = put(&p, RECIPE_START, buf_str(&p.start), err);
  if (!r && !given && p.start.n && !waits)
    r = put(&p, RECIPE_READY, STR(READY), err);
  buf_free(&p.start);
  return r ? r : recipe_fits(out, err);
}
