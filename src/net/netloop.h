/* SPDX-License-Identifier: Apache-2.0 */
/* netloop.h - what all connections of one libuv loop share. See netloop.c. */
#ifndef CLOCHE_NETLOOP_H
#define CLOCHE_NETLOOP_H

#include "base/base.h"
#include <uv.h>

#define NET_IN_SIZE ((size_t)64 << 10)
#define NET_DATE    40

/* One connection as its loop sees it: embedded in struct conn, which provides the calls. */
struct net_member {
  const struct net_member_ops *ops;
  struct net_member *prev, *next; /* of the loop's members */
  struct net_member *deferred_next, *gather_next;
  uint64_t held;    /* bytes of all kinds that wait in memory, pipes and, by estimate, full sockets; conn_hold */
  uint64_t held_at; /* when some of them last went */
  bool deferred;    /* in net->deferred */
  bool gathered;    /* in net->gathered */
};

struct net_member_ops {
  void (*run)(struct net_member *m);                   /* its deferred run */
  void (*push)(struct net_member *m);                  /* gathered writes go out */
  uint64_t (*due)(const struct net_member *m);         /* when its next deadline is over, 0 = none */
  void (*expire)(struct net_member *m, uint64_t now);  /* a deadline is over */
  void (*postpone)(struct net_member *m, uint64_t ms); /* the process was stopped for that long */
  void (*cut)(struct net_member *m);                   /* too much waits, and its peer does not read */
};

struct net_block {
  struct net_block *next;
};

struct net {
  uv_loop_t *loop;
  struct net *next;
  unsigned refs;    /* servers and connections */
  unsigned handles; /* of our own still open */
  uv_timer_t sweep;
  uv_check_t check;
  uv_idle_t idle;
  struct net_member *members; /* every open connection */
  struct net_member *cursor;  /* where a sweep goes on */
  size_t nmembers;
  uint64_t due; /* when the next sweep is to be, 0 = none */
  struct net_member *deferred, **deferred_tail;
  struct net_member *gathered; /* have small writes that wait for the end of gathering */
  unsigned gathering;          /* how deep */
  unsigned hellos;             /* steps of TLS handshakes in this iteration; tls.c */
  uint64_t held;               /* bytes that wait in memory or pipes, of all connections: conn_hold */
  uint64_t held_max;           /* over it, connections that stand still are cut; 0 = no limit */
  uint64_t relieve_at;         /* when that may be looked at again */
  struct net_block *spare;     /* freed output blocks for reuse, all of one size */
  size_t nspare;
  struct buf head; /* where heads are put together */
  char *copy;      /* for files that sendfile can't carry; made at first use */
  int pipe[2];     /* empty, for splice.c; 0 = none yet */
  int64_t date_at;
  char date[NET_DATE];
  char in[]; /* NET_IN_SIZE; every read lands here, so an idle connection holds no buffer */
};

/* The one of that loop, made at first use. Each net_ref is paired with a net_unref. */
struct net *net_of(uv_loop_t *loop);
void net_unref(struct net *n);

/* A connection opens and closes. */
void net_join(struct net *n, struct net_member *m);
void net_leave(struct net *n, struct net_member *m);

/* A sweep will look at the deadlines no later than shortly after `due` (loop time, milliseconds). */
void net_wake(struct net *n, uint64_t due);

/* m->ops->run comes once, at the end of this loop iteration or at the start of the next. */
void net_defer(struct net *n, struct net_member *m);
void net_defer_cancel(struct net *n, struct net_member *m);

/* What is written between these two, in small pieces to any of the loop's connections, leaves at the end of the
 * outermost pair, each connection's in one call. Steps of connections are such pairs. */
void net_gather(struct net *n);
void net_let_go(struct net *n);
void net_gather_add(struct net *n, struct net_member *m); /* m->ops->push comes at the end of gathering */

/* Sun, 06 Nov 1994 08:49:37 GMT */
struct str net_date(struct net *n);

#endif
