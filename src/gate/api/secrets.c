/* SPDX-License-Identifier: Apache-2.0 */
/* secrets.c - secrets of a team: create, list, read, change, delete. A value goes in and never comes out, and no
 * message repeats anything of a request: what a client sends here may be a value in the wrong place. */
#include "gate/api/api.h"

#include <stdio.h>

#define ID_WORD            20 /* random characters behind "sec_" */
#define PAGE_MAX           100
#define METADATA_ENTRIES   32
#define METADATA_KEY_MAX   128
#define METADATA_VALUE_MAX 1024
#define METADATA_MAX       8192

/* ---- reading; each answers 400 itself ---- */

static bool refuse(struct req *r, const char *why)
{
  api_error(r, 400, "%s", why);
  return false;
}

static bool is_word(struct str s, const char *others)
{
  for (size_t i = 0; i < s.n; i++) {
    char c = s.p[i];
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr(others, c))))
      return false;
  }
  return true;
}

static struct str lower(struct req *r, struct str s)
{
  char *p = arena_alloc(r->arena, s.n + 1);
  for (size_t i = 0; p && i < s.n; i++)
    p[i] = s.p[i] >= 'A' && s.p[i] <= 'Z' ? (char)(s.p[i] + 32) : s.p[i];
  return p ? (struct str){p, s.n} : STR_NONE;
}

static bool put_name(struct req *r, struct buf *b)
{
  struct str name = json_text(json_get(r->json, "name"), STR_NONE);
  if (!name.n || name.n >= SECRET_NAME_SIZE)
    return refuse(r, "'name' must be a text of 1 to 128 characters of a-z, A-Z, 0-9, '_' and '-'");
  name = lower(r, name);
  if (!name.n || !is_word(name, "_-"))
    return refuse(r, "'name' may hold only a-z, A-Z, 0-9, '_' and '-'");
  if (str_starts(name, STR("sec_")))
    return refuse(r, "'name' may not begin with 'sec_', as ids of secrets do");
  wire_put(b, W_NAME, name);
  return true;
}

/* The only use of a value is in a header, which can't hold a line break or another control character. */
static bool put_value(struct req *r, struct buf *b)
{
  const struct json *v = json_get(r->json, "value");
  unsigned most = r->gate->config->secret_value_max;
  if (!json_is(v, JSON_STRING) || !v->text.n)
    return refuse(r, "'value' must be a text that is not empty");
  if (v->text.n > most) {
    api_error(r, 400, "'value' is too large: at most %u bytes are allowed", most);
    return false;
  }
  if (!utf8_valid(v->text))
    return refuse(r, "'value' holds half of a surrogate pair, which is no text");
  for (size_t i = 0; i < v->text.n; i++) {
    unsigned char c = (unsigned char)v->text.p[i];
    if ((c < 32 && c != '\t') || c == 127)
      return refuse(r, "'value' holds a line break or another control character, which no header can hold");
  }
  wire_put(b, W_SECRET, v->text);
  return true;
}

static bool metadata_entry(struct req *r, const struct json *all, const struct json *k, size_t *total)
{
  if (k->type != JSON_STRING)
    return refuse(r, "'metadata' must be an object of strings");
  if (!k->key.n || k->key.n > METADATA_KEY_MAX || k->text.n > METADATA_VALUE_MAX) {
    api_error(r, 400, "'metadata' may have keys of 1 to %d bytes and values of up to %d bytes", METADATA_KEY_MAX,
              METADATA_VALUE_MAX);
    return false;
  }
  for (const struct json *other = all->kids; other != k; other = other->next)
    if (str_eq(other->key, k->key))
      return refuse(r, "'metadata' has a key twice");
  *total += k->key.n + k->text.n;
  return true;
}

