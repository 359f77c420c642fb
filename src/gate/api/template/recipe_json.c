/* SPDX-License-Identifier: Apache-2.0 */
/* recipe_json.c - see recipe_json.h. Texts become arguments of programs later on: none holds a NUL byte. */
#include "gate/api/template/recipe_json.h"

#include "gate/api/volume/mount_list.h"

#define REGISTRY_MAX (1u << 16)

static bool is_text(const struct json *v)
{
  return json_is(v, JSON_STRING) && !memchr(v->text.n ? v->text.p : "x", 0, v->text.n);
}

static int put_step(const struct json *step, struct buf *out, struct err *err)
{
  struct str type = json_text(json_get(step, "type"), STR_NONE),
             files = json_text(json_get(step, "filesHash"), STR_NONE);
  const struct json *args = json_get(step, "args"), *force = json_get(step, "force");
  char upper[64];
  if (!json_is(step, JSON_OBJECT) || !type.n || type.n >= sizeof(upper))
    return err_set(err, -EINVAL, "each of 'steps' must be an object with a 'type'");
  for (size_t i = 0; i < type.n; i++)
    upper[i] = type.p[i] >= 'a' && type.p[i] <= 'z' ? (char)(type.p[i] - 32) : type.p[i];
  recipe_put(out, RECIPE_STEP, str_make(upper, type.n));
  if (json_given(args) && args->type != JSON_ARRAY)
    return err_set(err, -EINVAL, "'args' of a step must be a list of strings");
  for (const struct json *k = json_given(args) ? args->kids : NULL; k; k = k->next) {
    if (!is_text(k))
      return err_set(err, -EINVAL, "'args' of a step must be a list of strings without NUL bytes");
    recipe_put(out, RECIPE_ARG, k->text);
  }
  if (files.n)
    recipe_put(out, RECIPE_FILES, files);
  if (json_is(force, JSON_BOOL) && force->flag)
    recipe_put(out, RECIPE_AGAIN, STR_NONE);
  return 0;
}

int recipe_put_text(const struct json *body, const char *name, enum recipe_tag tag, struct buf *out, struct err *err)
{
  const struct json *v = json_get(body, name);
  if (!json_given(v))
    return 0;
  if (!is_text(v))
    return err_set(err, -EINVAL, "'%s' must be a string", name);
  if (v->text.n)
    recipe_put(out, tag, v->text);
  return 0;
}

static void put_flag(const struct json *body, const char *name, enum recipe_tag tag, struct buf *out)
{
  const struct json *v = json_get(body, name);
  if (json_is(v, JSON_BOOL) && v->flag)
    recipe_put(out, tag, STR_NONE);
}

static int put_registry(const struct json *registry, struct buf *out, struct err *err)
{
  struct str type = json_text(json_get(registry, "type"), STR_NONE);
  if (!json_given(registry))
    return 0;
  if (!str_is(type, "registry") && !str_is(type, "aws") && !str_is(type, "gcp"))
    return err_set(err, -EINVAL, "'fromImageRegistry' must have the type registry, aws or gcp");
  cleanup_buf struct buf text = BUF_INIT(REGISTRY_MAX);
  json_put(&text, registry, false);
  if (buf_failed(&text))
    return err_set(err, -EINVAL, "'fromImageRegistry' exceeds %u bytes", REGISTRY_MAX);
  recipe_put(out, RECIPE_REGISTRY, buf_str(&text));
  explicit_bzero(text.p, text.n);
  return 0;
}

int recipe_fits(const struct buf *out, struct err *err)
{
  return !buf_failed(out) && out->n <= RECIPE_MAX
             ? 0
             : err_set(err, -EINVAL,
                       "the recipe exceeds %u bytes; COPY large files instead of writing them in commands", RECIPE_MAX);
}

/* Beyond the contract: commands of steps see these volumes. */
static int put_mounts(const struct json *list, struct buf *out, struct err *err)
{
  cleanup_buf struct buf lines = BUF_INIT(MOUNT_LINES_MAX), faults = BUF_INIT(MOUNT_FAULTS_MAX * 2);
  mount_list_read(list, &lines, &faults);
  if (faults.n || buf_failed(&lines))
    return err_set(err, -EINVAL, "'volumeMounts' can't be used: %.*s", (int)MIN(faults.n, (size_t)440),
                   faults.n ? faults.p : "it is too long");
  if (lines.n)
    recipe_put(out, RECIPE_MOUNTS, buf_str(&lines));
  return 0;
}

int recipe_from_json(const struct json *body, struct buf *out, struct err *err)
{
  static const struct {
    const char *name;
    enum recipe_tag tag;
  } texts[] = {{"fromImage", RECIPE_IMAGE},
               {"fromTemplate", RECIPE_TEMPLATE},
               {"startCmd", RECIPE_START},
               {"readyCmd", RECIPE_READY}},
    flags[] = {{"force", RECIPE_FORCE}, {"keep", RECIPE_KEEP}, {"debug", RECIPE_DEBUG}};
  const struct json *steps = json_get(body, "steps");
  struct str image = json_text(json_get(body, "fromImage"), STR_NONE),
             ref = json_text(json_get(body, "fromTemplate"), STR_NONE);
  if (!image.n == !ref.n)
    return err_set(err, -EINVAL, "exactly one of 'fromImage' and 'fromTemplate' must be given");
  if (json_given(steps) && (steps->type != JSON_ARRAY || steps->count > RECIPE_STEPS_MAX))
    return err_set(err, -EINVAL, "'steps' must be a list of at most %d steps", RECIPE_STEPS_MAX);
  int r = 0;
  for (size_t i = 0; !r && i < ARRAY_LEN(texts); i++)
    r = recipe_put_text(body, texts[i].name, texts[i].tag, out, err);
  r = r ? r : put_registry(json_get(body, "fromImageRegistry"), out, err);
  r = r ? r : put_mounts(json_get(body, "volumeMounts"), out, err);
  for (size_t i = 0; i < ARRAY_LEN(flags); i++)
    put_flag(body, flags[i].name, flags[i].tag, out);
  for (const struct json *k = json_given(steps) ? steps->kids : NULL; k && !r; k = k->next)
    r = put_step(k, out, err);
  return r ? r : recipe_fits(out, err);
}
