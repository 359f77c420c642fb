/* SPDX-License-Identifier: Apache-2.0 */
/* store_lab.h - stores in a directory that lasts for one test program: make_dir and remove_dir are its group's setup
 * and teardown. */
#ifndef CLOCHE_UNIT_STORE_LAB_H
#define CLOCHE_UNIT_STORE_LAB_H

#include "unit.h"

#include "warden/db/store.h"
#include <fcntl.h>
#include <stdio.h>

static char dir[] = "/tmp/cloche-unit-store.XXXXXX";
static char path[64]; /* of the store that was opened last */

static int make_dir(void **state)
{
  return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
  return path_remove_tree(AT_FDCWD, dir);
}

/* A store of that name: a new one, or what an earlier call left. */
static struct store *fresh(const char *name)
{
  struct store *s = NULL;
  struct err err = ERR_NONE;
  snprintf(path, sizeof(path), "%s/%s.db", dir, name);
  if (store_open(path, &s, &err))
    fail_msg("%s", err.msg);
  return s;
}

#endif
