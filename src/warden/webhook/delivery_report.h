/* SPDX-License-Identifier: Apache-2.0 */
/* delivery_report.h - the sender's word on an attempt. The sender talks to strangers, so its packets are checked as if
 * a stranger had written them: texts are cut to what is kept, numbers to what can be. */
#ifndef CLOCHE_WARDEN_WEBHOOK_DELIVERY_REPORT_H
#define CLOCHE_WARDEN_WEBHOOK_DELIVERY_REPORT_H

#include "warden/db/webhook_store.h"

struct delivery_report {
  struct str id; /* of the attempt: a UUID */
  struct attempt_end end;
};

/* Borrows from the packet. -EINVAL: it is none. */
int delivery_report_read(struct str packet, struct delivery_report *out);

#endif
