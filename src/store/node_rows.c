/* SPDX-License-Identifier: Apache-2.0 */
/* node_rows.c - see node_rows.h. */
#include "store/node_rows.h"

#include "warden/db/store_sql.h"

#define NOW "CAST(extract(epoch FROM clock_timestamp())*1000000 AS BIGINT)"
#define FIGURES                                                                                                        \
  "status,since,running,starting,paused,warm,creates,creates_failed,cpus,cpus_given,load,memory,"                      \
  "memory_given,memory_used"
#define TEXTS "address,version,labels,tiers,hardware,templates"
/* Of the values below: ?1 to ?14 figures, ?15 to ?20 texts. */
#define SET                                                                                                            \
  "status=?1,since=?2,running=?3,starting=?4,paused=?5,warm=?6,creates=?7,creates_failed=?8,cpus=?9,cpus_given=?10,"   \
  "load=?11,memory=?12,memory_given=?13,memory_used=?14,address=?15,version=?16,labels=?17,tiers=?18,hardware=?19,"    \
  "templates=?20,wanted=CASE WHEN node.wanted=?1 THEN 0 ELSE node.wanted END,lease_until=" NOW "+?21"
#define KINDS "iiiiiiiiiiiiiitttttti"
#define VALUES(r, l)                                                                                                   \
  (int64_t)(r)->n.status, (r)->n.since_us, (int64_t)(r)->n.running, (int64_t)(r)->n.starting, (int64_t)(r)->n.paused,  \
      (int64_t)(r)->n.warm, (int64_t)(r)->n.creates, (int64_t)(r)->n.creates_failed, (int64_t)(r)->n.cpus,             \
      (int64_t)(r)->n.cpus_given, (int64_t)(r)->n.load, (int64_t)(r)->n.memory, (int64_t)(r)->n.memory_given,          \
      (int64_t)(r)->n.memory_used, (r)->address, (r)->version, (r)->labels, (r)->tiers, (r)->hardware, (r)->templates, \
      (l)->us

static int broken(struct err *err)
{
  return err_set(err, -EIO, "PostgreSQL did not answer about the nodes; the log says why");
}

/* One row of epoch and wanted: 0; none: 1. */
static int take(struct sql_rows *rows, uint64_t *epoch, uint64_t *wanted, struct err *err)
{
  bool any = rows && sql_next(rows);
  if (any) {
    *epoch = (uint64_t)sql_int(rows, 0);
    *wanted = (uint64_t)sql_int(rows, 1);
  }
  int r = !rows || sql_failed(rows) ? broken(err) : any ? 0 : 1;
  sql_done(rows);
  return r;
}

static int taken(struct store *s, const char *name, struct err *err)
{
  struct sql_rows *rows =
      sql_query(s, "SELECT address,(lease_until-" NOW ")/1000000 FROM node WHERE name=?", "t", name);
  if (rows && sql_next(rows))
    err_set(err, -EEXIST,
            "the node name '%s' is another machine's (at %s, for %lld s from now on); set node_name to one of this "
            "machine's own",
            name, sql_text(rows, 0), (long long)MAX(sql_int(rows, 1), (int64_t)0));
  else
    err_set(err, -EEXIST, "the node name '%s' was another machine's a moment ago", name);
  sql_done(rows);
  return -EEXIST;
}

int node_begin(struct store *s, struct node_record *r, const struct node_lease *lease, uint64_t *wanted,
               struct err *err)
{
  int e = sql_change(s, err, "DELETE FROM node WHERE lease_until<" NOW "-? AND name<>?", "it", lease->keep_us, r->name);
  if (e)
    return e;
  e = take(sql_query(s,
                     "INSERT INTO node(" FIGURES "," TEXTS ",lease_until,name,machine,epoch) VALUES(?1,?2,?3,?4,?5,?6,"
                     "?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20," NOW "+?21,?22,?23,1) ON CONFLICT(name) DO "
                     "UPDATE SET " SET ",machine=?23,epoch=node.epoch+1 WHERE node.lease_until<" NOW
                     " OR (node.machine=?23 AND node.epoch=?24) RETURNING epoch,wanted",
                     KINDS "tti", VALUES(r, lease), r->name, r->machine, (int64_t)r->n.epoch),
           &r->n.epoch, wanted, err);
  return e > 0 ? taken(s, r->name, err) : e;
}

