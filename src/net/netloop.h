/* SPDX-License-Identifier: Apache-2.0 */
/* netloop.h - what all connections of one libuv loop share. See netloop.c. */
#ifndef CLOCHE_NETLOOP_H
#define CLOCHE_NETLOOP_H

#include "base/base.h"
#include <uv.h>

#define NET_IN_SIZE ((size_t)64 << 10)
#define NET_DATE    40

struct conn;
struct conn_seg;

struct net {
  uv_loop_t *loop;
  struct net *next;
  unsigned refs;    /* servers and connections */
  unsigned handles; /* of our own still open */
  uv_timer_t sweep;
  uv_check_t check;
  uv_idle_t idle;
  struct conn *conns;  /* every open connection */
  struct conn *cursor; /* where a sweep goes on */
  size_t nconns;
  uint64_t due; /* when the next sweep is to be, 0 = none */
  struct conn *deferred, **deferred_tail;
  struct conn *gathered;  /* have small writes that wait for the end of gathering */
  unsigned gathering;     /* how deep */
  unsigned hellos;        /* steps of TLS handshakes in this iteration; tls.c */
  uint64_t held;          /* bytes that wait in memory or pipes, of all connections: conn_hold */
  uint64_t held_max;      /* over it, connections that stand still are cut; 0 = no limit */
  uint64_t relieve_at;    /* when that may be looked at again */
  struct conn_seg *spare; /* small output blocks for reuse */
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

/* A sweep will look at the deadlines no later than shortly after `due` (loop time, milliseconds). */
void net_wake(struct net *n, uint64_t due);

void net_deferred_soon(struct net *n); /* the loop does not sleep before n->deferred have run */

/* What is written between these two, in small pieces to any of the loop's connections, leaves at the end of the
 * outermost pair, each connection's in one call. Steps of connections are such pairs. */
void net_gather(struct net *n);
void net_let_go(struct net *n);

/* Sun, 06 Nov 1994 08:49:37 GMT */
struct str net_date(struct net *n);

#endif
