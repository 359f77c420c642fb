/* SPDX-License-Identifier: Apache-2.0 */
/* build_layer.c - see build_layer.h. */
#include "warden/build/build_layer.h"
#include "warden/core/context.h"

#include "jail/fs/layer_commit.h"
#include "warden/build/layer_lease.h"
#include "warden/db/layer_list.h"
#include "warden/db/layer_owner.h"
#include "wire/sizes.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static void layer_dir(char out[DATA_DIR_SIZE], struct build_run *run, const char *key)
{
  snprintf(out, DATA_DIR_SIZE, "%s/layers/%s", warden_config(run->warden)->data, key);
}

bool build_layer_find(struct build_run *run, const char *key, char fs[DATA_DIR_SIZE], struct buf *out)
{
  char dir[DATA_DIR_SIZE], path[DATA_PATH_SIZE];
  layer_dir(dir, run, key);
  if (!layer_lease(dir))
    return false;
  snprintf(path, sizeof(path), "%s/fs", dir);
  snprintf(fs, DATA_DIR_SIZE, "%s", access(path, F_OK) ? "" : path);
  snprintf(path, sizeof(path), "%s/out", dir);
  if (out)
    file_read(path, out);
  return true;
}

static int fill(const char *temp, struct build_run *run, struct build_box *box, struct str out, struct err *err)
{
  char path[DATA_PATH_SIZE];
  struct warden *w = run->warden;
  snprintf(path, sizeof(path), "%s/fs", temp);
  int r = box ? jail_commit(box->dir, warden_config(w)->id_base + run->slot * JAIL_IDS, path, err) : 0;
  if (!r && box && layer_empty(path))
    r = path_remove_tree(AT_FDCWD, path);
  if (!r && box)
    r = layer_owner_write(temp, run->team, jail_layer_bytes(path), err);
  if (r || !out.p)
    return r;
  snprintf(path, sizeof(path), "%s/out", temp);
  r = file_write_atomic(path, out.p, out.n, 0600);
  return r ? err_set(err, r, "writing %s: %s", path, strerrordesc_np(-r)) : 0;
}

int build_layer_keep(struct build_run *run, const char *key, struct build_box *box, struct str out, struct err *err)
{
  char dir[DATA_DIR_SIZE], temp[DATA_DIR_SIZE];
  layer_dir(dir, run, key);
  snprintf(temp, sizeof(temp), "%s/layers/.new-XXXXXX", warden_config(run->warden)->data);
  if (!mkdtemp(temp))
    return err_errno(err, "making %s", temp);
  int r = fill(temp, run, box, out, err);
  if (!r && renameat2(AT_FDCWD, temp, AT_FDCWD, dir, RENAME_NOREPLACE) && errno != EEXIST)
    r = err_errno(err, "naming the layer %s", dir);
  path_remove_tree(AT_FDCWD, temp);
  return r;
}

void build_layer_sweep(const char *data)
{
  char path[DATA_DIR_SIZE];
  snprintf(path, sizeof(path), "%s/layers", data);
  DIR *d = opendir(path);
  if (!d)
    return;
  for (struct dirent *e; (e = readdir(d));)
    if (str_starts(str_of(e->d_name), STR(".new-")))
      path_remove_tree(dirfd(d), e->d_name);
  closedir(d);
}
