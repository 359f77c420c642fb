/* SPDX-License-Identifier: Apache-2.0 */
/* postgres_connect.c - see postgres_connect.h. */
#include "store/postgres_connect.h"

#include <stdio.h>

#define OPTIONS_MAX 64

/* What holds unless the URL says otherwise. A server that takes longer than that is away; a silent one is noticed by
 * the kernel, which also covers a peer that vanished while it owed an answer. */
static const char *const defaults[][2] = {
    {"application_name", "cloche"}, {"connect_timeout", "5"},  {"keepalives_idle", "10"},
    {"keepalives_interval", "5"},   {"keepalives_count", "3"}, {"tcp_user_timeout", "15000"},
    {"client_encoding", "UTF8"},
};

bool postgres_url(const char *text)
{
  return str_starts(str_of(text), STR("postgres://")) || str_starts(str_of(text), STR("postgresql://"));
}

static const char *value_of(const PQconninfoOption *o, const char *name)
{
  for (; o->keyword; o++)
    if (!strcmp(o->keyword, name))
      return o->val && o->val[0] ? o->val : NULL;
  return NULL;
}

static bool on_this_machine(const PQconninfoOption *o)
{
  const char *host = value_of(o, "hostaddr");
  host = host ? host : value_of(o, "host");
  return !host || host[0] == '/' || host[0] == '@' || !strcmp(host, "localhost") || !strcmp(host, "127.0.0.1") ||
         !strcmp(host, "::1");
}

int postgres_option(const char *url, const char *name, char *out, size_t size)
{
  PQconninfoOption *o = PQconninfoParse(url, NULL);
  const char *value = o ? value_of(o, name) : NULL;
  int r = o ? str_copyz(str_of(value ? value : ""), out, size) : -EINVAL;
  PQconninfoFree(o);
  return r ? -EINVAL : 0;
}

void postgres_place(const char *url, char *out, size_t size)
{
  PQconninfoOption *o = PQconninfoParse(url, NULL);
  if (!o) {
    snprintf(out, size, "PostgreSQL");
    return;
  }
  const char *host = value_of(o, "host"), *port = value_of(o, "port"), *name = value_of(o, "dbname");
  snprintf(out, size, "PostgreSQL at %s%s%s, database %s", host ? host : "the default socket", port ? ":" : "",
           port ? port : "", name ? name : "(of the user's name)");
  PQconninfoFree(o);
}

void postgres_reason(const PGconn *conn, const PGresult *result, char *out, size_t size)
{
  const char *said = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
  struct str line = str_trim(str_of(said ? said : PQerrorMessage(conn)));
  snprintf(out, size, STR_FMT, STR_ARG(line));
  for (char *p = out; *p; p++)
    if (*p == '\n')
      *p = ' ';
}

struct options {
  const char *names[OPTIONS_MAX], *values[OPTIONS_MAX];
  size_t n;
};

static void add(struct options *to, const char *name, const char *value)
{
  if (to->n + 1 < OPTIONS_MAX) {
    to->names[to->n] = name;
    to->values[to->n++] = value;
  }
}

static void options_of(const PQconninfoOption *o, struct options *to)
{
  for (const PQconninfoOption *each = o; each->keyword; each++)
    if (each->val && each->val[0])
      add(to, each->keyword, each->val);
  for (size_t i = 0; i < ARRAY_LEN(defaults); i++)
    if (!value_of(o, defaults[i][0]))
      add(to, defaults[i][0], defaults[i][1]);
  if (!value_of(o, "sslmode") && !on_this_machine(o))
    add(to, "sslmode", "verify-full");
}

static int check(PGconn *conn, const char *place, struct err *err)
{
  char reason[300];
  if (PQstatus(conn) != CONNECTION_OK) {
    postgres_reason(conn, NULL, reason, sizeof(reason));
    return err_set(err, -ENOTCONN, "%s: %s", place, reason);
  }
  if (PQserverVersion(conn) < POSTGRES_OLDEST)
    return err_set(err, -ENOTSUP, "%s has version %d.%d; 14 or newer is needed", place, PQserverVersion(conn) / 10000,
                   PQserverVersion(conn) % 10000);
  const char *encoding = PQparameterStatus(conn, "server_encoding");
  if (!encoding || strcmp(encoding, "UTF8"))
    return err_set(err, -ENOTSUP, "%s has the encoding %s; create it with ENCODING 'UTF8'", place,
                   encoding ? encoding : "(unknown)");
  return 0;
}

/* Notices of the server (a table that is there already) are not for the log. */
static void ignore_notice(void *arg, const PGresult *result)
{
}

PGconn *postgres_connect(const char *url, struct err *err)
{
  char place[256], *said = NULL;
  PQconninfoOption *o = PQconninfoParse(url, &said);
  if (!o) {
    /* libpq quotes what it could not read, and that may be the password. */
    err_set(err, -EINVAL, "this is no URL of PostgreSQL: expected postgres://USER:PASSWORD@HOST:PORT/DATABASE?options");
    PQfreemem(said);
    return NULL;
  }
  struct options options = {0};
  postgres_place(url, place, sizeof(place));
  options_of(o, &options);
  PGconn *conn = PQconnectdbParams(options.names, options.values, 0);
  PQconninfoFree(o);
  PQsetNoticeReceiver(conn, ignore_notice, NULL);
  if (!check(conn, place, err))
    return conn;
  PQfinish(conn);
  return NULL;
}
