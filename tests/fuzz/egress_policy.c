/* SPDX-License-Identifier: Apache-2.0 */
/* egress_policy.c - what warden and egress gateway say to each other, and header values with placeholders.
 *
 * The first byte chooses: p a packed policy, v a header's value, everything else a packet. What is read of a policy is
 * written again as it was; pieces of a value are never longer than it. */
#include "must.h"

#include "wire/egress_policy.h"

static void policy(struct str in)
{
  cleanup_arena struct arena a = ARENA_INIT(16 << 20);
  cleanup_buf struct buf out = BUF_INIT(2 * EGRESS_POLICY_MAX);
  struct egress_policy p;
  struct err err = ERR_NONE;
  int r = egress_policy_read(&a, in, &p, &err);
  MUST(r == 0 || (r == -EINVAL && err.msg[0]));
  if (r)
    return;
  egress_policy_pack(&out, &p);
  MUST(str_eq(buf_str(&out), in));
  for (size_t i = 0; i < p.nhosts; i++)
    MUST(egress_pattern_ok(p.hosts[i].pattern));
}

static void value(struct str in)
{
  cleanup_arena struct arena a = ARENA_INIT(16 << 20);
  struct egress_piece *p;
  size_t n, sum = 0;
  if (egress_value_read(&a, in, &p, &n, NULL))
    return;
  for (size_t i = 0; i < n; i++) {
    MUST(p[i].text.n && p[i].text.p >= in.p && p[i].text.p + p[i].text.n <= in.p + in.n);
    MUST(p[i].kind != EGRESS_LITERAL || str_search(p[i].text, STR("${")) < 0);
    sum += p[i].text.n;
  }
  MUST(sum <= in.n);
}

static void packet(struct str in)
{
  cleanup_buf struct buf out = BUF_INIT(EGRESS_PACKET_MAX);
  enum egress_type type;
  union egress_body body;
  struct str text;
  struct egress_record_text parts;
  if (egress_packet_read(in, &type, &body, &text))
    return;
  if (type == EGRESS_RECORD) {
    egress_record_texts(&body.record, text, &parts);
    MUST(parts.name.n + parts.rule.n + parts.method.n + parts.path.n == text.n);
  }
  egress_packet(&out, type, &body, text);
  MUST(str_eq(buf_str(&out), in));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (!size)
    return 0;
  struct str rest = str_make(data + 1, size - 1);
  if (data[0] == 'p')
    policy(rest);
  else if (data[0] == 'v')
    value(rest);
  else
    packet(rest);
  return 0;
}
