/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_log.c - SQLite's write-ahead log: folding it back, keeping it small, and the time that readers have. */
#include "warden/db/sqlite_store.h"
#include "warden/db/store_readers.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define LATE_SLACK_US 500000 /* for a reader that is late to notice it */
#define EMPTY_BUSY_MS 100

void sqlite_bound(struct store *s)
{
  char sql[80];
  snprintf(sql, sizeof(sql), "PRAGMA journal_size_limit=%llu", (unsigned long long)s->log_bytes);
  sql_run(s, sql, NULL);
}

uint64_t sqlite_log_size(const struct store *s)
{
  cleanup_free char *log = xasprintf("%s-wal", sqlite_of(s)->path);
  struct stat st;
  return stat(log, &st) ? 0 : (uint64_t)st.st_size;
}

/* Readers that follow each other without a gap would keep the log from ever being begun again. They wait while it is:
 * first its frames are folded back, then it is emptied, which is short and all that holds up who writes. */
static int empty_log(struct store *s, sqlite3 *db)
{
  struct store_readers *readers = sqlite_of(s)->readers;
  if (!readers_stop(readers, s->read_us + LATE_SLACK_US))
    return -EBUSY;
  sqlite3_busy_timeout(db, EMPTY_BUSY_MS);
  int r = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
  r = r ? r : sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
  readers_resume(readers);
  return r ? -EBUSY : 0;
}

int sqlite_checkpoint(struct store *s)
{
  const char *path = sqlite_of(s)->path;
  sqlite3 *db = NULL;
  if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL)) {
    sqlite3_close(db);
    return -EIO;
  }
  /* A connection that has read nothing does not know that there is a log, and would do nothing. */
  int r = sqlite3_exec(db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
  r = r ? r : sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
  if (s->log_bytes && sqlite_log_size(s) > s->log_bytes && empty_log(s, db))
    log_warn("database %s: its log has %llu MiB and could not be emptied, it is tried again", path,
             (unsigned long long)sqlite_log_size(s) >> 20);
  sqlite3_close(db);
  return r ? -EIO : 0;
}

/* The log's frames are whole and checked on reading, so that its fsync is all a power cut asks for. */
int sqlite_harden(struct store *s)
{
  cleanup_free char *log = xasprintf("%s-wal", sqlite_of(s)->path);
  cleanup_fd int fd = open(log, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return errno == ENOENT ? 0 : -errno;
  return fsync(fd) ? -errno : 0;
}

int sqlite_rewrite(struct store *s, struct err *err)
{
  int r = sql_run(s, "VACUUM", err);
  if (r)
    return r;
  r = sqlite3_wal_checkpoint_v2(sqlite_of(s)->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
  return r ? err_set(err, -EBUSY, "the database's log could not be emptied: %s", sqlite3_errstr(r)) : 0;
}
