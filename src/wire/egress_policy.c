/* SPDX-License-Identifier: Apache-2.0 */
/* egress_policy.c - see egress_policy.h. A packed policy is a row of numbers (32 bits, the machine's order: both sides
 * are one machine) and texts (a number and that many bytes), in the order of the struct; arrays are a count and their
 * members. Reading stops at the first thing that is wrong and never says what bytes it saw. */
#include "wire/egress_policy.h"

#define POLICY_MAGIC 0x31504743u /* "CGP1" */
#define MISSING      1u

/* ---- writing ---- */

static void put_u32(struct buf *b, uint32_t v)
{
  buf_add(b, &v, sizeof(v));
}

static void put_str(struct buf *b, struct str s)
{
  put_u32(b, (uint32_t)s.n);
  buf_add(b, s.p, s.n);
}

static void put_header(struct buf *b, const struct egress_header *h)
{
  put_str(b, h->name);
  put_u32(b, (uint32_t)h->npieces);
  for (size_t i = 0; i < h->npieces; i++) {
    put_u32(b, h->pieces[i].kind);
    put_str(b, h->pieces[i].text);
  }
}

static void put_hosts(struct buf *b, const struct egress_policy *p)
{
  put_u32(b, (uint32_t)p->nhosts);
  for (size_t i = 0; i < p->nhosts; i++) {
    put_str(b, p->hosts[i].pattern);
    put_u32(b, (uint32_t)p->hosts[i].nheaders);
    for (size_t k = 0; k < p->hosts[i].nheaders; k++)
      put_header(b, &p->hosts[i].headers[k]);
  }
}

static void put_proxy(struct buf *b, const struct egress_proxy *x)
{
  put_u32(b, x->kind);
  put_str(b, x->host);
  put_u32(b, x->port);
  put_str(b, x->user);
  put_str(b, x->password);
  put_u32(b, x->tls);
  put_str(b, x->server_name);
  put_str(b, x->ca);
}

void egress_policy_pack(struct buf *out, const struct egress_policy *p)
{
  put_u32(out, POLICY_MAGIC);
  put_str(out, str_of(p->box));
  put_str(out, str_of(p->team));
  put_u32(out, p->log);
  put_hosts(out, p);
  put_u32(out, (uint32_t)p->nsecrets);
  for (size_t i = 0; i < p->nsecrets; i++) {
    put_str(out, p->secrets[i].name);
    put_u32(out, p->secrets[i].missing ? MISSING : 0);
    put_str(out, p->secrets[i].missing ? STR_NONE : p->secrets[i].value);
  }
  put_proxy(out, &p->proxy);
  put_str(out, p->ca_cert);
  put_str(out, p->ca_key);
  put_u32(out, p->restricted);
  put_str(out, p->allow_names);
  put_u32(out, (uint32_t)p->nallow_nets);
  for (size_t i = 0; i < p->nallow_nets; i++) {
    put_u32(out, p->allow_nets[i].address);
    put_u32(out, p->allow_nets[i].bits);
  }
}

/* ---- names ---- */

static bool is_name_char(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static bool is_dns_name(struct str s)
{
  struct str label;
  bool more = true;
  if (s.n == 0 || s.n > 253)
    return false;
  while (more) {
    more = str_cut(s, '.', &label, &s);
    if (label.n == 0 || label.n > 63)
      return false;
    for (size_t i = 0; i < label.n; i++)
      if (!is_name_char(label.p[i]))
        return false;
  }
  return true;
}

bool egress_pattern_ok(struct str pattern)
{
  return is_dns_name(str_starts(pattern, STR("*.")) ? str_skip(pattern, 2) : pattern);
}

bool egress_pattern_matches(struct str pattern, struct str name)
{
  if (!str_starts(pattern, STR("*.")))
    return str_eq(pattern, name);
  struct str suffix = str_skip(pattern, 1); /* with its dot */
  return name.n > suffix.n && str_ends(name, suffix);
}

const struct egress_host *egress_host_find(const struct egress_policy *p, struct str name)
{
  const struct egress_host *best = NULL;
  for (size_t i = 0; i < p->nhosts; i++) {
    const struct egress_host *h = &p->hosts[i];
    if (!egress_pattern_matches(h->pattern, name))
      continue;
    if (h->pattern.p[0] != '*')
      return h;
    if (!best || h->pattern.n > best->pattern.n)
      best = h;
  }
  return best;
}

static bool is_token(struct str s)
{
  static const char other[] = "!#$%&'*+-.^_`|~";
  for (size_t i = 0; i < s.n; i++) {
    char c = s.p[i];
    bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!alnum && (!c || !strchr(other, c)))
      return false;
  }
  return s.n > 0;
}

