/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_schema.c - the tables of the store in SQLite, migration by migration. Those in PostgreSQL are in
 * src/store/postgres_schema.c; a test compares the two. */
#include "warden/db/sqlite_schema.h"

#include "warden/db/store.h"

/* What an attempt to deliver an event counts for: its texts, and what its row and its place in seven indices take. */
#define ATTEMPT_SIZE(row)                                                                                              \
  "(2048+length(CAST(" row ".url AS BLOB))+length(CAST(" row ".headers AS BLOB))+length(CAST(" row                     \
  ".message AS BLOB))+length(CAST(" row ".answer_headers AS BLOB))+length(CAST(" row ".answer AS BLOB)))"
#define SIZE_OF_ATTEMPT ATTEMPT_SIZE("webhook_attempt")
#define SIZE_OF_NEW     ATTEMPT_SIZE("NEW")
#define SIZE_OF_OLD     ATTEMPT_SIZE("OLD")

/* Migrations: entry i brings a database from version i to i + 1. Never edit one that was released; add another. */
const char *const sqlite_migrations[] = {
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
    /* A job that is saved again is updated, where it used to be replaced. */
    "CREATE TRIGGER job_recipe_moved AFTER UPDATE ON job WHEN NEW.state<>1 BEGIN DELETE FROM job_recipe WHERE "
    "job=NEW.id; END;",
    "ALTER TABLE team ADD COLUMN isolation INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE build ADD COLUMN isolation INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN isolation INTEGER NOT NULL DEFAULT 0;",
};

_Static_assert(ARRAY_LEN(sqlite_migrations) == STORE_SCHEMA, "the number in store.h");
