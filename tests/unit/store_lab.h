/* SPDX-License-Identifier: Apache-2.0 */
/* store_lab.h - stores that last for one test program: in a directory, of which make_dir and remove_dir are its group's
 * setup and teardown, or, where scripts/with-postgres set STORE_URL, in a schema of that database each. */
#ifndef CLOCHE_UNIT_STORE_LAB_H
#define CLOCHE_UNIT_STORE_LAB_H

#include "unit.h"

#include "store/store_postgres.h"
#include "warden/db/sql_engine.h"
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

/* The tests of what only SQLite has end here on PostgreSQL. */
static inline bool on_postgres(void)
{
  return getenv("STORE_URL");
}

/* The same database with a schema of that name in front. */
static inline char *postgres_schema_url(const char *name)
{
  return xasprintf("%s&options=-csearch_path%%3Dunit_%d_%s", getenv("STORE_URL"), (int)getpid(), name);
}

static inline struct store *fresh_postgres(const char *name)
{
  struct store *s = NULL;
  struct err err = ERR_NONE;
  cleanup_free char *url = postgres_schema_url(name);
  cleanup_free char *sql = xasprintf("CREATE SCHEMA IF NOT EXISTS unit_%d_%s", (int)getpid(), name);
  if (store_open_postgres(getenv("STORE_URL"), &s, &err) || sql_run(s, sql, &err))
    fail_msg("%s", err.msg);
  store_close(s);
  if (store_open_postgres(url, &s, &err))
    fail_msg("%s", err.msg);
  return s;
}

/* A store of that name: a new one, or what an earlier call left. */
static struct store *fresh(const char *name)
{
  struct store *s = NULL;
  struct err err = ERR_NONE;
  if (on_postgres())
    return fresh_postgres(name);
  snprintf(path, sizeof(path), "%s/%s.db", dir, name);
  if (store_open(path, &s, &err))
    fail_msg("%s", err.msg);
  return s;
}

#endif