static bool put_metadata(struct req *r, struct buf *b)
{
  const struct json *v = json_get(r->json, "metadata");
  size_t total = 0;
  if (!json_given(v))
    return true;
  if (v->type != JSON_OBJECT)
    return refuse(r, "'metadata' must be an object of strings");
  if (v->count > METADATA_ENTRIES) {
    api_error(r, 400, "'metadata' has %zu entries; at most %d are allowed", v->count, METADATA_ENTRIES);
    return false;
  }
  for (const struct json *k = v->kids; k; k = k->next)
    if (!metadata_entry(r, v, k, &total))
      return false;
  if (total > METADATA_MAX) {
    api_error(r, 400, "'metadata' holds %zu bytes; at most %d are allowed", total, METADATA_MAX);
    return false;
  }
  cleanup_buf struct buf text = BUF_INIT(WIRE_MAX);
  json_put(&text, v, false);
  wire_put(b, W_METADATA, buf_str(&text));
  return true;
}

/* An id or a name. */
static bool begin_about(struct req *r, struct buf *b, enum wire_type type)
{
  struct str ref = lower(r, str_trim(r->id));
  bool is_id = str_starts(ref, STR("sec_"));
  if (is_id && (ref.n != 4 + ID_WORD || !is_word(str_skip(ref, 4), "")))
    return refuse(r, "this is not the id of a secret: 'sec_' and 20 letters or digits");
  if (!ref.n || ref.n >= SECRET_NAME_SIZE || !is_word(ref, "_-"))
    return refuse(r, "a secret is named by its id or its name: 1 to 128 characters of a-z, A-Z, 0-9, '_' and '-'");
  wire_begin(b, type, 0, 0);
  wire_putz(b, W_TEAM, r->team.id);
  wire_put(b, W_REF, ref);
  return true;
}

/* ---- answers ---- */

static void put_time(struct jw *w, const char *name, uint64_t us)
{
  char when[CLOCK_TEXT];
  clock_text((int64_t)us, when);
  jw_key(w, name);
  jw_z(w, when);
}

static void put_secret(struct jw *w, struct str p)
{
  struct str metadata = wire_get(p, W_METADATA);
  jw_open(w, '{');
  jw_key(w, "secretID");
  jw_str(w, wire_get(p, W_ID));
  jw_key(w, "name");
  jw_str(w, wire_get(p, W_NAME));
  jw_key(w, "currentVersion");
  jw_uint(w, wire_u64(p, W_VERSION, 0));
  jw_key(w, "metadata");
  jw_raw(w, metadata.n ? metadata : STR("{}"));
  put_time(w, "createdAt", wire_u64(p, W_CREATED, 0));
  put_time(w, "updatedAt", wire_u64(p, W_UPDATED, 0));
  jw_close(w, '}');
}

static bool failed(struct req *r, const struct warden_reply *reply)
{
  struct str message = wire_get(reply->packet, W_MESSAGE);
  r->pending_call = 0;
  if (reply->status == -E2BIG)
    api_fail(r, &(struct api_failure){.status = 409, .code = "secret_limit_reached"}, STR_FMT, STR_ARG(message));
  else if (reply->status == -ENOKEY)
    api_error(r, 403, STR_FMT, STR_ARG(message));
  else if (reply->status)
    api_warden_error(r, reply);
  return reply->status != 0;
}

static void answer_one(struct req *r, const struct warden_reply *reply, int status)
{
  if (failed(r, reply))
    return;
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  struct jw w = JW(&b);
  put_secret(&w, reply->packet);
  api_json(r, status, buf_str(&b));
}

static void created(const struct warden_reply *reply, void *arg)
{
  answer_one(arg, reply, 201);
}

static void told(const struct warden_reply *reply, void *arg)
{
  answer_one(arg, reply, 200);
}

static void deleted(const struct warden_reply *reply, void *arg)
{
  if (!failed(arg, reply))
    api_empty(arg, 204);
}

/* A page; one secret more than asked for tells that there is another one. */
struct secret_page {
  struct jw w;
  uint64_t limit, shown;
  int64_t last_us;
  char last[SECRET_ID_SIZE];
  bool more;
};