/* Fit to stand in a header: no control but HT. */
static bool is_value(struct str s)
{
  for (size_t i = 0; i < s.n; i++)
    if (((unsigned char)s.p[i] < 0x20 && s.p[i] != '\t') || s.p[i] == 0x7f)
      return false;
  return true;
}

static bool is_ref(struct str s)
{
  for (size_t i = 0; i < s.n; i++)
    if ((unsigned char)s.p[i] <= 0x20 || (unsigned char)s.p[i] >= 0x7f)
      return false;
  return s.n > 0 && s.n < EGRESS_REF_SIZE;
}

static bool is_host(struct str s)
{
  char lowered[256];
  for (size_t i = 0; i < s.n && s.n < sizeof(lowered); i++)
    lowered[i] = s.p[i] >= 'A' && s.p[i] <= 'Z' ? (char)(s.p[i] + 32) : s.p[i];
  return s.n < sizeof(lowered) && is_dns_name((struct str){lowered, s.n});
}

/* ---- reading ---- */

struct reader {
  struct str rest;
  struct arena *arena;
  size_t filled;   /* placeholders so far */
  const char *bad; /* what was wrong first */
};

static void fail(struct reader *r, const char *what)
{
  if (!r->bad)
    r->bad = what;
  r->rest = STR_NONE;
}

static uint32_t get_u32(struct reader *r, uint32_t most, const char *what)
{
  uint32_t v = 0;
  if (r->rest.n < sizeof(v)) {
    fail(r, what);
    return 0;
  }
  memcpy(&v, r->rest.p, sizeof(v));
  r->rest = str_skip(r->rest, sizeof(v));
  if (v > most) {
    fail(r, what);
    return 0;
  }
  return v;
}

static struct str get_str(struct reader *r, size_t most, const char *what)
{
  uint32_t n = get_u32(r, (uint32_t)most, what);
  if (n > r->rest.n)
    fail(r, what);
  if (r->bad)
    return STR_NONE;
  struct str s = {r->rest.p, n};
  r->rest = str_skip(r->rest, n);
  return s;
}

/* Each member takes at least 4 bytes: a count that the rest can't hold is refused before memory is taken for it. */
static void *get_array(struct reader *r, size_t most, size_t size, size_t *n, const char *what)
{
  *n = get_u32(r, (uint32_t)most, what);
  if (*n > r->rest.n / 4)
    fail(r, what);
  void *p = r->bad || !*n ? NULL : arena_alloc(r->arena, *n * size);
  if (!p && *n)
    fail(r, what);
  if (!p)
    *n = 0;
  return p;
}

static void get_piece(struct reader *r, struct egress_piece *p)
{
  p->kind = (enum egress_piece_kind)get_u32(r, EGRESS_IDENTITY, "kind of a header's piece");
  p->text = get_str(r, EGRESS_SECRET_MAX, "piece of a header");
  if (p->kind < EGRESS_LITERAL || (p->kind == EGRESS_LITERAL ? !is_value(p->text) : !is_ref(p->text)))
    fail(r, "piece of a header");
  if (p->kind > EGRESS_LITERAL && ++r->filled > EGRESS_FILLED_MAX)
    fail(r, "number of placeholders");
}

static void get_header(struct reader *r, struct egress_header *h)
{
  h->name = get_str(r, 256, "header name");
  if (!is_token(h->name))
    fail(r, "header name");
  h->pieces = get_array(r, EGRESS_PIECES_MAX, sizeof(*h->pieces), &h->npieces, "pieces of a header");
  for (size_t i = 0; i < h->npieces && !r->bad; i++)
    get_piece(r, &h->pieces[i]);
}

