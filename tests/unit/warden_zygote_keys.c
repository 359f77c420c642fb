/* SPDX-License-Identifier: Apache-2.0 */
/* warden_zygote_keys.c - what templates of teams would load is remembered for a bounded number of them. */
#include "unit.h"

#include "warden/warm/zygote.h"
#include "warden/core/warden_state.h"
#include <fcntl.h>
#include <stdio.h>

#define BUILDS 60
#define MOST   16

static char dir[] = "/tmp/cloche-unit-keys.XXXXXX";
static struct warden_config config = {.zygotes = true, .zygote_keys_max = MOST};
static struct warden w = {.config = &config};
static struct build *builds[BUILDS];

static int open_all(void **state)
{
  char path[96], layers[160], id[UUID_TEXT], first_key[KEY_TEXT];
  struct err err = ERR_NONE;
  struct template *t = NULL;
  if (!mkdtemp(dir))
    return -1;
  config.data = dir;
  snprintf(path, sizeof(path), "%s/db", dir);
  if (store_open(path, &w.store, &err) || catalog_open(w.store, &w.catalog, first_key, &err))
    return -1;
  const struct row_team *team = catalog_first_team(w.catalog);
  if (!team || catalog_template_make(w.catalog, str_of(team->id), STR("many"), STR("manytemplatesofateam"), &t, &err))
    return -1;
  for (int i = 0; i < BUILDS; i++) {
    uuid4(id);
    snprintf(layers, sizeof(layers), "%s/layers/%d\n%s/layers/base", dir, i, dir); /* not there: each counts */
    struct row_build row = {.kind = BUILD_PLAIN, .layers = layers, .config = (char *)"{}", .cpus = 1};
    snprintf(row.id, sizeof(row.id), "%s", id);
    memcpy(row.template_id, t->row.id, sizeof(row.template_id));
    if (catalog_build_add(w.catalog, t, &row, STR("default"), &err))
      return -1;
    builds[i] = catalog_build(w.catalog, str_of(id));
  }
  return 0;
}

static int close_all(void **state)
{
  catalog_close(w.catalog);
  store_close(w.store);
  return path_remove_tree(AT_FDCWD, dir);
}

static void keys_of_many_templates_are_forgotten_and_found_again(void **state)
{
  for (int turn = 0; turn < 3; turn++)
    for (int i = 0; i < BUILDS; i++) {
      assert_false(zygote_missing(&w, builds[i])); /* there is no Python in it */
      assert_non_null(builds[i]->zygote);
      assert_true(zygotes_known(&w) <= MOST);
    }
  size_t remembered = 0;
  for (int i = 0; i < BUILDS; i++)
    remembered += builds[i]->zygote != NULL;
  assert_int_equal(remembered, zygotes_known(&w)); /* nobody points to one that is gone */
  assert_true(remembered >= MOST / 2);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(keys_of_many_templates_are_forgotten_and_found_again)};
  return cmocka_run_group_tests(tests, open_all, close_all);
}
