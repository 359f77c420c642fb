/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - the SQLite side of store.h. Statements are prepared once and kept by their text. */
#include "warden/db/store_sql.h"

#include "warden/db/store_readers.h"
#include <stdio.h>

#define BUSY_MS    5000 /* longest wait for another connection's write */
#define LATE_STEPS 2000 /* of SQLite's machine, between two looks at the clock */
/* A commit writes to the page cache and no further. */
#define COMMITS    "PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=0"

/* What an attempt to deliver an event counts for: its texts, and what its row and its place in seven indices take. */
#define ATTEMPT_SIZE(row)                                                                                              \
  "(2048+length(CAST(" row ".url AS BLOB))+length(CAST(" row ".headers AS BLOB))+length(CAST(" row                     \
  ".message AS BLOB))+length(CAST(" row ".answer_headers AS BLOB))+length(CAST(" row ".answer AS BLOB)))"
#define SIZE_OF_ATTEMPT ATTEMPT_SIZE("webhook_attempt")
#define SIZE_OF_NEW     ATTEMPT_SIZE("NEW")
#define SIZE_OF_OLD     ATTEMPT_SIZE("OLD")

/* Migrations: entry i brings a database from version i to i + 1. Never edit one that was released; add another. */
static const char *const migrations[] = {
    "CREATE TABLE meta(name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE team(id TEXT PRIMARY KEY, name TEXT NOT NULL, slug TEXT NOT NULL UNIQUE);"
    "CREATE TABLE api_key(id TEXT PRIMARY KEY, team TEXT NOT NULL REFERENCES team(id), name TEXT NOT NULL, mask TEXT "
    "NOT NULL,"
    " hash BLOB NOT NULL UNIQUE, created INTEGER NOT NULL, used INTEGER NOT NULL);"
    "CREATE TABLE template(id TEXT PRIMARY KEY, team TEXT NOT NULL REFERENCES team(id), name TEXT NOT NULL, public "
    "INTEGER NOT NULL,"
    " created INTEGER NOT NULL, updated INTEGER NOT NULL, spawned INTEGER NOT NULL, spawns INTEGER NOT NULL, "
    "UNIQUE(team, name));"
    "CREATE TABLE build(id TEXT PRIMARY KEY, template TEXT NOT NULL REFERENCES template(id), layers TEXT NOT NULL, "
    "config TEXT NOT NULL,"
    " cpus INTEGER NOT NULL, memory_mb INTEGER NOT NULL, disk_mb INTEGER NOT NULL, created INTEGER NOT NULL);"
    "CREATE TABLE tag(template TEXT NOT NULL REFERENCES template(id), tag TEXT NOT NULL, build TEXT NOT NULL "
    "REFERENCES build(id),"
    " assigned INTEGER NOT NULL, PRIMARY KEY(template, tag)) WITHOUT ROWID;"
    "CREATE TABLE box(id TEXT PRIMARY KEY, team TEXT NOT NULL, template TEXT NOT NULL, alias TEXT NOT NULL, build TEXT "
    "NOT NULL,"
    " runtime TEXT NOT NULL, secret TEXT NOT NULL, config TEXT NOT NULL, init TEXT NOT NULL, flags INTEGER NOT NULL, "
    "cpus INTEGER NOT NULL,"
    " memory_mb INTEGER NOT NULL, disk_mb INTEGER NOT NULL, slot INTEGER NOT NULL, state INTEGER NOT NULL, run INTEGER "
    "NOT NULL,"
    " started INTEGER NOT NULL, end_at INTEGER NOT NULL, pid INTEGER NOT NULL, pid_start INTEGER NOT NULL) WITHOUT "
    "ROWID;"
    "CREATE TABLE ended(id TEXT PRIMARY KEY, team TEXT NOT NULL, at INTEGER NOT NULL, cause TEXT NOT NULL) WITHOUT "
    "ROWID;"
    "CREATE INDEX ended_at ON ended(at);",
    "ALTER TABLE team ADD COLUMN boxes_max INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE team ADD COLUMN creates_per_s INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE team ADD COLUMN timeout_max_s INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE team ADD COLUMN cpus_max INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE team ADD COLUMN memory_max_mb INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE team ADD COLUMN disk_max_mb INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE box ADD COLUMN timeout_s INTEGER NOT NULL DEFAULT 0;",
    "CREATE TABLE ended_log(id TEXT PRIMARY KEY, team TEXT NOT NULL, at INTEGER NOT NULL, lines BLOB NOT NULL);"
    "CREATE INDEX ended_log_at ON ended_log(at);",
    "ALTER TABLE box ADD COLUMN walls TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE box ADD COLUMN tier INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE box ADD COLUMN image TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE box ADD COLUMN image_bytes INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE box ADD COLUMN allow TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE box ADD COLUMN deny TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE build ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE build ADD COLUMN source TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE build ADD COLUMN image TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE build ADD COLUMN image_bytes INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE build ADD COLUMN runtime TEXT NOT NULL DEFAULT '';",
    "CREATE TABLE job(id TEXT PRIMARY KEY, template TEXT NOT NULL, team TEXT NOT NULL, tags TEXT NOT NULL, reason TEXT "
    "NOT NULL,"
    " step TEXT NOT NULL, state INTEGER NOT NULL, cpus INTEGER NOT NULL, memory_mb INTEGER NOT NULL, created INTEGER "
    "NOT NULL,"
    " started INTEGER NOT NULL, finished INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX job_template ON job(template);",
    "ALTER TABLE build ADD COLUMN secret TEXT NOT NULL DEFAULT '';",
    "ALTER TABLE team ADD COLUMN memory_total_mb INTEGER NOT NULL DEFAULT 0;",
    "ALTER TABLE team ADD COLUMN storage_max_mb INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE team ADD COLUMN paused_max INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE team ADD COLUMN snapshots_max INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE build ADD COLUMN layer_bytes INTEGER NOT NULL DEFAULT 0;",
    "ALTER TABLE box ADD COLUMN execution TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE box ADD COLUMN base TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE build ADD COLUMN base TEXT NOT NULL DEFAULT '';"
    "UPDATE box SET execution=lower(hex(randomblob(4))||'-'||hex(randomblob(2))||'-4'||substr(hex(randomblob(2)),2)||"
    "'-8'||substr(hex(randomblob(2)),2)||'-'||hex(randomblob(6)));"
    "CREATE TABLE event(seq INTEGER PRIMARY KEY, id TEXT NOT NULL, at INTEGER NOT NULL, team TEXT NOT NULL, sandbox "
    "TEXT NOT NULL,"
    " execution TEXT NOT NULL, template TEXT NOT NULL, build TEXT NOT NULL, type INTEGER NOT NULL, data TEXT NOT NULL);"
    "CREATE INDEX event_team ON event(team, at);"
    "CREATE INDEX event_sandbox ON event(sandbox, at);",
    "CREATE TABLE idempotency(team TEXT NOT NULL, key TEXT NOT NULL, fingerprint BLOB NOT NULL, box TEXT NOT NULL, "
    "created INTEGER NOT NULL, answered INTEGER NOT NULL DEFAULT 0, status INTEGER NOT NULL DEFAULT 0, message TEXT "
    "NOT NULL DEFAULT '', template TEXT NOT NULL DEFAULT '', alias TEXT NOT NULL DEFAULT '', flags INTEGER NOT NULL "
    "DEFAULT 0, PRIMARY KEY(team, key)) WITHOUT ROWID;"
    "CREATE INDEX idempotency_team ON idempotency(team, created);"
    "CREATE INDEX idempotency_created ON idempotency(created);",
    "CREATE TABLE tag_event(id TEXT PRIMARY KEY, template TEXT NOT NULL, tag TEXT NOT NULL, build TEXT NOT NULL, at "
    "INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX tag_event_tag ON tag_event(template, tag, at);"
    "CREATE INDEX tag_event_build ON tag_event(build);"
    /* What is known of the past: where each tag is now. The ids are random UUIDs of version 4. */
    "INSERT INTO tag_event SELECT lower(hex(randomblob(4))||'-'||hex(randomblob(2))||'-4'||substr(hex(randomblob(2)),2)"
    "||'-a'||substr(hex(randomblob(2)),2)||'-'||hex(randomblob(6))), template, tag, build, assigned FROM tag;",
    "CREATE TABLE team_sample(team TEXT NOT NULL, at INTEGER NOT NULL, span INTEGER NOT NULL, running INTEGER NOT NULL,"
    " starts INTEGER NOT NULL, PRIMARY KEY(team, at)) WITHOUT ROWID;"
    "CREATE INDEX team_sample_at ON team_sample(at);",
    "CREATE TABLE webhook(id TEXT PRIMARY KEY, team TEXT NOT NULL, name TEXT NOT NULL, url TEXT NOT NULL, origin TEXT "
    "NOT NULL, events TEXT NOT NULL, enabled INTEGER NOT NULL, secret BLOB NOT NULL, created INTEGER NOT NULL) WITHOUT "
    "ROWID;"
    "CREATE INDEX webhook_team ON webhook(team);"
    "CREATE TABLE webhook_gone(id TEXT PRIMARY KEY) WITHOUT ROWID;"
    "CREATE TABLE webhook_body(event TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE webhook_attempt(seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, webhook TEXT NOT NULL, team "
    "TEXT NOT NULL, event TEXT NOT NULL, sandbox TEXT NOT NULL, type TEXT NOT NULL, first INTEGER NOT NULL, number "
    "INTEGER NOT NULL, interrupted INTEGER NOT NULL, state INTEGER NOT NULL, due INTEGER NOT NULL, started INTEGER NOT "
    "NULL, duration_ms INTEGER NOT NULL, url TEXT NOT NULL, headers TEXT NOT NULL, class INTEGER NOT NULL, message "
    "TEXT "
    "NOT NULL, status INTEGER NOT NULL, answer_headers TEXT NOT NULL, answer TEXT NOT NULL);"
    "CREATE INDEX webhook_attempt_group ON webhook_attempt(webhook, first);"
    "CREATE INDEX webhook_attempt_time ON webhook_attempt(webhook, started);"
    "CREATE INDEX webhook_attempt_event ON webhook_attempt(event);"
    "CREATE INDEX webhook_attempt_team ON webhook_attempt(team);"
    "CREATE INDEX webhook_attempt_open ON webhook_attempt(state) WHERE state<2;"
    "CREATE TRIGGER webhook_body_unused AFTER DELETE ON webhook_attempt WHEN NOT EXISTS (SELECT 1 FROM webhook_attempt "
    "WHERE event=OLD.event) BEGIN DELETE FROM webhook_body WHERE event=OLD.event; END;",
    "ALTER TABLE job ADD COLUMN free_disk_mb INTEGER NOT NULL DEFAULT 0;",
    /* Of jobs that wait (state 1) and were given their recipe when they were requested. */
    "CREATE TABLE job_recipe(job TEXT PRIMARY KEY, recipe BLOB NOT NULL);"
    "CREATE TRIGGER job_recipe_used AFTER INSERT ON job WHEN NEW.state<>1 BEGIN DELETE FROM job_recipe WHERE "
    "job=NEW.id; END;"
    "CREATE TRIGGER job_recipe_gone AFTER DELETE ON job BEGIN DELETE FROM job_recipe WHERE job=OLD.id; END;",
    /* Values are sealed by the master key whose id is in `key`. */
    "CREATE TABLE secret(id TEXT PRIMARY KEY, team TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, "
    "metadata TEXT NOT NULL, created INTEGER NOT NULL, updated INTEGER NOT NULL, request TEXT NOT NULL, key TEXT NOT "
    "NULL, sealed BLOB NOT NULL);"
    "CREATE UNIQUE INDEX secret_name ON secret(team, name);"
    "CREATE INDEX secret_page ON secret(team, created, id);"
    "CREATE INDEX secret_key ON secret(key);",
    /* Events for webhooks before they are an attempt per webhook, and what a team's attempts take. */
    "CREATE TABLE webhook_fanout(seq INTEGER PRIMARY KEY AUTOINCREMENT, event TEXT NOT NULL, team TEXT NOT NULL, "
    "sandbox TEXT NOT NULL, type TEXT NOT NULL, at INTEGER NOT NULL, targets TEXT NOT NULL);"
    "DROP INDEX webhook_attempt_team;"
    "CREATE INDEX webhook_attempt_over ON webhook_attempt(team) WHERE state>=2;"
    "ALTER TABLE webhook_body ADD COLUMN team TEXT NOT NULL DEFAULT '';"
    "UPDATE webhook_body SET team=ifnull((SELECT team FROM webhook_attempt a WHERE a.event=webhook_body.event LIMIT "
    "1),'');"
    "CREATE TABLE webhook_usage(team TEXT PRIMARY KEY, n INTEGER NOT NULL, bytes INTEGER NOT NULL) WITHOUT ROWID;"
    "INSERT INTO webhook_usage SELECT team, count(*), sum(" SIZE_OF_ATTEMPT ") FROM webhook_attempt GROUP BY team;"
    "UPDATE webhook_usage SET bytes=bytes+ifnull((SELECT sum(length(body)) FROM webhook_body b WHERE "
    "b.team=webhook_usage.team),0);"
    "CREATE TRIGGER webhook_usage_body AFTER INSERT ON webhook_body BEGIN INSERT INTO webhook_usage VALUES(NEW.team,0,"
    "length(NEW.body)) ON CONFLICT(team) DO UPDATE SET bytes=bytes+excluded.bytes; END;"
    "CREATE TRIGGER webhook_usage_no_body AFTER DELETE ON webhook_body BEGIN UPDATE webhook_usage SET bytes=bytes-"
    "length(OLD.body) WHERE team=OLD.team; END;"
    "CREATE TRIGGER webhook_usage_add AFTER INSERT ON webhook_attempt BEGIN INSERT INTO webhook_usage VALUES(NEW.team,"
    "1," SIZE_OF_NEW ") ON CONFLICT(team) DO UPDATE SET n=n+1, bytes=bytes+excluded.bytes; END;"
    "CREATE TRIGGER webhook_usage_change AFTER UPDATE OF url, headers, message, answer_headers, answer ON "
    "webhook_attempt BEGIN UPDATE webhook_usage SET bytes=bytes+" SIZE_OF_NEW "-" SIZE_OF_OLD " WHERE team=NEW.team; "
    "END;"
    "CREATE TRIGGER webhook_usage_remove AFTER DELETE ON webhook_attempt BEGIN UPDATE webhook_usage SET n=n-1, "
    "bytes=bytes-" SIZE_OF_OLD " WHERE team=OLD.team; END;",
    /* state: enum volume_state; a name is free again as soon as its volume is being deleted. */
    "CREATE TABLE volume(id TEXT PRIMARY KEY, team TEXT NOT NULL, name TEXT NOT NULL, state INTEGER NOT NULL, created "
    "INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE UNIQUE INDEX volume_name ON volume(team, name) WHERE state<2;"
    "CREATE TABLE volume_mount(box TEXT NOT NULL, path TEXT NOT NULL, volume TEXT NOT NULL, PRIMARY KEY(box, path)) "
    "WITHOUT ROWID;"
    "CREATE INDEX volume_mount_volume ON volume_mount(volume);"
    "CREATE TRIGGER volume_mount_box AFTER DELETE ON box BEGIN DELETE FROM volume_mount WHERE box=OLD.id; END;"
    "CREATE TRIGGER volume_mount_gone AFTER DELETE ON volume BEGIN DELETE FROM volume_mount WHERE volume=OLD.id; END;",
    /* The rows of boxes say what mounts a volume. */
    "DROP TRIGGER volume_mount_box; DROP TRIGGER volume_mount_gone; DROP TABLE volume_mount;"
    /* What a box or a copy of one mounts, lines of volume_mounts.h; owner is the id of either. */
    "CREATE TABLE mounts(owner TEXT PRIMARY KEY, lines TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TRIGGER mounts_box AFTER DELETE ON box BEGIN DELETE FROM mounts WHERE owner=OLD.id; END;"
    "CREATE TRIGGER mounts_build AFTER DELETE ON build BEGIN DELETE FROM mounts WHERE owner=OLD.id; END;",
    /* Events are counted by team as well; keys that were made for an access token go with it. */
    "ALTER TABLE event ADD COLUMN place INTEGER NOT NULL DEFAULT 0;"
    "UPDATE event SET place=n FROM (SELECT seq AS at_seq, row_number() OVER (PARTITION BY team ORDER BY seq) AS n FROM "
    "event) WHERE seq=at_seq;"
    "CREATE INDEX event_place ON event(team, place);"
    "ALTER TABLE api_key ADD COLUMN token TEXT NOT NULL DEFAULT '';",
    "CREATE TABLE identity_key(id TEXT PRIMARY KEY, x TEXT NOT NULL, y TEXT NOT NULL, created INTEGER NOT NULL, until "
    "INTEGER NOT NULL, key TEXT NOT NULL, sealed BLOB NOT NULL);"
    "CREATE TABLE box_tokens(box TEXT PRIMARY KEY, tokens TEXT NOT NULL);"
    "CREATE TRIGGER box_tokens_gone AFTER DELETE ON box BEGIN DELETE FROM box_tokens WHERE box=OLD.id; END;",
    "CREATE TABLE box_egress(box TEXT PRIMARY KEY, sealed BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TRIGGER box_egress_gone AFTER DELETE ON box BEGIN DELETE FROM box_egress WHERE box=OLD.id; END;",
    /* Sealed by the master key whose id is in `key`; what another key sealed before does not open any more. */
    "ALTER TABLE box_egress ADD COLUMN key TEXT NOT NULL DEFAULT '';"
    "CREATE INDEX box_egress_key ON box_egress(key, box);",
    "ALTER TABLE api_key ADD COLUMN expires INTEGER NOT NULL DEFAULT 0;",
    "ALTER TABLE volume ADD COLUMN attached INTEGER NOT NULL DEFAULT 0;",
};

