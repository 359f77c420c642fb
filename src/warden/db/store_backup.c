/* SPDX-License-Identifier: Apache-2.0 */
/* store_backup.c - see store_backup.h. */
#include "warden/db/store_backup.h"

#include "warden/db/store.h"
#include "wire/wire.h"
#include <sqlite3.h>
#include <stdio.h>

#define PAGES_AT_ONCE 1024
#define BUSY_WAIT_MS  10000
#define BUSY_PAUSE_MS 20
#define CAUSE_RUNNING "not in the backup: it was running, and a backup has sandboxes that are paused on disk"

static int fail(sqlite3 *db, const char *path, struct err *err)
{
  return err_set(err, -EIO, "database %s: %s", path, db ? sqlite3_errmsg(db) : "out of memory");
}

static struct str text_at(sqlite3_stmt *st, int i)
{
  const void *p = sqlite3_column_text(st, i);
  return str_make(p, p ? (size_t)sqlite3_column_bytes(st, i) : 0);
}

/* "" where it does not fit. */
static void copy_at(sqlite3_stmt *st, int i, char *dst, size_t size)
{
  if (str_copyz(text_at(st, i), dst, size))
    dst[0] = 0;
}

static int open_at(const char *path, int flags, sqlite3 **db, struct err *err)
{
  if (access(path, R_OK))
    return err_errno(err, "%s", path);
  if (sqlite3_open_v2(path, db, flags | SQLITE_OPEN_NOMUTEX, NULL))
    return fail(*db, path, err);
  sqlite3_busy_timeout(*db, BUSY_WAIT_MS);
  return 0;
}

int store_copy(const char *from, const char *to, struct err *err)
{
  sqlite3 *source = NULL, *copy = NULL;
  unlink(to);
  int r = open_at(from, SQLITE_OPEN_READWRITE, &source, err); /* of a log that is in use a reader needs the index */
  if (!r && sqlite3_open_v2(to, &copy, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL))
    r = fail(copy, to, err);
  /* One read transaction around all steps: writers go on in the log, and no step begins again. */
  if (!r && sqlite3_exec(source, "BEGIN; SELECT count(*) FROM sqlite_master", NULL, NULL, NULL))
    r = fail(source, from, err);
  sqlite3_backup *b = r ? NULL : sqlite3_backup_init(copy, "main", source, "main");
  if (!r && !b)
    r = fail(copy, to, err);
  for (int step = SQLITE_OK, tries = 0; !r && step != SQLITE_DONE; tries++) {
    step = sqlite3_backup_step(b, PAGES_AT_ONCE);
    if (step == SQLITE_OK)
      tries = 0;
    else if ((step == SQLITE_BUSY || step == SQLITE_LOCKED) && tries < BUSY_WAIT_MS / BUSY_PAUSE_MS)
      sqlite3_sleep(BUSY_PAUSE_MS);
    else if (step != SQLITE_DONE)
      r = err_set(err, -EIO, "copying %s: %s", from, sqlite3_errstr(step));
  }
  if (b && sqlite3_backup_finish(b) && !r)
    r = fail(copy, to, err);
  if (!r && sqlite3_exec(copy, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL))
    r = fail(copy, to, err);
  sqlite3_close(source);
  sqlite3_close(copy);
  return r;
}

static int each(sqlite3 *db, const char *sql, int kind, int (*fn)(const struct store_need *need, void *arg), void *arg)
{
  sqlite3_stmt *st = NULL;
  int r = sqlite3_prepare_v2(db, sql, -1, &st, NULL) ? -EIO : 0;
  while (!r && sqlite3_step(st) == SQLITE_ROW) {
    struct store_need n = {.kind = kind, .run = (uint64_t)sqlite3_column_int64(st, 5), .layers = text_at(st, 6)};
    copy_at(st, 0, n.id, sizeof(n.id));
    copy_at(st, 1, n.team, sizeof(n.team));
    copy_at(st, 2, n.checkpoint, sizeof(n.checkpoint));
    copy_at(st, 3, n.runtime, sizeof(n.runtime));
    copy_at(st, 4, n.host_name, sizeof(n.host_name));
    r = fn(&n, arg);
  }
  sqlite3_finalize(st);
  return r;
}