static void list_item(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct secret_page *page = r->state;
  if (page->shown == page->limit) {
    page->more = true;
    return;
  }
  page->shown++;
  page->last_us = (int64_t)wire_u64(reply->packet, W_CREATED, 0);
  wire_copyz(reply->packet, W_ID, page->last, sizeof(page->last));
  put_secret(&page->w, reply->packet);
}

static void list_done(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct secret_page *page = r->state;
  cleanup_buf struct buf plain = BUF_INIT(256), token = BUF_INIT(512);
  if (failed(r, reply))
    return;
  jw_close(&page->w, ']');
  buf_addf(&plain, "%lld %s", (long long)page->last_us, page->last);
  api_token_add(&token, buf_str(&plain));
  struct http_header next = {STR("X-Next-Token"), buf_str(&token)};
  api_json_with(r, 200, buf_str(page->w.b), &next, page->more ? 1 : 0);
}

/* What X-Next-Token told: the time and the id of the last one of a page. */
static bool put_after(struct req *r, struct buf *b)
{
  struct str token = api_query(r, "nextToken"), time, id;
  cleanup_buf struct buf plain = BUF_INIT(256);
  uint64_t us;
  if (!token.n)
    return true;
  if (base64_decode(token, &plain) || !str_cut(buf_str(&plain), ' ', &time, &id) || str_u64(time, &us) ||
      us > INT64_MAX || id.n >= SECRET_ID_SIZE || !is_word(id, "_"))
    return refuse(r, "'nextToken' is not one of this listing; give back an X-Next-Token, or leave it out");
  wire_put_u64(b, W_FROM, us);
  wire_put(b, W_REF, id);
  return true;
}

/* ---- routes ---- */

/* Where the value was, beside what the exchange itself wipes at its end. */
static void wipe_value(struct req *r, struct buf *b)
{
  const struct json *v = json_get(r->json, "value");
  if (json_is(v, JSON_STRING) && v->text.n)
    explicit_bzero((char *)v->text.p, v->text.n);
  if (b->p)
    explicit_bzero(b->p, b->n);
}

void team_secret_create(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  char id[SECRET_ID_SIZE] = "sec_";
  random_id(id + 4, ID_WORD);
  buf_reserve(&b, WIRE_MAX);
  wire_begin(&b, WIRE_SECRET_CREATE, 0, 0);
  wire_putz(&b, W_TEAM, r->team.id);
  wire_putz(&b, W_ID, id);
  if (put_name(r, &b) && put_value(r, &b) && put_metadata(r, &b))
    api_call_warden(r, &b, NULL, created);
  wipe_value(r, &b);
}

void team_secret_list(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(1024);
  struct str limit = api_query(r, "limit");
  struct secret_page *page = arena_alloc(r->arena, sizeof(*page));
  *page = (struct secret_page){.w = JW(&r->body), .limit = PAGE_MAX};
  if (limit.p && (str_u64(limit, &page->limit) || !page->limit || page->limit > PAGE_MAX)) {
    refuse(r, "'limit' must be from 1 to 100");
    return;
  }
  buf_clear(&r->body);
  jw_open(&page->w, '[');
  r->state = page;
  wire_begin(&b, WIRE_SECRET_LIST, 0, 0);
  wire_putz(&b, W_TEAM, r->team.id);
  wire_put_u64(&b, W_COUNT, page->limit + 1);
  if (put_after(r, &b))
    api_call_warden_list(r, &b, list_item, list_done);
}

void team_secret_get(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(1024);
  if (begin_about(r, &b, WIRE_SECRET_GET))
    api_call_warden(r, &b, NULL, told);
}

void team_secret_update(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  char request[UUID_TEXT];
  uuid4(request);
  buf_reserve(&b, WIRE_MAX);
  if (begin_about(r, &b, WIRE_SECRET_CHANGE)) {
    wire_putz(&b, W_BUILD, request);
    if (put_value(r, &b) && put_metadata(r, &b))
      api_call_warden(r, &b, NULL, told);
  }
  wipe_value(r, &b);
}

void team_secret_delete(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(1024);
  if (begin_about(r, &b, WIRE_SECRET_DELETE))
    api_call_warden(r, &b, NULL, deleted);
}
