/* SPDX-License-Identifier: Apache-2.0 */
/* net_lines.h - the lines of a box's network log, as they lie in its ring: one JSON object each.
 *
 *   {"t":<wall us>,"e":"name","n":"example.org","a":["1.2.3.4"],"r":0}      a name was looked up; r: DNS response code
 *   {"t":..,"e":"open","c":7,"p":"tcp","a":"1.2.3.4","q":443,"n":"example.org"}
 *   {"t":..,"e":"refused","p":"tcp","a":"10.0.0.1","q":22,"w":"range"}      w: list, range, limit
 *   {"t":..,"e":"end","c":7,"i":5120,"o":800}                               of the connection with that c
 *   {"t":..,"e":"request","p":"tcp","a":..,"q":443,"n":..,"v":"inspected","w":"*.example.org","m":"GET","u":"/x",
 *    "s":200,"i":..,"o":..}                                                 told by the egress gateway
 *   {"t":..,"e":"lost"}                                                     more happened than is logged
 */
#ifndef CLOCHE_NETLOG_NET_LINES_H
#define CLOCHE_NETLOG_NET_LINES_H

#include "netlog/net_message.h"
#include "wire/egress_policy.h"

#define NET_LINE_MAX 6000

void net_line_name(struct buf *out, int64_t wall_us, const struct net_message *m);
/* mark: NET_MARK_OPENED, or one of a refusal. */
void net_line_packet(struct buf *out, int64_t wall_us, char mark, const struct net_flow *f, uint64_t connection,
                     const char *name);
void net_line_end(struct buf *out, int64_t wall_us, uint64_t connection, uint64_t in, uint64_t out_bytes);
void net_line_lost(struct buf *out, int64_t wall_us);
/* full: with method, path, status and bytes. */
void net_line_request(struct buf *out, const struct egress_record_body *r, struct str text, bool full);

#endif