static int sql_err(struct store *s, struct err *err, const char *what)
{
  return err_set(err, -EIO, "database %s: %s: %s", s->path, what, sqlite3_errmsg(s->db));
}

int sql_run(struct store *s, const char *sql, struct err *err)
{
  return sqlite3_exec(s->db, sql, NULL, NULL, NULL) ? sql_err(s, err, "statement") : 0;
}

_Static_assert(ARRAY_LEN(migrations) == STORE_SCHEMA, "the number in store.h");

static int user_version(struct store *s)
{
  sqlite3_stmt *st;
  if (sqlite3_prepare_v2(s->db, "PRAGMA user_version", -1, &st, NULL))
    return -1;
  int v = sqlite3_step(st) == SQLITE_ROW ? sqlite3_column_int(st, 0) : -1;
  sqlite3_finalize(st);
  return v;
}

static int migrate(struct store *s, struct err *err)
{
  int have = user_version(s), want = STORE_SCHEMA;
  if (have < 0)
    return sql_err(s, err, "version");
  if (have > want)
    return err_set(err, -ENOTSUP,
                   "database %s was written by a newer cloche (schema %d, this one knows %d); run that version or "
                   "another data directory",
                   s->path, have, want);
  for (int v = have; v < want; v++) {
    char set[64];
    snprintf(set, sizeof(set), "PRAGMA user_version=%d; COMMIT", v + 1);
    int r = sql_run(s, "BEGIN IMMEDIATE", err);
    r = r ? r : sql_run(s, migrations[v], err);
    r = r ? r : sql_run(s, set, err);
    if (r) {
      sql_run(s, "ROLLBACK", NULL);
      return r;
    }
  }
  return 0;
}

