/* SPDX-License-Identifier: Apache-2.0 */
/* store_readers.h - who reads the database on a thread of its own. SQLite begins its log anew only in a moment without
 * readers; this makes one. */
#ifndef CLOCHE_WARDEN_DB_STORE_READERS_H
#define CLOCHE_WARDEN_DB_STORE_READERS_H

#include "base/base.h"

struct store_readers;

struct store_readers *readers_new(void);
void readers_free(struct store_readers *r);  /* NULL, or none reads */
void readers_enter(struct store_readers *r); /* waits while they are stopped */
void readers_leave(struct store_readers *r);
/* Waits so long for those who read; others wait in readers_enter until readers_resume. False: some still read, and
 * nobody waits. */
bool readers_stop(struct store_readers *r, int64_t wait_us);
void readers_resume(struct store_readers *r);

#endif
