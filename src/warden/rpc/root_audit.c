/* SPDX-License-Identifier: Apache-2.0 */
/* root_audit.c - see root_audit.h. What is told is chosen here: identifiers, never names that may be values, keys or
 * bodies. A request waits in a list until its reply goes out, or its connection is closed: then its status is 0. */
#include "warden/rpc/root_audit.h"

#include "warden/core/context.h"
#include "wire/audit_record.h"
#include "wire/box_socket.h"
#include "wire/http_status.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>

#define WAITING_MAX ((size_t)4 << 20) /* bytes for a role that does not read; more are counted as lost */
#define ASKED_MAX   1024              /* requests that wait for their replies; more are counted as lost */
#define METHOD      "warden.sock"

struct asked {
  const struct ipc *ipc;
  uint64_t id;
  int64_t from_us;
  const char *what;
  char who[ROOT_WHO_SIZE], team[64], about[AUDIT_TEXT_MAX], second[AUDIT_TEXT_MAX];
};

/* Of this process, which is one warden. */
static struct root_audit {
  struct ipc *link;
  uint64_t lost;
  bool on; /* there was a link: the server has an audit log */
  VEC(struct asked *) asked;
} audit;

/* ---- the role ---- */

static void role_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  if (fd >= 0)
    close(fd);
}

static void role_closed(struct ipc *l, void *arg)
{
  if (audit.link == l)
    audit.link = NULL;
  ipc_free(l);
}

static const struct ipc_ops role_ops = {role_packet, role_closed};

/* Where a value stands beside its name, people give it in place of the name: what was not found is not told there. */
static bool may_be_a_value(const struct asked *q, unsigned status)
{
  struct str what = str_of(q->what);
  return status >= 400 && (str_starts(what, STR("secret_")) || str_starts(what, STR("key_")));
}

static void tell(const struct asked *q, unsigned status, struct str made)
{
  bool named = !may_be_a_value(q, status);
  struct audit_record r = {.who = AUDIT_ROOT,
                           .team = str_of(q->team),
                           .client = str_of(q->who),
                           .method = STR(METHOD),
                           .route = str_of(q->what),
                           .id = named ? str_of(q->about) : STR_NONE,
                           .second = named ? str_of(q->second) : STR_NONE,
                           .made = q->about[0] ? STR_NONE : made,
                           .status = status,
                           .took_us = (uint64_t)(clock_mono_us() - q->from_us),
                           .lost = audit.lost};
  cleanup_buf struct buf b = BUF_INIT(16384);
  audit_record_pack(&b, &r);
  bool sent = audit.link && ipc_queued(audit.link) < WAITING_MAX && !ipc_send(audit.link, buf_str(&b), -1);
  audit.lost = sent ? 0 : audit.lost + 1;
}

static void replied(struct ipc *ipc, struct str packet)
{
  const struct wire_head *h = wire_head(packet);
  for (size_t i = 0; i < audit.asked.n; i++) {
    struct asked *q = audit.asked.p[i];
    if (q->ipc != ipc || q->id != h->id)
      continue;
    vec_remove_swap(&audit.asked, i);
    tell(q, h->status ? (unsigned)wire_http_status(-h->status) : 200, wire_get(packet, W_ID));
    free(q);
    return;
  }
}

void root_audit_link(struct warden *w, int fd)
{
  audit.on = true;
  reply_on_end(replied);
  box_socket_guard(fd);
  ipc_free(audit.link);
  audit.link = ipc_new(warden_loop(w), fd, &role_ops, NULL);
  ipc_guard(audit.link);
}

/* ---- root ---- */

void root_audit_who(int fd, char out[ROOT_WHO_SIZE])
{
  struct ucred who = {.uid = (uid_t)-1};
  char path[64];
  cleanup_buf struct buf b = BUF_INIT(64);
  getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &(socklen_t){sizeof(who)});
  int n = snprintf(out, ROOT_WHO_SIZE, "uid=%u pid=%d", (unsigned)who.uid, (int)who.pid);
  snprintf(path, sizeof(path), "/proc/%d/loginuid", (int)who.pid);
  uint64_t login = UINT32_MAX;
  if (!file_read(path, &b) && !str_u64(str_trim(buf_str(&b)), &login) && login != UINT32_MAX)
    snprintf(out + n, ROOT_WHO_SIZE - (size_t)n, " login=%llu", (unsigned long long)login);
}

void root_audit_asked(const struct request *q, const char *what, bool changes)
{
  if (!audit.on || (!changes && !warden_config(q->warden)->audit_reads))
    return;
  if (audit.asked.n >= ASKED_MAX) {
    audit.lost++;
    return;
  }
  struct asked *s = xcalloc(1, sizeof(*s));
  *s = (struct asked){.ipc = q->ipc, .id = q->id, .from_us = clock_mono_us(), .what = what};
  memcpy(s->who, q->peer->who, sizeof(s->who));
  str_copyz(str_sub(q->team, 0, sizeof(s->team) - 1), s->team, sizeof(s->team));
  str_copyz(str_sub(wire_get(q->packet, W_ID), 0, sizeof(s->about) - 1), s->about, sizeof(s->about));
  str_copyz(str_sub(wire_get(q->packet, W_REF), 0, sizeof(s->second) - 1), s->second, sizeof(s->second));
  vec_push(&audit.asked, s);
}

void root_audit_gone(const struct ipc *ipc)
{
  for (size_t i = 0; i < audit.asked.n;) {
    struct asked *q = audit.asked.p[i];
    if (q->ipc != ipc) {
      i++;
      continue;
    }
    vec_remove_swap(&audit.asked, i);
    tell(q, 0, STR_NONE);
    free(q);
  }
}