int store_open(const char *path, struct store **out, struct err *err)
{
  struct store *s = xcalloc(1, sizeof(*s));
  s->path = xstrdup(path);
  int r = sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL)
              ? sql_err(s, err, "open")
              : 0;
  if (!r)
    sqlite3_busy_timeout(s->db, BUSY_MS);
  s->readers = readers_new();
  r = r ? r : sql_run(s, "PRAGMA journal_mode=WAL; " COMMITS "; PRAGMA foreign_keys=ON", err);
  r = r ? r : migrate(s, err);
  if (r)
    store_close(s);
  else
    *out = s;
  return r;
}

void store_close(struct store *s)
{
  if (!s)
    return;
  void *st;
  for (size_t i = 0; map_next(&s->statements, &i, NULL, &st);)
    sqlite3_finalize(st);
  map_free(&s->statements);
  sqlite3_close(s->db);
  if (s->reads)
    readers_leave(s->readers);
  else
    readers_free(s->readers);
  free(s->path);
  free(s);
}

static int open_other(const struct store *s, int flags, const char *how, struct store **out, struct err *err)
{
  struct store *other = xcalloc(1, sizeof(*other));
  other->path = xstrdup(s->path);
  int r = sqlite3_open_v2(s->path, &other->db, flags | SQLITE_OPEN_NOMUTEX, NULL) ? sql_err(other, err, "open") : 0;
  if (!r)
    sqlite3_busy_timeout(other->db, BUSY_MS);
  r = r ? r : sql_run(other, how, err);
  if (r)
    store_close(other);
  *out = r ? NULL : other;
  return r;
}

