/* SPDX-License-Identifier: Apache-2.0 */
/* postgres_schema.h - the tables of the store in PostgreSQL. */
#ifndef CLOCHE_STORE_POSTGRES_SCHEMA_H
#define CLOCHE_STORE_POSTGRES_SCHEMA_H

#include "base/base.h"
#include <libpq-fe.h>

/* Brings them up to date; of programs that start at the same time one does it and the others wait. */
int postgres_migrate(PGconn *conn, const char *place, struct err *err);

#endif
