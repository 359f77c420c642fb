/* SPDX-License-Identifier: Apache-2.0 */
/* webhook_url.h - the URL of a webhook, as a client wrote it. Pure. */
#ifndef CLOCHE_GATE_API_WEBHOOK_URL_H
#define CLOCHE_GATE_API_WEBHOOK_URL_H

#include "wire/receiver_address.h"

#define WEBHOOK_URL_MAX 2048

/* An absolute http or https URL with a host and without credentials. *origin gets "scheme://host:port", in lower case.
 * -EINVAL: err says what is wrong and what to write. Where the host leads is the sender's to check, when it connects.
 */
int webhook_url_check(struct str url, struct buf *origin, struct err *err);

/* -EINVAL: the host of this origin is written as an address, and receiver_refused() refuses it. Names are not looked
 * up, and which addresses are this machine's own is not known here. */
int webhook_address_check(struct str origin, const struct receiver_rules *rules, struct err *err);

#endif