/* SQLite asks now and then, inside a statement. */
static int is_late(void *arg)
{
  struct store *reader = arg;
  reader->late = reader->late || clock_mono_us() > reader->until_us;
  return reader->late;
}

int store_open_reader(const struct store *s, struct store **out, struct err *err)
{
  readers_enter(s->readers);
  int r = open_other(s, SQLITE_OPEN_READONLY, "", out, err);
  if (r) {
    readers_leave(s->readers);
    return r;
  }
  (*out)->readers = s->readers;
  (*out)->reads = true;
  (*out)->read_us = s->read_us;
  (*out)->until_us = clock_mono_us() + s->read_us;
  if (s->read_us)
    sqlite3_progress_handler((*out)->db, LATE_STEPS, is_late, *out);
  return 0;
}

int store_open_writer(const struct store *s, struct store **out, struct err *err)
{
  return open_other(s, SQLITE_OPEN_READWRITE, COMMITS, out, err);
}

/* ---- statements ---- */

static sqlite3_stmt *prepared(struct store *s, const char *sql)
{
  sqlite3_stmt *st = map_get(&s->statements, str_of(sql));
  if (st)
    return st;
  if (sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &st, NULL)) {
    log_error("database %s: %s", s->path, sqlite3_errmsg(s->db));
    return NULL;
  }
  map_put(&s->statements, str_of(sql), st);
  return st;
}

static sqlite3_stmt *bind(struct store *s, const char *sql, const char *kinds, va_list ap)
{
  sqlite3_stmt *st = prepared(s, sql);
  for (int i = 1; st && *kinds; kinds++, i++) {
    if (*kinds == 't') {
      sqlite3_bind_text(st, i, va_arg(ap, const char *), -1, SQLITE_TRANSIENT);
    } else if (*kinds == 'i') {
      sqlite3_bind_int64(st, i, va_arg(ap, int64_t));
    } else {
      struct str v = va_arg(ap, struct str);
      if (*kinds == 's')
        sqlite3_bind_text(st, i, v.p ? v.p : "", (int)v.n, SQLITE_TRANSIENT);
      else
        sqlite3_bind_blob(st, i, v.p ? v.p : "", (int)v.n, SQLITE_TRANSIENT);
    }
  }
  return st;
}

void sql_done(sqlite3_stmt *st)
{
  if (!st)
    return;
  sqlite3_reset(st);
  sqlite3_clear_bindings(st);
}