static void get_hosts(struct reader *r, struct egress_policy *p)
{
  p->hosts = get_array(r, EGRESS_HOSTS_MAX, sizeof(*p->hosts), &p->nhosts, "hosts");
  for (size_t i = 0; i < p->nhosts && !r->bad; i++) {
    struct egress_host *h = &p->hosts[i];
    h->pattern = get_str(r, 255, "host pattern");
    if (!egress_pattern_ok(h->pattern))
      fail(r, "host pattern");
    h->headers = get_array(r, EGRESS_HEADERS_MAX, sizeof(*h->headers), &h->nheaders, "headers of a host");
    for (size_t k = 0; k < h->nheaders && !r->bad; k++)
      get_header(r, &h->headers[k]);
  }
}

static void get_secrets(struct reader *r, struct egress_policy *p)
{
  p->secrets = get_array(r, EGRESS_SECRETS_MAX, sizeof(*p->secrets), &p->nsecrets, "secrets");
  for (size_t i = 0; i < p->nsecrets && !r->bad; i++) {
    struct egress_secret *s = &p->secrets[i];
    s->name = get_str(r, EGRESS_REF_SIZE - 1, "name of a secret");
    s->missing = get_u32(r, MISSING, "mark of a secret");
    s->value = get_str(r, EGRESS_SECRET_MAX, "value of a secret");
    if (!is_ref(s->name) || (s->missing && s->value.n))
      fail(r, "secret");
  }
}

static bool is_printable(struct str s)
{
  return is_value(s) && s.n <= 255;
}

static void get_proxy(struct reader *r, struct egress_proxy *x)
{
  x->kind = (enum egress_proxy_kind)get_u32(r, EGRESS_CONNECT, "kind of proxy");
  x->host = get_str(r, 253, "proxy host");
  x->port = (uint16_t)get_u32(r, 65535, "proxy port");
  x->user = get_str(r, 255, "proxy user");
  x->password = get_str(r, 255, "proxy password");
  x->tls = get_u32(r, 1, "proxy tls");
  x->server_name = get_str(r, 253, "proxy server name");
  x->ca = get_str(r, 64u << 10, "proxy certificates");
  if (x->kind && (!is_host(x->host) || !x->port || (x->server_name.n && !is_host(x->server_name)) ||
                  (x->password.n && !x->user.n) || !is_printable(x->user) || !is_printable(x->password)))
    fail(r, "proxy");
}

static void get_nets(struct reader *r, struct egress_policy *p)
{
  p->allow_nets = get_array(r, EGRESS_NETS_MAX, sizeof(*p->allow_nets), &p->nallow_nets, "allowed prefixes");
  for (size_t i = 0; i < p->nallow_nets && !r->bad; i++) {
    p->allow_nets[i].address = get_u32(r, UINT32_MAX, "allowed prefix");
    p->allow_nets[i].bits = get_u32(r, 32, "allowed prefix");
  }
}

static void find_secret(struct reader *r, const struct egress_policy *p, struct egress_piece *piece)
{
  for (size_t i = 0; i < p->nsecrets; i++)
    if (str_ieq(p->secrets[i].name, piece->text)) {
      piece->secret = (uint32_t)i;
      return;
    }
  fail(r, "secret that a header names and nothing brings");
}

/* Once, so that no request has to look for them. */
static void find_secrets(struct reader *r, struct egress_policy *p)
{
  for (size_t i = 0; i < p->nhosts && !r->bad; i++)
    for (size_t k = 0; k < p->hosts[i].nheaders; k++)
      for (size_t m = 0; m < p->hosts[i].headers[k].npieces; m++)
        if (p->hosts[i].headers[k].pieces[m].kind == EGRESS_SECRET)
          find_secret(r, p, &p->hosts[i].headers[k].pieces[m]);
}

