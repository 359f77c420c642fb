/* SPDX-License-Identifier: Apache-2.0 */
/* node_record.c - see node_record.h. */
#include "wire/node_record.h"

#include <ctype.h>

#define TEXT(tag, field)                                                                                               \
  {                                                                                                                    \
    tag, offsetof(struct node_record, field), sizeof(((struct node_record *)0)->field)                                 \
  }

static const struct {
  enum wire_tag tag;
  size_t at, size;
} texts[] = {
    TEXT(W_ID, name),       TEXT(W_MACHINE, machine), TEXT(W_URL, address),       TEXT(W_VERSION, version),
    TEXT(W_LABELS, labels), TEXT(W_TIERS, tiers),     TEXT(W_HARDWARE, hardware), TEXT(W_TEMPLATES, templates),
};

void node_record_put(struct buf *b, const struct node_record *r)
{
  for (size_t i = 0; i < ARRAY_LEN(texts); i++)
    wire_putz(b, texts[i].tag, (const char *)r + texts[i].at);
  wire_put(b, W_STATUS, str_make(&r->n, sizeof(r->n)));
}

static bool printable(const char *text)
{
  for (; *text; text++)
    if ((*text < ' ' && *text != '\n') || *text == 127 || (*text & 0x80))
      return false;
  return true;
}

int node_record_read(struct str packet, struct node_record *out)
{
  struct str n = wire_get(packet, W_STATUS);
  *out = (struct node_record){0};
  if (n.n != sizeof(out->n))
    return -EPROTO;
  memcpy(&out->n, n.p, sizeof(out->n));
  for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
    char *to = (char *)out + texts[i].at;
    if (wire_copyz(packet, texts[i].tag, to, texts[i].size) || !printable(to))
      return -EPROTO;
  }
  return node_name_valid(str_of(out->name)) ? 0 : -EPROTO;
}

static bool word_valid(struct str s)
{
  for (size_t i = 0; i < s.n; i++)
    if ((s.p[i] & 0x80) || (!isalnum((unsigned char)s.p[i]) && !strchr("._-", s.p[i])))
      return false;
  return s.n > 0 && !memchr(s.p, 0, s.n);
}

bool node_name_valid(struct str name)
{
  return name.n < NODE_NAME_SIZE && word_valid(name);
}

bool node_labels_valid(struct str labels)
{
  struct str one, name, value;
  while (labels.n) {
    str_cut(labels, ' ', &one, &labels);
    if (one.n && (!str_cut(one, '=', &name, &value) || !word_valid(name) || !word_valid(value)))
      return false;
  }
  return true;
}

const char *node_status_word(const struct wire_node *n)
{
  if (n->status == NODE_STANDBY)
    return "standby";
  if (n->left_us <= 0)
    return "unhealthy";
  return n->status == NODE_DRAINING ? "draining" : "ready";
}
