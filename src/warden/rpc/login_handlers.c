/* SPDX-License-Identifier: Apache-2.0 */
/* login_handlers.c - signing a browser in to the console: root, or who has a key, has a code made; the browser brings
 * it back and gets an API key that ends by itself. Beside the hash of the key nothing of a session is kept. */
#include "warden/rpc/handlers.h"

#include "warden/core/context.h"
#include "warden/rpc/login.h"

#include <stdio.h>

#define SESSIONS_MAX 50 /* keys of one team that end by themselves; one more replaces the one that ends first */

static struct login_codes *codes_of(struct warden *w)
{
  struct login_codes *c = warden_login_codes(w);
  if (c)
    return c;
  c = xcalloc(1, sizeof(*c));
  warden_set_login_codes(w, c);
  return c;
}

void login_code_for(struct warden *w, struct str team, char text[LOGIN_CODE_TEXT])
{
  login_code_make(codes_of(w), team, clock_wall_us(), warden_config(w)->console_code_s, text);
}

void handle_login_code(struct request *q)
{
  char text[LOGIN_CODE_TEXT];
  const struct row_team *t =
      q->team.n ? catalog_team(warden_catalog(q->warden), q->team) : catalog_first_team(warden_catalog(q->warden));
  if (!t || catalog_system_team(t)) {
    reply_error(q, -ENOENT, "no such team; 'cloche team list' names them");
    return;
  }
  login_code_for(q->warden, str_of(t->id), text);
  reply_begin(q, WIRE_REPLY, 0);
  wire_putz(q->out, W_SECRET, text);
  wire_put_u64(q->out, W_TIMEOUT, warden_config(q->warden)->console_code_s);
  reply_send(q);
  explicit_bzero(text, sizeof(text));
}

static void keys_changed(struct warden *w)
{
  cleanup_buf struct buf p = BUF_INIT(256);
  wire_begin(&p, WIRE_KEYS_CHANGED, 0, 0);
  reply_broadcast(w, buf_str(&p));
}

/* Deletes the key that ends first of those that end: of the team where it has `most`, of all where it is over. */
static bool drop_one(struct warden *w, struct str team, size_t most, int64_t now_us)
{
  const struct row_key *const *list, *first = NULL;
  struct err err = ERR_NONE;
  size_t n = catalog_keys(warden_catalog(w), &list), have = 0;
  for (size_t i = 0; i < n; i++) {
    if (!list[i]->expires_us || (team.n && !str_is(team, list[i]->team)))
      continue;
    have++;
    if (!first || list[i]->expires_us < first->expires_us)
      first = list[i];
  }
  if (!first || (first->expires_us > now_us && have < most))
    return false;
  char owner[UUID_SIZE], id[UUID_SIZE];
  memcpy(owner, first->team, sizeof(owner));
  memcpy(id, first->id, sizeof(id));
  if (!catalog_key_delete(warden_catalog(w), str_of(owner), str_of(id), &err))
    return true;
  log_error("a key that is over can't be deleted: %s", err.msg);
  return false;
}

void login_expire(struct warden *w)
{
  bool any = false;
  while (drop_one(w, STR_NONE, SIZE_MAX, clock_wall_us()))
    any = true;
  if (any)
    keys_changed(w);
}

void handle_login(struct request *q)
{
  struct err err = ERR_NONE;
  char team[UUID_SIZE], name[DISPLAY_NAME_SIZE], when[CLOCK_TEXT];
  const struct row_key *k = NULL;
  int64_t now = clock_wall_us();
  if (login_code_use(codes_of(q->warden), wire_get(q->packet, W_SECRET), now, team)) {
    reply_error(q, -EACCES, "this sign-in link was used already or is over; 'cloche open' prints another one");
    return;
  }
  while (drop_one(q->warden, str_of(team), SESSIONS_MAX, now))
    ;
  clock_text(now, when);
  snprintf(name, sizeof(name), "console, signed in %.16s", when);
  if (catalog_session_key_add(warden_catalog(q->warden), str_of(team), str_of(name), wire_get(q->packet, W_KEYHASH),
                              wire_get(q->packet, W_MASK),
                              now + (int64_t)warden_config(q->warden)->console_session_h * 3600 * 1000000, &k, &err)) {
    reply_err(q, &err);
    return;
  }
  keys_changed(q->warden);
  const struct row_team *t = catalog_team(warden_catalog(q->warden), str_of(team));
  reply_begin(q, WIRE_REPLY, 0);
  wire_putz(q->out, W_ID, k->id);
  wire_putz(q->out, W_TEAM, k->team);
  wire_putz(q->out, W_NAME, t ? t->name : "");
  wire_put_u64(q->out, W_END, (uint64_t)k->expires_us);
  reply_send(q);
}
