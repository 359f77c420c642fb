/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_schema.h - for sql_sqlite.c alone. */
#ifndef CLOCHE_WARDEN_DB_SQLITE_SCHEMA_H
#define CLOCHE_WARDEN_DB_SQLITE_SCHEMA_H

extern const char *const sqlite_migrations[]; /* STORE_SCHEMA of them */

#endif
