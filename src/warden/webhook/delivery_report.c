/* SPDX-License-Identifier: Apache-2.0 */
/* delivery_report.c - see delivery_report.h. */
#include "warden/webhook/delivery_report.h"

#define MESSAGE_MAX  512
#define DURATION_MAX ((uint64_t)3600 * 1000)

int delivery_report_read(struct str packet, struct delivery_report *out)
{
  if (wire_check(packet) || wire_head(packet)->type != WIRE_SENT)
    return -EINVAL;
  uint64_t class = wire_u64(packet, W_CLASS, DELIVERY_CLASSES), status = wire_u64(packet, W_HTTP_STATUS, 0);
  *out = (struct delivery_report){
      .id = wire_get(packet, W_ID),
      .end = {.class = (enum delivery_class)MIN(class, (uint64_t)DELIVERY_CLASSES),
              .duration_ms = MIN(wire_u64(packet, W_DURATION, 0), DURATION_MAX),
              .http_status = status <= 999 ? status : 0,
              .headers = wire_get(packet, W_HEADERS),
              .body = str_sub(wire_get(packet, W_BODY), 0, DELIVERY_KEPT),
              .message = str_sub(wire_get(packet, W_MESSAGE), 0, MESSAGE_MAX)},
  };
  if (out->end.headers.n > 8 * DELIVERY_KEPT) /* escapes included; cut in the middle it would be no JSON */
    out->end.headers = STR_NONE;
  return uuid_valid(out->id) && class < DELIVERY_CLASSES ? 0 : -EINVAL;
}
