/* SPDX-License-Identifier: Apache-2.0 */
/* token_index.c - see token_index.h. Searches go through the table from its end to its beginning: a removed entry's
 * place is taken by the last one, which every search that is past that place has seen already. */
#include "warden/core/token_index.h"

#include "wire/api_key.h"
#include "warden/core/box_state.h"
#include "warden/core/warden_state.h"
#include "wire/signed_text.h"

struct candidate {
  struct box *box;
  char token[TOKEN_TEXT];
};

struct search {
  struct search *next;
  struct origin origin;
  struct str text;     /* before the token; owned, until it is hashed */
  struct sha256 begun; /* of it */
  char expires[SIGNED_EXPIRY_MAX + 1];
  uint8_t digest[SHA256_LEN];
  size_t left; /* entries not yet tried: the first ones */
};

struct token_index {
  VEC(struct candidate) table;
  struct map hashes; /* SHA-256 of a token -> its struct box */
  struct search *first, **last;
  size_t waiting;
  uv_idle_t idle;
  bool ready;
};

static struct token_index *token_index_of(struct warden *w)
{
  if (!w->token_index) {
    w->token_index = xcalloc(1, sizeof(*w->token_index));
    w->token_index->last = &w->token_index->first;
  }
  return w->token_index;
}

static struct str token_hash(const struct candidate *c, uint8_t out[SHA256_LEN])
{
  sha256_of(c->token, strlen(c->token), out);
  return str_make(out, SHA256_LEN);
}

void token_index_add(struct box *b)
{
  struct token_index *s = token_index_of(b->warden);
  if (b->token_index_at || !(b->row.flags & BOX_SECURE))
    return;
  struct candidate c = {.box = b};
  token_make(str_of(b->warden->secret), TOKEN_ACCESS, str_of(b->row.id), c.token);
  vec_push(&s->table, c);
  b->token_index_at = s->table.n;
  uint8_t hash[SHA256_LEN];
  map_put(&s->hashes, token_hash(&c, hash), b);
}

void token_index_remove(struct box *b)
{
  struct token_index *s = token_index_of(b->warden);
  if (!b->token_index_at)
    return;
  size_t i = b->token_index_at - 1;
  uint8_t hash[SHA256_LEN];
  map_del(&s->hashes, token_hash(&s->table.p[i], hash));
  vec_remove_swap(&s->table, i);
  if (i < s->table.n)
    s->table.p[i].box->token_index_at = i + 1;
  b->token_index_at = 0;
  for (struct search *one = s->first; one; one = one->next)
    one->left = MIN(one->left, s->table.n);
}

const struct box *token_index_token(struct warden *w, struct str hash)
{
  return map_get(&token_index_of(w)->hashes, hash);
}

int token_index_signature(struct str signature, uint8_t digest[SHA256_LEN])
{
  cleanup_buf struct buf raw = BUF_INIT(256);
  if (!str_starts(signature, STR("v1_")) || signature.n > 64 || base64_decode(str_skip(signature, 3), &raw) ||
      raw.n != SHA256_LEN)
    return -EINVAL;
  memcpy(digest, raw.p, SHA256_LEN);
  return 0;
}

static void tell(struct warden *w, struct origin origin, int status, const char *id)
{
  cleanup_buf struct buf out = BUF_INIT(1024);
  wire_begin(&out, WIRE_REPLY, origin.id, status);
  if (id)
    wire_putz(&out, W_ID, id);
  reply_packet(w, origin, &out);
}

static bool made_by(const struct search *one, const struct candidate *c)
{
  struct sha256 s = one->begun;
  uint8_t digest[SHA256_LEN];
  sha256_add(&s, c->token, TOKEN_TEXT - 1);
  sha256_add(&s, one->expires, strlen(one->expires));
  sha256_end(&s, digest);
  return str_eq_secret(str_make(digest, sizeof(digest)), str_make(one->digest, sizeof(one->digest)));
}

static void search_end(struct warden *w, int status, const char *id)
{
  struct token_index *s = w->token_index;
  struct search *one = s->first;
  s->first = one->next;
  if (!s->first)
    s->last = &s->first;
  s->waiting--;
  tell(w, one->origin, status, id);
  free((char *)one->text.p);
  free(one);
}

/* What this costs, in tries. */
static int search_begin(struct search *one)
{
  int cost = (int)(one->text.n / SEEK_TRY_BYTES);
  sha256_init(&one->begun);
  sha256_add(&one->begun, one->text.p, one->text.n);
  free((char *)one->text.p);
  one->text = STR_NONE;
  return cost;
}

static void search_slice(struct warden *w)
{
  struct token_index *s = w->token_index;
  for (int i = 0; i < SEEK_SLICE && s->first; i++) {
    struct search *one = s->first;
    if (one->text.p)
      i += search_begin(one);
    const struct candidate *c = one->left ? &s->table.p[--one->left] : NULL;
    if (!c)
      search_end(w, -EACCES, NULL);
    else if (made_by(one, c))
      search_end(w, 0, c->box->row.id);
  }
}

/* Once per turn of the loop, whatever number of questions a turn brought. */
static void search_on_idle(uv_idle_t *idle)
{
  struct warden *w = idle->data;
  search_slice(w);
  if (!w->token_index->first)
    uv_idle_stop(idle);
}

void token_index_find(struct warden *w, struct origin origin, struct str text, struct str expires, struct str signature)
{
  struct token_index *s = token_index_of(w);
  uint8_t digest[SHA256_LEN];
  if (s->waiting >= SEEK_MAX) {
    tell(w, origin, -EAGAIN, NULL);
    return;
  }
  if (!signed_text_ok(text, expires) || token_index_signature(signature, digest)) {
    tell(w, origin, -EACCES, NULL);
    return;
  }
  struct search *one = xcalloc(1, sizeof(*one));
  one->origin = origin;
  one->text = str_make(xstrndup(text.n ? text.p : "", text.n), text.n);
  one->left = s->table.n;
  str_copyz(expires, one->expires, sizeof(one->expires));
  memcpy(one->digest, digest, sizeof(digest));
  *s->last = one;
  s->last = &one->next;
  s->waiting++;
  if (!s->ready)
    uv_idle_init(w->loop, &s->idle);
  s->ready = true;
  s->idle.data = w;
  uv_idle_start(&s->idle, search_on_idle);
}