int sql_change(struct store *s, struct err *err, const char *sql, const char *kinds, ...)
{
  va_list ap;
  va_start(ap, kinds);
  sqlite3_stmt *st = bind(s, sql, kinds, ap);
  va_end(ap);
  if (!st)
    return err_set(err, -EIO, "database %s: bad statement", s->path);
  int r = sqlite3_step(st) == SQLITE_DONE ? 0 : sql_err(s, err, "write");
  sql_done(st);
  return r;
}

sqlite3_stmt *sql_query(struct store *s, const char *sql, const char *kinds, ...)
{
  va_list ap;
  va_start(ap, kinds);
  sqlite3_stmt *st = bind(s, sql, kinds, ap);
  va_end(ap);
  return st;
}

struct str sql_str(sqlite3_stmt *st, int i)
{
  const void *p = sqlite3_column_blob(st, i);
  return (struct str){p, (size_t)sqlite3_column_bytes(st, i)};
}

void sql_z(sqlite3_stmt *st, int i, char *dst, size_t size)
{
  if (str_copyz(sql_str(st, i), dst, size))
    dst[0] = 0;
}

char *sql_dup(sqlite3_stmt *st, int i)
{
  struct str s = sql_str(st, i);
  return xstrndup(s.n ? s.p : "", s.n);
}

/* ---- transactions ---- */

int store_begin(struct store *s, struct err *err)
{
  int r = s->depth ? 0 : sql_change(s, err, "BEGIN IMMEDIATE", "");
  s->depth += !r;
  return r;
}

int store_end(struct store *s, int r, struct err *err)
{
  s->spoiled |= r != 0;
  if (--s->depth)
    return r;
  if (!s->spoiled && !(r = sql_change(s, err, "COMMIT", "")))
    return 0;
  s->spoiled = false;
  sql_change(s, NULL, "ROLLBACK", "");
  return r ? r : err_set(err, -EIO, "database %s: a part of the change failed", s->path);
}

/* ---- tables ---- */

int store_build_delete(struct store *s, const char *id, struct err *err)
{
  int r = sql_change(s, err, "DELETE FROM tag WHERE build=?", "t", id);
  r = r ? r : sql_change(s, err, "DELETE FROM tag_event WHERE build=?", "t", id);
  return r ? r : sql_change(s, err, "DELETE FROM build WHERE id=?", "t", id);
}

int store_build_drop_checkpoint(struct store *s, const char *id, struct err *err)
{
  return sql_change(s, err, "UPDATE build SET image='', image_bytes=0 WHERE id=?", "t", id);
}

int store_meta_get(struct store *s, const char *name, struct buf *out)
{
  sqlite3_stmt *st = sql_query(s, "SELECT value FROM meta WHERE name=?", "t", name);
  int r = st && sqlite3_step(st) == SQLITE_ROW ? buf_adds(out, sql_str(st, 0)) : -ENOENT;
  sql_done(st);
  return r;
}

int store_meta_put(struct store *s, const char *name, struct str value, struct err *err)
{
  return sql_change(s, err, "INSERT INTO meta VALUES(?,?) ON CONFLICT(name) DO UPDATE SET value=excluded.value", "tb",
                    name, value);
}

int store_team_put(struct store *s, const struct row_team *r, struct err *err)
{
  return sql_change(
      s, err,
      "INSERT INTO team(id, name, slug, boxes_max, creates_per_s, timeout_max_s, cpus_max, memory_max_mb, disk_max_mb, "
      "storage_max_mb,"
      " paused_max, snapshots_max, memory_total_mb) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(id) DO UPDATE SET "
      "name=excluded.name, "
      "slug=excluded.slug,"
      " boxes_max=excluded.boxes_max, creates_per_s=excluded.creates_per_s, timeout_max_s=excluded.timeout_max_s,"
      " cpus_max=excluded.cpus_max, memory_max_mb=excluded.memory_max_mb, disk_max_mb=excluded.disk_max_mb,"
      " storage_max_mb=excluded.storage_max_mb, paused_max=excluded.paused_max, snapshots_max=excluded.snapshots_max,"
      " memory_total_mb=excluded.memory_total_mb",
      "tttiiiiiiiiii", r->id, r->name, r->slug, (int64_t)r->boxes_max, (int64_t)r->creates_per_s,
      (int64_t)r->timeout_max_s, (int64_t)r->cpus_max, (int64_t)r->memory_max_mb, (int64_t)r->disk_max_mb,
      (int64_t)r->storage_max_mb, (int64_t)r->paused_max, (int64_t)r->snapshots_max, (int64_t)r->memory_total_mb);
}

int store_key_put(struct store *s, const struct row_key *r, struct err *err)
{
  return sql_change(s, err,
                    "INSERT INTO api_key VALUES(?,?,?,?,?,?,?,?,?) ON CONFLICT(id) DO UPDATE SET name=excluded.name, "
                    "used=excluded.used",
                    "ttttbiiti", r->id, r->team, r->name, r->mask, str_make(r->hash, SHA256_LEN), r->created_us,
                    r->used_us, r->token, r->expires_us);
}

int store_key_delete(struct store *s, const char *id, struct err *err)
{
  return sql_change(s, err, "DELETE FROM api_key WHERE id=?1 OR (token=?1 AND token<>'')", "t", id);
}

int store_template_put(struct store *s, const struct row_template *r, struct err *err)
{
  return sql_change(s, err,
                    "INSERT INTO template VALUES(?,?,?,?,?,?,?,?) ON CONFLICT(id) DO UPDATE SET name=excluded.name, "
                    "public=excluded.public,"
                    " updated=excluded.updated, spawned=excluded.spawned, spawns=excluded.spawns",
                    "tttiiiii", r->id, r->team, r->name, (int64_t)r->public, r->created_us, r->updated_us,
                    r->spawned_us, (int64_t)r->spawns);
}

/* Before the row itself: what a crash leaves of it names nobody. */
static int put_mounts(struct store *s, const char *owner, const char *lines, struct err *err)
{
  return lines && *lines ? sql_change(s, err, "INSERT OR REPLACE INTO mounts VALUES(?,?)", "tt", owner, lines) : 0;
}

