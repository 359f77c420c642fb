/* SPDX-License-Identifier: Apache-2.0 */
/* host_facts.h - what a machine is, read from it. What can't be read is 0 or "". */
#ifndef CLOCHE_DOCTOR_HOST_FACTS_H
#define CLOCHE_DOCTOR_HOST_FACTS_H

#include "doctor/doctor.h"

void host_facts(const char *data, struct doctor_host *out);
uint64_t host_processes_left(void);
/* The name that mount has for a filesystem of this type (statfs f_type), or "". */
const char *host_filesystem_name(uint64_t type);

#endif
