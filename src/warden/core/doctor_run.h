/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_run.h - the report of `cloche doctor --json` about the machine under this server (docs/doctor.md).
 *
 * The checks fork and change namespaces, so another program makes them: `cloche doctor` with this server's settings. */
#ifndef CLOCHE_WARDEN_DOCTOR_RUN_H
#define CLOCHE_WARDEN_DOCTOR_RUN_H

#include "warden/core/warden_config.h"

#define DOCTOR_RUN_S        60 /* then it is killed */

/* Appends one JSON object to `json`, whose maximum should be DOCTOR_RUN_JSON_MAX. Blocks for a second or so: for a
 * worker (worker_pool.h). Reads nothing but constants of `config`. One at a time is enough: callers keep the answer. */
#define DOCTOR_RUN_JSON_MAX (64 << 10)
int doctor_run(const struct warden_config *config, struct buf *json, struct err *err);

#endif
