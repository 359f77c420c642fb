/* SPDX-License-Identifier: Apache-2.0 */
/* net_lines.c - see net_lines.h. */
#include "netlog/net_lines.h"

#include "jail/net/never.h"

#include <arpa/inet.h>
#include <stdio.h>

static void put_address(struct jw *w, uint32_t address)
{
  char text[INET_ADDRSTRLEN];
  jw_z(w, inet_ntop(AF_INET, &(struct in_addr){htonl(address)}, text, sizeof(text)));
}

static void put_key_address(struct jw *w, const char *key, uint32_t address)
{
  jw_key(w, key);
  put_address(w, address);
}

static void put_number(struct jw *w, const char *key, uint64_t value)
{
  jw_key(w, key);
  jw_uint(w, value);
}

static void put_text(struct jw *w, const char *key, struct str text)
{
  jw_key(w, key);
  jw_str(w, text);
}

static struct jw begin(struct buf *out, int64_t wall_us, const char *event)
{
  struct jw w = {.b = out, .ascii = true};
  jw_open(&w, '{');
  jw_key(&w, "t");
  jw_int(&w, wall_us);
  jw_key(&w, "e");
  jw_z(&w, event);
  return w;
}

static void finish(struct jw *w)
{
  jw_close(w, '}');
  buf_addc(w->b, '\n');
}

static void put_protocol(struct jw *w, uint8_t protocol)
{
  char number[8];
  jw_key(w, "p");
  switch (protocol) {
  case IPPROTO_TCP:
    jw_z(w, "tcp");
    break;
  case IPPROTO_UDP:
    jw_z(w, "udp");
    break;
  case IPPROTO_ICMP:
    jw_z(w, "icmp");
    break;
  default:
    snprintf(number, sizeof(number), "%u", protocol);
    jw_z(w, number);
  }
}

void net_line_name(struct buf *out, int64_t wall_us, const struct net_message *m)
{
  struct jw w = begin(out, wall_us, "name");
  put_text(&w, "n", str_of(m->question.name));
  jw_key(&w, "a");
  jw_open(&w, '[');
  for (size_t i = 0; i < m->answer.count; i++)
    put_address(&w, m->answer.address[i]);
  jw_close(&w, ']');
  put_number(&w, "k", m->question.type);
  put_number(&w, "r", m->rcode);
  finish(&w);
}

void net_line_packet(struct buf *out, int64_t wall_us, char mark, const struct net_flow *f, uint64_t connection,
                     const char *name)
{
  bool opened = mark == NET_MARK_OPENED;
  struct jw w = begin(out, wall_us, opened ? "open" : "refused");
  if (opened)
    put_number(&w, "c", connection);
  put_protocol(&w, f->protocol);
  put_key_address(&w, "a", f->to);
  put_number(&w, "q", f->port);
  if (name)
    put_text(&w, "n", str_of(name));
  if (!opened) {
    jw_key(&w, "w");
    jw_z(&w, mark == NET_MARK_LIMIT ? "limit" : never_reached(f->to) ? "range" : "list");
  }
  finish(&w);
}

void net_line_end(struct buf *out, int64_t wall_us, uint64_t connection, uint64_t in, uint64_t out_bytes)
{
  struct jw w = begin(out, wall_us, "end");
  put_number(&w, "c", connection);
  put_number(&w, "i", in);
  put_number(&w, "o", out_bytes);
  finish(&w);
}

void net_line_lost(struct buf *out, int64_t wall_us)
{
  struct jw w = begin(out, wall_us, "lost");
  finish(&w);
}

static const char *verdict(unsigned v)
{
  switch (v) {
  case EGRESS_PASSED:
    return "passed";
  case EGRESS_INSPECTED:
    return "inspected";
  case EGRESS_REFUSED:
    return "refused";
  default:
    return "unreachable";
  }
}

void net_line_request(struct buf *out, const struct egress_record_body *r, struct str text, bool full)
{
  struct egress_record_text t;
  egress_record_texts(r, text, &t);
  struct jw w = begin(out, r->wall_us, "request");
  put_protocol(&w, IPPROTO_TCP);
  put_key_address(&w, "a", r->to);
  put_number(&w, "q", r->port);
  if (t.name.n)
    put_text(&w, "n", t.name);
  jw_key(&w, "v");
  jw_z(&w, verdict(r->verdict));
  if (t.rule.n)
    put_text(&w, "w", t.rule);
  if (r->proxied)
    put_number(&w, "x", 1);
  if (full) {
    if (t.method.n) {
      put_text(&w, "m", t.method);
      put_text(&w, "u", t.path);
    }
    if (r->status)
      put_number(&w, "s", r->status);
    put_number(&w, "i", r->in);
    put_number(&w, "o", r->out);
  }
  finish(&w);
}
