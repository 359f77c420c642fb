/* SPDX-License-Identifier: Apache-2.0 */
/* audit.h - the audit role: writes down who asked the API for what, when, from where, and what the answer was.
 *
 * Start here in this folder. Gates see every request and have no files; this role has one directory of files and sees
 * no request. A gate sends one packet per answered request (wire/audit_record.h), the warden one per answered command
 * of the host's root, and audit.c writes it as one line of JSON, stamped with the time at which it arrived and the
 * number of the gate that sent it. It promises that a line is whole, that no gate can write anything but the fields of
 * the record, each cut to its length, that the files never take more than the settings say, that records of
 * nobody are in files of their own, and that records which
 * could not be kept are counted in the next one that was. A gate that was taken over can leave its own records out or
 * invent some; it can't touch those that are written. audit_file.c has the files, audit.c the loop, audit_role.h the
 * rights that it keeps. */
#ifndef CLOCHE_AUDIT_AUDIT_H
#define CLOCHE_AUDIT_AUDIT_H

#include "audit/audit_config.h"

int audit_main(const struct audit_config *config);

#endif
