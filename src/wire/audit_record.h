/* SPDX-License-Identifier: Apache-2.0 */
/* audit_record.h - one answered request as a gate or the warden tells the audit role (WIRE_AUDIT). Texts are what a
 * client wrote or chose; the role cuts them and writes them as JSON strings. No field ever holds a key, a token, a
 * query or a body. */
#ifndef CLOCHE_WIRE_AUDIT_RECORD_H
#define CLOCHE_WIRE_AUDIT_RECORD_H

#include "base/base.h"

/* What the client has shown. A link carries its own right: of an upload, or the token of a volume. Root
 * is the host's, on the warden's own socket, and only the warden may say so. */
enum audit_who { AUDIT_NOBODY, AUDIT_KEY, AUDIT_TOKEN, AUDIT_ADMIN, AUDIT_LINK, AUDIT_ROOT, AUDIT_WHOS };

struct audit_record {
  enum audit_who who;
  struct str key;              /* id of the key or access token, as `cloche key list` shows it */
  struct str team, team_name;  /* whose it is */
  struct str client;           /* ADDRESS:PORT of the connection; of root "uid=0 pid=1 login=1000" */
  struct str forwarded;        /* X-Forwarded-For, as it came: only a proxy that one runs makes it true */
  struct str agent;            /* User-Agent */
  struct str method, route;    /* "POST", "sandboxes/{id}/pause"; the path where no route matched */
  struct str id, second, made; /* what the path names, and what the request has made */
  unsigned status;
  uint64_t took_us;
  uint64_t lost;     /* records before this one that could not be sent */
  uint64_t left_out; /* not 0: this is no request, but so many of this team or of nobody that came too fast */
};

#define AUDIT_TEXT_MAX 256 /* bytes that are kept of a text; of most less (audit_record.c) */

/* Nobody has shown that it may ask for anything: what anyone who reaches the port can make as many of as it likes. */
bool audit_record_unproven(const struct audit_record *r);

void audit_record_pack(struct buf *b, const struct audit_record *r);
/* -EINVAL: it is none, or a gate's that claims root. Texts are slices of the packet. */
int audit_record_read(struct str packet, bool of_warden, struct audit_record *r);
/* One JSON object and a newline; control characters of texts become '?'. `gate`: its number; root's commands come by
 * none. */
void audit_record_line(struct buf *b, const struct audit_record *r, uint64_t gate, int64_t wall_us);

#endif