int store_build_put(struct store *s, const struct row_build *r, struct err *err)
{
  int failed = put_mounts(s, r->id, r->mounts, err);
  if (failed)
    return failed;
  return sql_change(s, err,
                    "INSERT INTO build(id, template, layers, config, cpus, memory_mb, disk_mb, created, kind, source, "
                    "image, image_bytes, runtime, secret,"
                    " layer_bytes, base) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                    "ttttiiiiittittit", r->id, r->template_id, r->layers, r->config, (int64_t)r->cpus,
                    (int64_t)r->memory_mb, (int64_t)r->disk_mb, r->created_us, (int64_t)r->kind, r->source,
                    r->checkpoint, (int64_t)r->checkpoint_size, r->runtime, r->secret, (int64_t)r->layer_bytes,
                    r->base);
}

int store_tag_put(struct store *s, const char *template_id, const char *tag, const char *build, int64_t when,
                  struct err *err)
{
  return sql_change(s, err,
                    "INSERT INTO tag VALUES(?,?,?,?) ON CONFLICT(template,tag) DO UPDATE SET build=excluded.build, "
                    "assigned=excluded.assigned",
                    "ttti", template_id, tag, build, when);
}

int store_tag_delete(struct store *s, const char *template_id, const char *tag, struct err *err)
{
  int r = sql_change(s, err, "DELETE FROM tag WHERE template=? AND tag=?", "tt", template_id, tag);
  return r ? r : sql_change(s, err, "DELETE FROM tag_event WHERE template=? AND tag=?", "tt", template_id, tag);
}

int store_template_delete(struct store *s, const char *id, struct err *err)
{
  int r = store_begin(s, err);
  if (r)
    return r;
  r = sql_change(s, err, "DELETE FROM tag WHERE template=?", "t", id);
  r = r ? r : sql_change(s, err, "DELETE FROM tag_event WHERE template=?", "t", id);
  r = r ? r : sql_change(s, err, "DELETE FROM build WHERE template=?", "t", id);
  r = r ? r : sql_change(s, err, "DELETE FROM job WHERE template=?", "t", id);
  r = r ? r : sql_change(s, err, "DELETE FROM template WHERE id=?", "t", id);
  return store_end(s, r, err);
}

static int put_box(struct store *s, const struct row_box *r, struct err *err)
{
  int failed = put_mounts(s, r->id, r->mounts, err);
  if (failed)
    return failed;
  return sql_change(
      s, err, "INSERT OR REPLACE INTO box VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
      "tttttttttiiiiiiiiiiiitititttt", r->id, r->team, r->template_id, r->alias, r->build, r->runtime, r->secret,
      r->config, r->init, (int64_t)r->flags, (int64_t)r->cpus, (int64_t)r->memory_mb, (int64_t)r->disk_mb,
      (int64_t)r->slot, (int64_t)r->state, (int64_t)r->run, r->started_us, r->end_us, (int64_t)r->init_proc.pid,
      (int64_t)r->init_proc.start, (int64_t)r->timeout_s, r->host_name, (int64_t)r->tier, r->checkpoint,
      (int64_t)r->checkpoint_size, r->allow ? r->allow : "", r->deny ? r->deny : "", r->execution, r->base);
}

int store_box_put(struct store *s, const struct row_box *r, struct err *err)
{
  if (!r->tokens || !r->tokens[0])
    return put_box(s, r, err);
  int e = store_begin(s, err);
  if (e)
    return e;
  e = put_box(s, r, err);
  e = e ? e : sql_change(s, err, "INSERT OR REPLACE INTO box_tokens VALUES(?,?)", "tt", r->id, r->tokens);
  return store_end(s, e, err);
}

int store_box_end_time(struct store *s, const char *id, int64_t end_us, struct err *err)
{
  return sql_change(s, err, "UPDATE box SET end_at=? WHERE id=?", "it", end_us, id);
}

int store_box_ended(struct store *s, const char *id, const char *team, int64_t when_us, const char *cause,
                    struct err *err)
{
  int r = store_begin(s, err);
  if (r)
    return r;
  r = sql_change(s, err, "DELETE FROM box WHERE id=?", "t", id);
  r = r ? r : sql_change(s, err, "INSERT OR REPLACE INTO ended VALUES(?,?,?,?)", "ttit", id, team, when_us, cause);
  return store_end(s, r, err);
}

int store_cause(struct store *s, struct str id, struct str team, char *cause, size_t size, int64_t *when_us)
{
  sqlite3_stmt *st = sql_query(s, "SELECT cause, at FROM ended WHERE id=? AND (?2='' OR team=?2)", "ss", id, team);
  int r = st && sqlite3_step(st) == SQLITE_ROW ? 0 : -ENOENT;
  if (!r) {
    sql_z(st, 0, cause, size);
    *when_us = sqlite3_column_int64(st, 1);
  }
  sql_done(st);
  return r;
}

int store_forget_ended(struct store *s, int64_t before_us)
{
  int r = sql_change(s, NULL, "DELETE FROM ended_log WHERE at<?", "i", before_us);
  return r ? r : sql_change(s, NULL, "DELETE FROM ended WHERE at<?", "i", before_us);
}

int store_log_put(struct store *s, const char *id, const char *team, int64_t when_us, struct str lines, struct err *err)
{
  return sql_change(s, err, "INSERT OR REPLACE INTO ended_log VALUES(?,?,?,?)", "ttib", id, team, when_us, lines);
}

int store_log_get(struct store *s, struct str id, struct str team, struct buf *out)
{
  sqlite3_stmt *st = sql_query(s, "SELECT lines FROM ended_log WHERE id=? AND (?2='' OR team=?2)", "ss", id, team);
  int r = st && sqlite3_step(st) == SQLITE_ROW ? buf_adds(out, sql_str(st, 0)) : -ENOENT;
  sql_done(st);
  return r;
}