int store_needs(const char *path, int (*fn)(const struct store_need *need, void *arg), void *arg, struct err *err)
{
  sqlite3 *db = NULL;
  char boxes[256];
  snprintf(
      boxes, sizeof(boxes),
      "SELECT id, team, image, runtime, CASE walls WHEN '' THEN id ELSE walls END, run, '' FROM box WHERE state=%d "
      "AND tier<>%d",
      BOX_PAUSED, TIER_FROZEN);
  int r = open_at(path, SQLITE_OPEN_READONLY, &db, err);
  r = r ? r : each(db, "SELECT id, '', image, runtime, '', 0, layers FROM build", NEED_BUILD, fn, arg);
  r = r ? r : each(db, boxes, NEED_BOX, fn, arg);
  r = r ? r : each(db, "SELECT id, team, '', '', '', 0, '' FROM volume WHERE state=1", NEED_VOLUME, fn, arg);
  if (r == -EIO && !err->code)
    fail(db, path, err);
  sqlite3_close(db);
  return r;
}

static int change(const char *path, const char *sql, const char *a, const char *b, struct err *err)
{
  sqlite3 *db = NULL;
  sqlite3_stmt *st = NULL;
  int r = open_at(path, SQLITE_OPEN_READWRITE, &db, err);
  while (!r && *sql) {
    if (sqlite3_prepare_v2(db, sql, -1, &st, &sql))
      r = fail(db, path, err);
    else if (st) {
      for (int i = 1; i <= sqlite3_bind_parameter_count(st); i++)
        sqlite3_bind_text(st, i, i == 1 ? a : b, -1, SQLITE_STATIC);
      if (sqlite3_step(st) == SQLITE_ERROR)
        r = fail(db, path, err);
    }
    sqlite3_finalize(st);
    st = NULL;
  }
  sqlite3_close(db);
  return r;
}

int store_copy_settle(const char *path, struct err *err)
{
  char sql[512];
  snprintf(sql, sizeof(sql),
           "INSERT OR REPLACE INTO ended(id, team, at, cause) SELECT id, team, CAST(strftime('%%s','now') AS "
           "INTEGER)*1000000, ?1 FROM box WHERE state<>%d OR tier=%d;"
           "DELETE FROM box WHERE state<>%d OR tier=%d;"
           "DELETE FROM meta WHERE name='instance'",
           BOX_PAUSED, TIER_FROZEN, BOX_PAUSED, TIER_FROZEN);
  return change(path, sql, CAUSE_RUNNING, NULL, err);
}

int store_copy_drop_box(const char *path, const char *id, const char *cause, struct err *err)
{
  return change(path,
                "INSERT OR REPLACE INTO ended(id, team, at, cause) SELECT id, team, CAST(strftime('%s','now') AS "
                "INTEGER)*1000000, ?2 FROM box WHERE id=?1;"
                "DELETE FROM box WHERE id=?1",
                id, cause, err);
}

int store_copy_move(const char *path, const char *from, const char *to, struct err *err)
{
  return strcmp(from, to) ? change(path,
                                   "UPDATE build SET layers=substr(replace(char(10)||layers, char(10)||?1||'/', "
                                   "char(10)||?2||'/'), 2)",
                                   from, to, err)
                          : 0;
}

int store_copy_check(const char *path, struct err *err)
{
  struct store *s = NULL;
  sqlite3 *db = NULL;
  int r = open_at(path, SQLITE_OPEN_READONLY, &db, err);
  sqlite3_stmt *st = NULL;
  if (!r && (sqlite3_prepare_v2(db, "PRAGMA integrity_check(1)", -1, &st, NULL) || sqlite3_step(st) != SQLITE_ROW ||
             !str_is(text_at(st, 0), "ok")))
    r = err_set(err, -EINVAL, "%s is damaged or no store", path);
  sqlite3_finalize(st);
  sqlite3_close(db);
  r = r ? r : store_open(path, &s, err); /* refuses what a newer version wrote, takes along what an older one did */
  if (!r)
    store_close(s);
  return r;
}
