/* SPDX-License-Identifier: Apache-2.0 */
/* store_worker.h - the thread of the store process that waits for PostgreSQL. Requests of the warden (wire.h,
 * WIRE_STORE_...) are served in their order; answers are given on the loop. While PostgreSQL is away a request fails at
 * once, but for one attempt to connect each quarter of a second, then each twice as long, up to 5 seconds. */
#ifndef CLOCHE_STORE_WORKER_H
#define CLOCHE_STORE_WORKER_H

#include "base/base.h"
#include <uv.h>

struct store_worker;

/* `serial` is what the request was added with. */
typedef void (*store_answer_fn)(void *arg, uint64_t serial, struct str packet);

struct store_worker *store_worker_new(uv_loop_t *loop, const char *url, store_answer_fn answer, void *arg);
/* Starts the thread and waits until it runs, so that what it starts with needs no rights later. */
int store_worker_start(struct store_worker *w, struct err *err);
int store_worker_add(struct store_worker *w, uint64_t serial, struct str packet); /* -ENOBUFS: too many wait */
/* The node's lease is given back; waits so long at most. */
void store_worker_stop(struct store_worker *w, unsigned ms);

#endif
