/* SPDX-License-Identifier: Apache-2.0 */
/* oci_image.c - see oci_image.h. */
#include "unpack/oci_image.h"

static int digest_of(const struct json *v, char out[UNPACK_DIGEST], const char *what, struct err *err)
{
  struct str text = json_text(v, STR_NONE), hex = str_skip(text, 7);
  bool good = str_starts(text, STR("sha256:")) && hex.n == 64;
  for (size_t i = 0; good && i < 64; i++)
    good = (hex.p[i] >= '0' && hex.p[i] <= '9') || (hex.p[i] >= 'a' && hex.p[i] <= 'f');
  if (!good)
    return err_set(err, -EBADMSG, "%s has no sha256 digest but '" STR_FMT "'", what, STR_ARG(str_sub(text, 0, 100)));
  memcpy(out, hex.p, 64);
  out[64] = 0;
  return 0;
}

static struct json *parse(struct arena *a, struct str text, const char *what, struct err *err)
{
  struct json_error why;
  struct json *j = json_read(a, text, JSON_REPAIR_UTF8, &why);
  if (j && json_is(j, JSON_OBJECT))
    return j;
  err_set(err, -EBADMSG, "%s is not a JSON object%s%s", what, j ? "" : ": ", j ? "" : why.what);
  return NULL;
}

int image_index(struct str text, char digest[UNPACK_DIGEST], struct err *err)
{
  cleanup_arena struct arena a = ARENA_INIT(4 * IMAGE_JSON_MAX);
  struct json *j = parse(&a, text, "the image's index", err);
  if (!j)
    return -EBADMSG;
  struct json *list = json_get(j, "manifests");
  if (!json_is(list, JSON_ARRAY) || list->count != 1)
    return err_set(err, -EBADMSG, "the image's index names %zu images; exactly one is expected",
                   list ? list->count : 0);
  return digest_of(json_get(list->kids, "digest"), digest, "the image's index", err);
}

int image_manifest(struct arena *a, struct str text, struct image_manifest *out, struct err *err)
{
  struct json *j = parse(a, text, "the image's manifest", err);
  if (!j)
    return -EBADMSG;
  int r = digest_of(json_get(json_get(j, "config"), "digest"), out->config, "the image's configuration", err);
  struct json *list = json_get(j, "layers");
  if (r)
    return r;
  if (!json_is(list, JSON_ARRAY) || list->count > IMAGE_LAYERS_MAX)
    return err_set(err, -EBADMSG, "the image has no list of layers, or more than %d", IMAGE_LAYERS_MAX);
  out->n = 0;
  out->layers = arena_alloc(a, (list->count + 1) * sizeof(*out->layers));
  if (!out->layers)
    return err_set(err, -ENOMEM, "the image's manifest is too large");
  for (struct json *l = list->kids; l && !r; l = l->next)
    r = digest_of(json_get(l, "digest"), out->layers[out->n++], "a layer of the image", err);
  return r;
}

/* ---- the configuration ---- */

static bool variable(struct str name)
{
  for (size_t i = 0; i < name.n; i++) {
    char c = name.p[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && !(i && c >= '0' && c <= '9'))
      return false;
  }
  return name.n > 0;
}

static void put_env(struct jw *w, const struct json *env)
{
  jw_key(w, "env");
  jw_open(w, '{');
  for (struct json *v = json_is(env, JSON_ARRAY) ? env->kids : NULL; v; v = v->next) {
    struct str name, value;
    str_cut(json_text(v, STR_NONE), '=', &name, &value);
    if (!variable(name) || (value.n && memchr(value.p, 0, value.n)))
      continue;
    jw_keys(w, name);
    jw_str(w, value);
  }
  jw_close(w, '}');
}

static void put_words(struct jw *w, const char *name, const struct json *list)
{
  jw_key(w, name);
  jw_open(w, '[');
  for (struct json *v = json_is(list, JSON_ARRAY) ? list->kids : NULL; v; v = v->next)
    jw_str(w, json_text(v, STR("")));
  jw_close(w, ']');
}

static void put_label(struct jw *w, struct arena *a, const struct json *labels)
{
  struct str text = json_text(json_get(labels, IMAGE_LABEL), STR_NONE);
  struct json *own = text.n ? json_read(a, text, 0, NULL) : NULL;
  if (!json_is(own, JSON_OBJECT))
    return;
  jw_key(w, "cloche");
  jw_value(w, own);
}

static int check_platform(const struct json *j, struct err *err)
{
  struct str os = json_text(json_get(j, "os"), STR("linux")),
             arch = json_text(json_get(j, "architecture"), STR(IMAGE_ARCHITECTURE));
  if (str_is(os, "linux") && str_is(arch, IMAGE_ARCHITECTURE))
    return 0;
  return err_set(err, -ENOEXEC, "the image is for " STR_FMT "/" STR_FMT "; this machine runs linux/" IMAGE_ARCHITECTURE,
                 STR_ARG(str_sub(os, 0, 40)), STR_ARG(str_sub(arch, 0, 40)));
}

static int read_diffs(struct arena *a, const struct json *list, char (**diffs)[UNPACK_DIGEST], size_t *n,
                      struct err *err)
{
  if (!json_is(list, JSON_ARRAY) || list->count > IMAGE_LAYERS_MAX)
    return err_set(err, -EBADMSG, "the image's configuration lists no layers, or more than %d", IMAGE_LAYERS_MAX);
  *diffs = arena_alloc(a, (list->count + 1) * sizeof(**diffs));
  *n = 0;
  int r = *diffs ? 0 : err_set(err, -ENOMEM, "the image's configuration is too large");
  for (struct json *v = list->kids; v && !r; v = v->next)
    r = digest_of(v, (*diffs)[(*n)++], "a layer in the image's configuration", err);
  return r;
}

int image_config(struct arena *a, struct str text, struct buf *out, char (**diffs)[UNPACK_DIGEST], size_t *n,
                 struct err *err)
{
  struct json *j = parse(a, text, "the image's configuration", err);
  int r = j ? check_platform(j, err) : -EBADMSG;
  r = r ? r : read_diffs(a, json_get(json_get(j, "rootfs"), "diff_ids"), diffs, n, err);
  if (r)
    return r;
  struct json *c = json_get(j, "config");
  struct jw w = JW(out);
  jw_open(&w, '{');
  put_env(&w, json_get(c, "Env"));
  jw_key(&w, "user");
  jw_str(&w, json_text(json_get(c, "User"), STR("")));
  jw_key(&w, "workdir");
  jw_str(&w, json_text(json_get(c, "WorkingDir"), STR("")));
  put_words(&w, "cmd", json_get(c, "Cmd"));
  put_words(&w, "entrypoint", json_get(c, "Entrypoint"));
  put_label(&w, a, json_get(c, "Labels"));
  jw_close(&w, '}');
  return buf_failed(out)
             ? err_set(err, -E2BIG, "the image's environment and commands exceed %zu bytes", IMAGE_RESULT_MAX)
             : 0;
}
