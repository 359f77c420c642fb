/* SPDX-License-Identifier: Apache-2.0 */
/* authority.c - see authority.h. */
#include "warden/rpc/authority.h"

#include "warden/db/catalog.h"
#include "warden/core/context.h"

static int refuse(struct request *q, int status, const char *why)
{
  reply_error(q, status, why);
  return status;
}

bool authority_admin(const struct request *q)
{
  struct str given = wire_get(q->packet, W_ADMIN), token = str_of(warden_config(q->warden)->admin_token);
  uint8_t hash[SHA256_LEN];
  sha256_of(token.p, token.n, hash);
  return token.n && given.n == sizeof(hash) && str_eq_secret(given, str_make(hash, sizeof(hash)));
}

static int by_key(struct request *q)
{
  const struct row_team *t = catalog_team_by_key(warden_catalog(q->warden), wire_get(q->packet, W_PROOF));
  if (!t)
    return refuse(q, -EACCES, "unknown key");
  if (q->team.n && !str_is(q->team, t->id))
    return refuse(q, -EPERM, "the key is another team's than the one named");
  q->team = str_of(t->id);
  q->proven = BY_KEY;
  return 0;
}

static int by_admin(struct request *q)
{
  if (!authority_admin(q))
    return refuse(q, -EACCES, "the administrator's token is wrong");
  q->proven = BY_ADMIN;
  return 0;
}

void upload_sign(const struct warden *w, struct str team, struct str hash, uint64_t expires,
                 char out[2 * SHA256_LEN + 1])
{
  cleanup_buf struct buf b = BUF_INIT(1024);
  uint8_t mac[SHA256_LEN];
  buf_addf(&b, "upload:" STR_FMT ":" STR_FMT ":%llu", STR_ARG(team), STR_ARG(hash), (unsigned long long)expires);
  hmac_sha256(str_of(warden_secret(w)), buf_str(&b), mac);
  hex_encode(mac, sizeof(mac), out);
}

/* The time is looked at when the upload begins: what has begun may end. */
static int by_link(struct request *q, enum wire_type type)
{
  char want[2 * SHA256_LEN + 1];
  uint64_t expires = wire_u64(q->packet, W_TO, 0);
  upload_sign(q->warden, str_sub(q->team, 0, 64), str_sub(wire_get(q->packet, W_NAME), 0, 64), expires, want);
  if (!str_eq_secret(wire_get(q->packet, W_SIGNATURE), str_of(want)))
    return refuse(q, -EPERM, "the upload link is not one of this server's");
  if (type == WIRE_FILE_OPEN && expires * 1000000 < (uint64_t)clock_wall_us())
    return refuse(q, -EPERM, "the upload link has expired; ask for another one");
  q->proven = BY_LINK;
  return 0;
}

int authority_admit(struct request *q, enum wire_type type, unsigned may)
{
  q->team = wire_get(q->packet, W_TEAM);
  if (q->peer->kind == PEER_ROOT) {
    q->proven = BY_ROOT;
    return 0;
  }
  if (!(may & ~(unsigned)BY_ROOT)) {
    log_with(LOG_WARN, (const char *[]){"event", "authority", NULL}, "a gate sent request %u, which only root may send",
             (unsigned)type);
    return refuse(q, -EPERM, "only the host's root user may send this request");
  }
  if ((may & BY_KEY) && wire_get(q->packet, W_PROOF).p)
    return by_key(q);
  if ((may & BY_ADMIN) && wire_get(q->packet, W_ADMIN).p)
    return by_admin(q);
  if (may & BY_LINK)
    return by_link(q, type);
  if (!(may & BY_ANYONE))
    return refuse(q, -EACCES, "a key is needed for this");
  if (q->team.n)
    return refuse(q, -EPERM, "a team was named without its key");
  q->proven = BY_ANYONE;
  return 0;
}