int store_log_trim(struct store *s, uint64_t bytes)
{
  return sql_change(
      s, NULL,
      "DELETE FROM ended_log WHERE id IN (SELECT id FROM (SELECT id, SUM(length(lines)) OVER (ORDER BY at "
      "DESC, id) AS total"
      " FROM ended_log) WHERE total>?)",
      "i", (int64_t)bytes);
}

int store_teams(struct store *s, int (*fn)(const struct row_team *, void *), void *arg)
{
  sqlite3_stmt *st = sql_query(
      s,
      "SELECT "
      "id,name,slug,boxes_max,creates_per_s,timeout_max_s,cpus_max,memory_max_mb,disk_max_mb,storage_max_mb,paused_max,"
      "snapshots_max,memory_total_mb FROM team",
      "");
  int r = 0;
  SQL_EACH_ROW(st)
  {
    struct row_team t = {0};
    sql_z(st, 0, t.id, sizeof(t.id));
    sql_z(st, 1, t.name, sizeof(t.name));
    sql_z(st, 2, t.slug, sizeof(t.slug));
    uint32_t *const limits[] = {&t.boxes_max,     &t.creates_per_s,  &t.timeout_max_s,  &t.cpus_max,
                                &t.memory_max_mb, &t.disk_max_mb,    &t.storage_max_mb, &t.paused_max,
                                &t.snapshots_max, &t.memory_total_mb};
    for (int i = 0; i < (int)ARRAY_LEN(limits); i++)
      *limits[i] = (uint32_t)sqlite3_column_int64(st, 3 + i);
    if ((r = fn(&t, arg)))
      break;
  }
  sql_done(st);
  return r;
}

int store_keys(struct store *s, int (*fn)(const struct row_key *, void *), void *arg)
{
  sqlite3_stmt *st =
      sql_query(s, "SELECT id,team,name,mask,hash,created,used,token,expires FROM api_key ORDER BY created", "");
  int r = 0;
  SQL_EACH_ROW(st)
  {
    struct row_key k = {0};
    sql_z(st, 0, k.id, sizeof(k.id));
    sql_z(st, 1, k.team, sizeof(k.team));
    sql_z(st, 2, k.name, sizeof(k.name));
    sql_z(st, 3, k.mask, sizeof(k.mask));
    struct str h = sql_str(st, 4);
    memcpy(k.hash, h.p, MIN(h.n, sizeof(k.hash)));
    k.created_us = sqlite3_column_int64(st, 5);
    k.used_us = sqlite3_column_int64(st, 6);
    sql_z(st, 7, k.token, sizeof(k.token));
    k.expires_us = sqlite3_column_int64(st, 8);
    if ((r = fn(&k, arg)))
      break;
  }
  sql_done(st);
  return r;
}

int store_templates(struct store *s, int (*fn)(const struct row_template *, void *), void *arg)
{
  sqlite3_stmt *st = sql_query(s, "SELECT id,team,name,public,created,updated,spawned,spawns FROM template", "");
  int r = 0;
  SQL_EACH_ROW(st)
  {
    struct row_template t = {0};
    sql_z(st, 0, t.id, sizeof(t.id));
    sql_z(st, 1, t.team, sizeof(t.team));
    sql_z(st, 2, t.name, sizeof(t.name));
    t.public = sqlite3_column_int(st, 3) != 0;
    t.created_us = sqlite3_column_int64(st, 4);
    t.updated_us = sqlite3_column_int64(st, 5);
    t.spawned_us = sqlite3_column_int64(st, 6);
    t.spawns = (uint64_t)sqlite3_column_int64(st, 7);
    if ((r = fn(&t, arg)))
      break;
  }
  sql_done(st);
  return r;
}

int store_builds(struct store *s, int (*fn)(const struct row_build *, void *), void *arg)
{
  sqlite3_stmt *st =
      sql_query(s,
                "SELECT "
                "id,template,layers,config,cpus,memory_mb,disk_mb,created,kind,source,image,image_bytes,"
                "runtime,secret,layer_bytes,base,(SELECT lines FROM mounts WHERE owner=build.id) FROM build",
                "");
  int r = 0;
  SQL_EACH_ROW(st)
  {
    struct row_build b = {.layers = sql_dup(st, 2), .config = sql_dup(st, 3), .mounts = sql_dup(st, 16)};
    sql_z(st, 0, b.id, sizeof(b.id));
    sql_z(st, 1, b.template_id, sizeof(b.template_id));
    b.cpus = (unsigned)sqlite3_column_int(st, 4);
    b.memory_mb = (unsigned)sqlite3_column_int(st, 5);
    b.disk_mb = (unsigned)sqlite3_column_int(st, 6);
    b.created_us = sqlite3_column_int64(st, 7);
    b.kind = (enum build_kind)sqlite3_column_int(st, 8);
    sql_z(st, 9, b.source, sizeof(b.source));
    sql_z(st, 10, b.checkpoint, sizeof(b.checkpoint));
    b.checkpoint_size = (uint64_t)sqlite3_column_int64(st, 11);
    sql_z(st, 12, b.runtime, sizeof(b.runtime));
    sql_z(st, 13, b.secret, sizeof(b.secret));
    b.layer_bytes = (uint64_t)sqlite3_column_int64(st, 14);
    sql_z(st, 15, b.base, sizeof(b.base));
    r = fn(&b, arg);
    row_build_free(&b);
    if (r)
      break;
  }
  sql_done(st);
  return r;
}

int store_job_put(struct store *s, const struct row_job *r, struct err *err)
{
  return sql_change(s, err, "INSERT OR REPLACE INTO job VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)", "ttttttiiiiiii", r->id,
                    r->template_id, r->team, r->tags, r->reason ? r->reason : "", r->step, (int64_t)r->state,
                    (int64_t)r->cpus, (int64_t)r->memory_mb, r->created_us, r->started_us, r->finished_us,
                    (int64_t)r->free_disk_mb);
}

