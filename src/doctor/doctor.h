/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.h - what this machine gives to a server: start here.
 *
 * The folder promises one report about one machine: facts, checks (each with a remedy where something is amiss) and how
 * many boxes have room, as JSON of a stable shape (docs/doctor.md) and as lines for people. Everything is tried out or
 * read, nothing is changed, nothing stays. The report is made by a program of one thread, because the checks fork and
 * change namespaces; a running server starts such a program and takes its JSON (warden/core/doctor_run.h). */
#ifndef CLOCHE_DOCTOR_H
#define CLOCHE_DOCTOR_H

#include "doctor/capacity.h"
#include "jail/jail_doctor.h"

#define DOCTOR_VERSION    1 /* of the JSON's shape; fields are added without a new one */
#define DOCTOR_CHECKS_MAX 40
#define DOCTOR_JSON_MAX   (64 << 10)

/* Settings of the server that the report is about. All borrowed. */
struct doctor_place {
  const char *data, *criu, *runtime, *net_pool, *microvm;
  bool microvm_wanted;
  uint32_t id_base;
  uint64_t reserve_mb; /* disk_creates_mb */
  unsigned boxes_max;
  bool internet;
};

struct doctor_host {
  char kernel[72], system[96], architecture[24];
  unsigned cpus;
  uint64_t memory, memory_available; /* bytes */
  const char *cgroups;               /* v1, hybrid, v2 or none */
  char filesystem[24];               /* of the data directory */
  uint64_t disk, disk_available, inodes, inodes_available;
};

struct doctor_report {
  struct doctor_host host;
  struct jail_check checks[DOCTOR_CHECKS_MAX];
  size_t n;
  struct capacity capacity;
};

void doctor_examine(const struct doctor_place *place, struct doctor_report *out); /* takes about a second */
enum jail_health doctor_health(const struct doctor_report *r);                    /* the worst of all checks */
void doctor_put_json(const struct doctor_report *r, struct buf *out);
void doctor_print(const struct doctor_report *r);

#endif