int egress_policy_read(struct arena *a, struct str packed, struct egress_policy *out, struct err *err)
{
  struct reader r = {.rest = packed, .arena = a};
  *out = (struct egress_policy){0};
  if (packed.n > EGRESS_POLICY_MAX)
    return err_set(err, -EINVAL, "egress policy of %zu bytes, at most %zu", packed.n, EGRESS_POLICY_MAX);
  if (get_u32(&r, UINT32_MAX, "head") != POLICY_MAGIC)
    fail(&r, "head");
  struct str box = get_str(&r, BOX_ID_SIZE - 1, "box"), team = get_str(&r, UUID_SIZE - 1, "team");
  if (!r.bad && (str_copyz(box, out->box, sizeof(out->box)) || str_copyz(team, out->team, sizeof(out->team))))
    fail(&r, "box or team");
  out->log = (enum egress_log)get_u32(&r, EGRESS_LOG_FULL, "log level");
  get_hosts(&r, out);
  get_secrets(&r, out);
  get_proxy(&r, &out->proxy);
  out->ca_cert = get_str(&r, 64u << 10, "authority");
  out->ca_key = get_str(&r, 64u << 10, "authority");
  out->restricted = get_u32(&r, 1, "lists");
  out->allow_names = get_str(&r, 512u << 10, "allowed names");
  get_nets(&r, out);
  find_secrets(&r, out);
  if (!r.bad && r.rest.n)
    fail(&r, "end");
  if (!r.bad && out->nhosts && (!out->ca_cert.n || !out->ca_key.n))
    fail(&r, "authority");
  return r.bad ? err_set(err, -EINVAL, "malformed egress policy: %s", r.bad) : 0;
}

/* ---- values ---- */

#define SECRET_OPEN   "${e2b.secrets."
#define IDENTITY_OPEN "${e2b.identity.tokens."

static bool is_ref_name(struct str s)
{
  for (size_t i = 0; i < s.n; i++) {
    char c = s.p[i];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-'))
      return false;
  }
  return s.n > 0 && s.n < EGRESS_REF_SIZE;
}

/* One placeholder at the front of *rest. "${" of any other kind is an error too: text that looks like a placeholder and
 * goes out as it is would be noticed by nobody. */
static int read_placeholder(struct str *rest, struct egress_piece *out, struct err *err)
{
  struct str body, after;
  bool secret = str_starts(*rest, STR(SECRET_OPEN));
  if (!secret && !str_starts(*rest, STR(IDENTITY_OPEN)))
    return err_set(err, -EINVAL, "unknown placeholder; there are " SECRET_OPEN "NAME} and " IDENTITY_OPEN "NAME}");
  struct str from = str_skip(*rest, secret ? sizeof(SECRET_OPEN) - 1 : sizeof(IDENTITY_OPEN) - 1);
  if (!str_cut(from, '}', &body, &after))
    return err_set(err, -EINVAL, "unterminated placeholder");
  if (!is_ref_name(body))
    return err_set(err, -EINVAL, "placeholder with an empty, nested or invalid name");
  *out = (struct egress_piece){.kind = secret ? EGRESS_SECRET : EGRESS_IDENTITY, .text = body};
  *rest = after;
  return 0;
}

int egress_value_read(struct arena *a, struct str value, struct egress_piece **pieces, size_t *n, struct err *err)
{
  struct egress_piece all[EGRESS_PIECES_MAX];
  *n = 0;
  while (value.n > 0) {
    ptrdiff_t at = str_search(value, STR("${"));
    size_t plain = at < 0 ? value.n : (size_t)at;
    if (*n == EGRESS_PIECES_MAX)
      return err_set(err, -EINVAL, "more than %u placeholders and pieces between them", EGRESS_PIECES_MAX);
    if (plain) {
      all[(*n)++] = (struct egress_piece){.kind = EGRESS_LITERAL, .text = str_sub(value, 0, plain)};
      value = str_skip(value, plain);
      continue;
    }
    int r = read_placeholder(&value, &all[(*n)++], err);
    if (r)
      return r;
  }
  *pieces = arena_alloc(a, MAX(*n, (size_t)1) * sizeof(**pieces));
  if (!*pieces)
    return err_set(err, -ENOMEM, "header value too long");
  memcpy(*pieces, all, *n * sizeof(all[0]));
  return 0;
}

/* ---- packets ---- */

