/* SPDX-License-Identifier: Apache-2.0 */
/* recipe.c - see recipe.h. */
#include "wire/recipe.h"

struct field {
  uint32_t tag, len;
};

void recipe_put(struct buf *b, enum recipe_tag tag, struct str value)
{
  buf_add(b, &(struct field){tag, (uint32_t)value.n}, sizeof(struct field));
  buf_adds(b, value);
}

static bool next_field(struct str *rest, uint32_t *tag, struct str *value)
{
  struct field f;
  if (rest->n < sizeof(f))
    return false;
  memcpy(&f, rest->p, sizeof(f));
  *rest = str_skip(*rest, sizeof(f));
  if (f.len > rest->n)
    return false;
  *tag = f.tag;
  *value = str_sub(*rest, 0, f.len);
  *rest = str_skip(*rest, f.len);
  return true;
}

/* How many steps and arguments there are, so that one array each holds them. */
static int count(struct str rest, size_t *steps, size_t *args)
{
  uint32_t tag;
  struct str value;
  *steps = *args = 0;
  while (rest.n) {
    if (!next_field(&rest, &tag, &value))
      return -EINVAL;
    *steps += tag == RECIPE_STEP;
    *args += tag == RECIPE_ARG;
  }
  return *steps > RECIPE_STEPS_MAX ? -EINVAL : 0;
}

static int take(struct recipe *r, struct str **arg, uint32_t tag, struct str value)
{
  struct recipe_step *step = r->nsteps ? &r->steps[r->nsteps - 1] : NULL;
  switch ((enum recipe_tag)tag) {
  case RECIPE_IMAGE:
    return r->image = value, 0;
  case RECIPE_TEMPLATE:
    return r->template_ref = value, 0;
  case RECIPE_REGISTRY:
    return r->registry = value, 0;
  case RECIPE_FORCE:
    return r->force = true, 0;
  case RECIPE_START:
    return r->start = value, r->has_start = true, 0;
  case RECIPE_READY:
    return r->ready = value, r->has_ready = true, 0;
  case RECIPE_KEEP:
    return r->keep = true, 0;
  case RECIPE_DEBUG:
    return r->debug = true, 0;
  case RECIPE_MOUNTS:
    return r->mounts = value, 0;
  case RECIPE_STEP:
    r->steps[r->nsteps++] = (struct recipe_step){.type = value, .args = *arg};
    return 0;
  case RECIPE_ARG:
  case RECIPE_FILES:
  case RECIPE_AGAIN:
    break;
  }
  if (!step)
    return -EINVAL;
  if (tag == RECIPE_ARG) {
    *(*arg)++ = value;
    step->nargs++;
  } else if (tag == RECIPE_FILES) {
    step->files = value;
  } else if (tag == RECIPE_AGAIN) {
    step->force = true;
  } else {
    return -EINVAL;
  }
  return 0;
}

int recipe_read(struct arena *a, struct str packed, struct recipe *out, struct err *err)
{
  size_t steps, args;
  uint32_t tag;
  struct str value, rest = packed;
  *out = (struct recipe){0};
  if (packed.n > RECIPE_MAX || count(packed, &steps, &args))
    return err_set(err, -EINVAL, "a recipe has at most %d steps and %u bytes", RECIPE_STEPS_MAX, RECIPE_MAX);
  out->steps = arena_alloc(a, (steps + 1) * sizeof(*out->steps));
  struct str *arg = arena_alloc(a, (args + 1) * sizeof(*arg));
  if (!out->steps || !arg)
    return err_set(err, -ENOMEM, "no memory for the recipe");
  while (rest.n)
    if (!next_field(&rest, &tag, &value) || take(out, &arg, tag, value))
      return err_set(err, -EINVAL, "a malformed recipe");
  if (!out->image.n == !out->template_ref.n)
    return err_set(err, -EINVAL, "a recipe needs either an image or a template");
  return 0;
}
