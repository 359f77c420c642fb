/* SPDX-License-Identifier: Apache-2.0 */
/* store_postgres.h - the start of this folder: the store (warden/db/store.h) on PostgreSQL, for many machines. Only the
 * program cloche-store is linked with libpq, so that a machine which keeps its rows in SQLite loads nothing of it.
 *
 * A call waits for the server, so nobody who serves boxes makes one. Where the server is away, calls fail at once with
 * -ENOTCONN until a next attempt is due: after a quarter of a second, then twice as long each time, up to 15 seconds.
 * Text of errors never holds a password. */
#ifndef CLOCHE_STORE_STORE_POSTGRES_H
#define CLOCHE_STORE_STORE_POSTGRES_H

#include "warden/db/store.h"

/* PostgreSQL 14 or newer. A server that is not on this machine is asked for its certificate unless the URL says
 * otherwise (sslmode). Brings the tables up to date, one program at a time. */
int store_open_postgres(const char *url, struct store **out, struct err *err);

#endif
