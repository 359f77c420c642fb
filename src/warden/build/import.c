/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - an image file becomes a template as it is, without a build: for the host's root user.
 *
 * An image that `cloche template export` wrote brings its settings along. Any other one keeps its environment, its
 * directory and its user where that is a name; it is the operator's to see that it has what sandboxes need. */
#include "warden/build/import.h"

#include "jail/jail.h"
#include "warden/build/source.h"
#include "warden/build/source_left.h"
#include "warden/core/quota.h"
#include "warden/core/storage_quota.h"
#include "warden/db/ref.h"
#include "warden/core/id_slots.h"
#include "warden/core/worker_pool.h"
#include "warden/core/context.h"
#include "wire/sizes.h"
#include <stdio.h>

#define CONFIG_MAX   ((size_t)256 << 10)
#define MEMORY_MB    1024
#define DISK_MB      10240
#define NUMBERS_MOST (1 << 24)

struct import {
  uv_work_t work;
  struct warden *warden;
  import_fn *done;
  void *arg;
  struct source_spec spec;
  struct source_base base;
  struct source_left left;
  char team[UUID_SIZE], ref[300];
  char *image;
  unsigned slot;
  int result;
  struct err err;
};

static void import_free(struct import *i)
{
  source_base_free(&i->base);
  free(i->image);
  free(i);
}

static void import_work(uv_work_t *work)
{
  struct import *i = work->data;
  i->result = source_fetch(&i->spec, &i->base, &i->err);
}

/* ---- the template ---- */

static unsigned number(const struct json *j, const char *name, unsigned otherwise)
{
  int64_t v;
  return json_int(json_get(j, name), &v) || v <= 0 || v > NUMBERS_MOST ? otherwise : (unsigned)v;
}

static bool named_user(struct str user)
{
  return user.n && !(user.p[0] >= '0' && user.p[0] <= '9') && str_find(user, ':') < 0;
}

static void foreign_config(struct jw *w, const struct json *image)
{
  struct str user = json_text(json_get(image, "user"), STR("")),
             workdir = json_text(json_get(image, "workdir"), STR(""));
  jw_key(w, "env");
  if (json_given(json_get(image, "env")))
    jw_value(w, json_get(image, "env"));
  else
    jw_raw(w, STR("{}"));
  jw_key(w, "user");
  jw_str(w, named_user(user) ? user : STR("root"));
  jw_key(w, "workdir");
  jw_str(w, workdir.n ? workdir : STR("/"));
}

static void own_config(struct jw *w, const struct json *settings)
{
  static const char *const sizes[] = {"cpu", "memoryMB", "diskMB"};
  for (const struct json *k = settings->kids; k; k = k->next) {
    bool size = false;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
      size |= str_is(k->key, sizes[i]);
    if (size)
      continue;
    jw_keys(w, k->key);
    jw_value(w, k);
  }
}

static int add_build(struct import *i, struct template **t, struct build **b)
{
  cleanup_arena struct arena a = ARENA_INIT(4 * CONFIG_MAX);
  cleanup_buf struct buf config = BUF_INIT(CONFIG_MAX), lowered = BUF_INIT(1024);
  struct catalog *c = warden_catalog(i->warden);
  struct json *image = json_read(&a, buf_str(&i->base.config), 0, NULL), *own = json_get(image, "cloche");
  char id[24];
  struct ref name;
  int r = ref_read(str_of(i->ref), &lowered, &name, &i->err);
  if (r)
    return r;
  struct jw w = JW(&config);
  jw_open(&w, '{');
  if (json_is(own, JSON_OBJECT))
    own_config(&w, own);
  else
    foreign_config(&w, image);
  jw_close(&w, '}');
  struct box_size size = {number(own, "cpu", 2), number(own, "memoryMB", MEMORY_MB), number(own, "diskMB", DISK_MB)};
  if ((r = quota_fits(i->warden, str_of(i->team), size, &i->err)))
    return r;
  random_id(id, 20);
  r = catalog_template_make(c, str_of(i->team), name.alias, str_of(id), t, &i->err);
  if (r)
    return r;
  struct row_build row = {.layers = (char *)buf_z(&i->base.layers),
                          .config = (char *)buf_z(&config),
                          .cpus = size.cpus,
                          .memory_mb = size.memory_mb,
                          .disk_mb = size.disk_mb,
                          .created_us = clock_wall_us()};
  uuid4(row.id);
  memcpy(row.template_id, (*t)->row.id, sizeof(row.template_id));
  r = catalog_build_add(c, *t, &row, name.tag, &i->err);
  *b = catalog_build(c, str_of(row.id));
  return r;
}

static void import_done(uv_work_t *work, int status)
{
  struct import *i = work->data;
  struct template *t = NULL;
  struct build *b = NULL;
  source_reclaim(i->warden, i->team, &i->left, i->slot);
  storage_layers_changed(i->warden);
  if (!i->result)
    i->result = add_build(i, &t, &b);
  i->done(i->arg, i->result, t, b, &i->err);
  import_free(i);
}

/* What can be refused is refused before anything is unpacked. */
static int import_check(struct import *i, const struct import_params *p, struct err *err)
{
  cleanup_buf struct buf lowered = BUF_INIT(1024);
  struct ref name;
  if (str_copyz(p->team, i->team, sizeof(i->team)) || str_copyz(p->ref, i->ref, sizeof(i->ref)) ||
      !catalog_team(warden_catalog(i->warden), p->team))
    return err_set(err, -EINVAL, "an import needs an existing team and a template name");
  int r = ref_read(str_of(i->ref), &lowered, &name, err);
  if (!r && slot_take(i->warden, &i->slot))
    r = err_set(err, -EAGAIN, "all id ranges are in use; try again later");
  return r;
}

int template_import(struct warden *w, const struct import_params *p, struct err *err)
{
  struct import *i = xcalloc(1, sizeof(*i));
  *i = (struct import){
      .warden = w, .done = p->done, .arg = p->arg, .image = xstrndup(p->image.p ? p->image.p : "", p->image.n)};
  i->work.data = i;
  int r = import_check(i, p, err);
  if (r) {
    import_free(i);
    return r;
  }
  i->spec = (struct source_spec){.rules = &warden_config(w)->source,
                                 .data = warden_config(w)->data,
                                 .instance = warden_instance(w),
                                 .runtime = warden_runtime(w),
                                 .team = i->team,
                                 .id_base = warden_config(w)->id_base + i->slot * JAIL_IDS,
                                 .image = str_of(i->image),
                                 .any_file = true,
                                 .left = &i->left};
  worker_pool_queue(w, i->team, &i->work, import_work, import_done);
  return 0;
}
