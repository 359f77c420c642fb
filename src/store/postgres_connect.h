/* SPDX-License-Identifier: Apache-2.0 */
/* postgres_connect.h - a URL becomes a connection that notices a dead server, and a check of what is there. */
#ifndef CLOCHE_STORE_POSTGRES_CONNECT_H
#define CLOCHE_STORE_POSTGRES_CONNECT_H

#include "base/base.h"
#include <libpq-fe.h>

#define POSTGRES_OLDEST 140000

bool postgres_url(const char *text); /* it says postgres:// or postgresql:// */
/* What the URL says of one option, "" = nothing; -EINVAL: it is no URL, or too long. */
int postgres_option(const char *url, const char *name, char *out, size_t size);
/* Host, port and name of the database, for messages. */
void postgres_place(const char *url, char *out, size_t size);
PGconn *postgres_connect(const char *url, struct err *err); /* NULL: err says why */
/* The server's reason in one line: its primary message, or libpq's. */
void postgres_reason(const PGconn *conn, const PGresult *result, char *out, size_t size);

#endif