int node_renew(struct store *s, const struct node_record *r, const struct node_lease *lease, uint64_t *wanted,
               struct err *err)
{
  uint64_t epoch;
  int e =
      take(sql_query(s, "UPDATE node SET " SET " WHERE name=?22 AND machine=?23 AND epoch=?24 RETURNING epoch,wanted",
                     KINDS "tti", VALUES(r, lease), r->name, r->machine, (int64_t)r->n.epoch),
           &epoch, wanted, err);
  return e > 0 ? err_set(err, -ESTALE, "another machine has taken the node name '%s' meanwhile", r->name) : e;
}

int node_leave(struct store *s, const char *name, uint64_t epoch, struct err *err)
{
  return sql_change(s, err, "UPDATE node SET status=?,lease_until=" NOW " WHERE name=? AND epoch=?", "iti",
                    (int64_t)NODE_STANDBY, name, (int64_t)epoch);
}

int node_order(struct store *s, struct str name, enum node_status status, struct err *err)
{
  int r = sql_change(s, err, "UPDATE node SET wanted=? WHERE name=?", "is", (int64_t)status, name);
  return r || sql_changed(s) ? r : err_set(err, -ENOENT, "node '" STR_FMT "' not found", STR_ARG(name));
}

static void read_row(const struct sql_rows *rows, struct node_record *r)
{
  int64_t v[16];
  for (int i = 0; i < 16; i++)
    v[i] = sql_int(rows, i);
  r->n = (struct wire_node){.status = (uint64_t)v[0],
                            .since_us = v[1],
                            .running = (uint64_t)v[2],
                            .starting = (uint64_t)v[3],
                            .paused = (uint64_t)v[4],
                            .warm = (uint64_t)v[5],
                            .creates = (uint64_t)v[6],
                            .creates_failed = (uint64_t)v[7],
                            .cpus = (uint64_t)v[8],
                            .cpus_given = (uint64_t)v[9],
                            .load = (uint64_t)v[10],
                            .memory = (uint64_t)v[11],
                            .memory_given = (uint64_t)v[12],
                            .memory_used = (uint64_t)v[13],
                            .left_us = v[14],
                            .epoch = (uint64_t)v[15]};
  sql_z(rows, 16, r->address, sizeof(r->address));
  sql_z(rows, 17, r->version, sizeof(r->version));
  sql_z(rows, 18, r->labels, sizeof(r->labels));
  sql_z(rows, 19, r->tiers, sizeof(r->tiers));
  sql_z(rows, 20, r->hardware, sizeof(r->hardware));
  sql_z(rows, 21, r->templates, sizeof(r->templates));
  sql_z(rows, 22, r->name, sizeof(r->name));
  sql_z(rows, 23, r->machine, sizeof(r->machine));
}

int node_each(struct store *s, struct str one, node_fn fn, void *arg, struct err *err)
{
  struct sql_rows *rows = sql_query(s,
                                    "SELECT " FIGURES ",lease_until-" NOW ",epoch," TEXTS ",name,machine FROM node "
                                    "WHERE ?1='' OR name=?1 ORDER BY name LIMIT ?2",
                                    "si", one, (int64_t)NODES_MAX);
  SQL_EACH_ROW(rows)
  {
    struct node_record r = {0};
    read_row(rows, &r);
    fn(&r, arg);
  }
  int e = !rows || sql_failed(rows) ? broken(err) : 0;
  sql_done(rows);
  return e;
}