static size_t body_size(enum egress_type type)
{
  switch (type) {
  case EGRESS_SET:
  case EGRESS_REMOVE:
    return sizeof(struct egress_set_body);
  case EGRESS_TOKEN:
    return sizeof(struct egress_token_body);
  case EGRESS_APPLIED:
    return sizeof(struct egress_applied_body);
  case EGRESS_TOKEN_ASK:
    return sizeof(struct egress_ask_body);
  case EGRESS_RECORD:
    return sizeof(struct egress_record_body);
  case EGRESS_SYNC:
  case EGRESS_LISTEN:
    break;
  }
  return 0;
}

static size_t text_max(enum egress_type type)
{
  switch (type) {
  case EGRESS_TOKEN:
    return EGRESS_TOKEN_MAX;
  case EGRESS_APPLIED:
    return EGRESS_MESSAGE_SIZE;
  case EGRESS_RECORD:
    return 4 * EGRESS_RECORD_TEXT_MAX;
  default:
    return 0;
  }
}

void egress_packet(struct buf *out, enum egress_type type, const union egress_body *body, struct str text)
{
  size_t n = body_size(type);
  buf_clear(out);
  buf_add(out, &(struct egress_head){type, (uint32_t)(n + text.n)}, sizeof(struct egress_head));
  if (n)
    buf_add(out, body, n);
  buf_adds(out, text);
}

static bool closed(const char *text, size_t size)
{
  return memchr(text, 0, size) != NULL;
}

static bool is_printable_text(struct str s)
{
  for (size_t i = 0; i < s.n; i++)
    if (s.p[i] < 0x20 || s.p[i] > 0x7e)
      return false;
  return true;
}

static bool record_ok(const struct egress_record_body *r, struct str text)
{
  const uint16_t lengths[] = {r->name, r->rule, r->method, r->path};
  size_t sum = 0;
  for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
    if (lengths[i] > EGRESS_RECORD_TEXT_MAX)
      return false;
    sum += lengths[i];
  }
  return sum == text.n && closed(r->box, sizeof(r->box)) && r->verdict >= EGRESS_PASSED && r->verdict <= EGRESS_LOST &&
         r->status <= 999 && r->proxied <= 1 && is_printable_text(text);
}

static bool body_ok(enum egress_type type, const union egress_body *b, struct str text)
{
  switch (type) {
  case EGRESS_SET:
    return closed(b->set.box, sizeof(b->set.box)) && b->set.length && b->set.length <= EGRESS_POLICY_MAX;
  case EGRESS_REMOVE:
    return closed(b->set.box, sizeof(b->set.box)) && !b->set.length;
  case EGRESS_TOKEN:
    return b->token.status <= 0 && (b->token.status == 0) == (text.n > 0);
  case EGRESS_APPLIED:
    return b->applied.status <= 0 && is_printable_text(text);
  case EGRESS_TOKEN_ASK:
    return closed(b->ask.box, sizeof(b->ask.box)) && closed(b->ask.name, sizeof(b->ask.name));
  case EGRESS_RECORD:
    return record_ok(&b->record, text);
  case EGRESS_SYNC:
  case EGRESS_LISTEN:
    break;
  }
  return true;
}

int egress_packet_read(struct str packet, enum egress_type *type, union egress_body *body, struct str *text)
{
  struct egress_head head;
  if (packet.n < sizeof(head) || packet.n > EGRESS_PACKET_MAX)
    return -EINVAL;
  memcpy(&head, packet.p, sizeof(head));
  struct str rest = str_skip(packet, sizeof(head));
  if (head.type < EGRESS_SET || head.type > EGRESS_LISTEN || head.length != rest.n)
    return -EINVAL;
  *type = (enum egress_type)head.type;
  size_t n = body_size(*type);
  if (rest.n < n || rest.n - n > text_max(*type))
    return -EINVAL;
  *body = (union egress_body){0};
  if (n)
    memcpy(body, rest.p, n);
  *text = str_skip(rest, n);
  return body_ok(*type, body, *text) ? 0 : -EINVAL;
}

void egress_record_texts(const struct egress_record_body *r, struct str text, struct egress_record_text *out)
{
  struct str *parts[] = {&out->name, &out->rule, &out->method, &out->path};
  const uint16_t lengths[] = {r->name, r->rule, r->method, r->path};
  for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
    *parts[i] = str_sub(text, 0, lengths[i]);
    text = str_skip(text, lengths[i]);
  }
}
