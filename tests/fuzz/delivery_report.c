/* SPDX-License-Identifier: Apache-2.0 */
/* delivery_report.c - packets of the sender, which talks to strangers' servers: whatever comes is refused or within the
 * bounds of what is kept. The input is a packet. */
#include "must.h"

#include "warden/webhook/delivery_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static _Alignas(8) char copy[WIRE_MAX + 64];
  struct delivery_report r;
  if (size > sizeof(copy))
    return 0;
  memcpy(copy, data, size);
  struct str packet = {copy, size};
  if (delivery_report_read(packet, &r))
    return 0;
  MUST(uuid_valid(r.id));
  MUST(r.end.class < DELIVERY_CLASSES);
  MUST(r.end.http_status <= 999);
  MUST(r.end.body.n <= DELIVERY_KEPT);
  MUST(r.end.headers.n <= 8 * DELIVERY_KEPT);
  MUST(r.end.message.n <= 512);
  return 0;
}