int store_job_recipe_put(struct store *s, const char *id, struct str recipe, struct err *err)
{
  return sql_change(s, err, "INSERT OR REPLACE INTO job_recipe VALUES(?,?)", "tb", id, recipe);
}

int store_job_recipe(struct store *s, const char *id, struct buf *out)
{
  sqlite3_stmt *st = sql_query(s, "SELECT recipe FROM job_recipe WHERE job=?", "t", id);
  int r = st && sqlite3_step(st) == SQLITE_ROW ? buf_adds(out, sql_str(st, 0)) : -ENOENT;
  sql_done(st);
  return r;
}

int store_job_delete(struct store *s, const char *id, struct err *err)
{
  return sql_change(s, err, "DELETE FROM job WHERE id=?", "t", id);
}

int store_jobs(struct store *s, int (*fn)(const struct row_job *, void *), void *arg)
{
  sqlite3_stmt *st = sql_query(
      s, "SELECT id,template,team,tags,reason,step,state,cpus,memory_mb,created,started,finished,free_disk_mb FROM job",
      "");
  int r = 0;
  SQL_EACH_ROW(st)
  {
    struct row_job j = {.tags = sql_dup(st, 3), .reason = sql_dup(st, 4)};
    sql_z(st, 0, j.id, sizeof(j.id));
    sql_z(st, 1, j.template_id, sizeof(j.template_id));
    sql_z(st, 2, j.team, sizeof(j.team));
    sql_z(st, 5, j.step, sizeof(j.step));
    unsigned *const ints[] = {&j.state, &j.cpus, &j.memory_mb};
    for (int i = 0; i < (int)ARRAY_LEN(ints); i++)
      *ints[i] = (unsigned)sqlite3_column_int64(st, 6 + i);
    int64_t *const times[] = {&j.created_us, &j.started_us, &j.finished_us};
    for (int i = 0; i < (int)ARRAY_LEN(times); i++)
      *times[i] = sqlite3_column_int64(st, 9 + i);
    j.free_disk_mb = (unsigned)sqlite3_column_int64(st, 12);
    r = fn(&j, arg);
    row_job_free(&j);
    if (r)
      break;
  }
  sql_done(st);
  return r;
}

int store_tags(struct store *s, int (*fn)(const char *, const char *, const char *, int64_t, void *), void *arg)
{
  sqlite3_stmt *st = sql_query(s, "SELECT template,tag,build,assigned FROM tag", "");
  int r = 0;
  SQL_EACH_ROW(st)
  {
    r = fn((const char *)sqlite3_column_text(st, 0), (const char *)sqlite3_column_text(st, 1),
           (const char *)sqlite3_column_text(st, 2), sqlite3_column_int64(st, 3), arg);
    if (r)
      break;
  }
  sql_done(st);
  return r;
}

int store_boxes(struct store *s, int (*fn)(const struct row_box *, void *), void *arg)
{
  sqlite3_stmt *st = sql_query(
      s,
      "SELECT "
      "id,team,template,alias,build,runtime,secret,config,init,flags,cpus,memory_mb,disk_mb,slot,state,run,started,"
      "end_at,pid,pid_start,timeout_s,walls,tier,image,image_bytes,allow,deny,execution,base,"
      "(SELECT lines FROM mounts WHERE owner=box.id),(SELECT tokens FROM box_tokens WHERE box=id) FROM box",
      "");
  int r = 0;
  SQL_EACH_ROW(st)
  {
    struct row_box b = {.config = sql_dup(st, 7),
                        .init = sql_dup(st, 8),
                        .allow = sql_dup(st, 25),
                        .deny = sql_dup(st, 26),
                        .mounts = sql_dup(st, 29),
                        .tokens = sql_dup(st, 30)};
    sql_z(st, 0, b.id, sizeof(b.id));
    sql_z(st, 1, b.team, sizeof(b.team));
    sql_z(st, 2, b.template_id, sizeof(b.template_id));
    sql_z(st, 3, b.alias, sizeof(b.alias));
    sql_z(st, 4, b.build, sizeof(b.build));
    sql_z(st, 5, b.runtime, sizeof(b.runtime));
    sql_z(st, 6, b.secret, sizeof(b.secret));
    unsigned *const ints[] = {&b.flags, &b.cpus, &b.memory_mb, &b.disk_mb, &b.slot, &b.state};
    for (int i = 0; i < (int)ARRAY_LEN(ints); i++)
      *ints[i] = (unsigned)sqlite3_column_int64(st, 9 + i);
    b.run = (uint64_t)sqlite3_column_int64(st, 15);
    b.started_us = sqlite3_column_int64(st, 16);
    b.end_us = sqlite3_column_int64(st, 17);
    b.init_proc = (struct proc_id){(pid_t)sqlite3_column_int64(st, 18), (uint64_t)sqlite3_column_int64(st, 19)};
    b.timeout_s = (unsigned)sqlite3_column_int64(st, 20);
    sql_z(st, 21, b.host_name, sizeof(b.host_name));
    b.tier = (unsigned)sqlite3_column_int64(st, 22);
    sql_z(st, 23, b.checkpoint, sizeof(b.checkpoint));
    b.checkpoint_size = (uint64_t)sqlite3_column_int64(st, 24);
    sql_z(st, 27, b.execution, sizeof(b.execution));
    sql_z(st, 28, b.base, sizeof(b.base));
    r = fn(&b, arg);
    row_box_free(&b);
    if (r)
      break;
  }
  sql_done(st);
  return r;
}

void row_job_free(struct row_job *r)
{
  free(r->tags);
  free(r->reason);
  r->tags = r->reason = NULL;
}

void row_build_free(struct row_build *r)
{
  free(r->layers);
  free(r->config);
  free(r->mounts);
  r->layers = r->config = r->mounts = NULL;
}

void row_box_free(struct row_box *r)
{
  free(r->config);
  free(r->init);
  free(r->allow);
  free(r->deny);
  free(r->mounts);
  free(r->tokens);
  r->config = r->init = r->allow = r->deny = r->mounts = r->tokens = NULL;
}
