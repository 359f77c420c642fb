/* SPDX-License-Identifier: Apache-2.0 */
/* conn.h - one connected stream socket on a libuv loop, for servers and clients alike. See conn.c. */
#ifndef CLOCHE_CONN_H
#define CLOCHE_CONN_H

#include "base/base.h"
#include "net/netloop.h"
#include <sys/uio.h>

#define container_of(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))

struct conn;

/* Bytes that the kernel keeps for a socket behind those that are on their way. Sockets whose peers do not read hold no
 * more, and those whose peers read lose nothing: the window grows as the way is long. */
#define UNSENT_MAX (128 << 10)

/* Where bytes go that nobody looks at. */
struct conn_way {
  struct conn *conn; /* NULL: nowhere now */
  bool wait;         /* with that: they stay in the socket, where the protocol takes them, or will ask again */
};

/* The protocol above. None of these is called from inside a conn_* call, so the protocol may call conn_* in all. */
struct conn_ops {
  /* Bytes that came or waited (perhaps none: a deferred run, or output went out). Takes from the front what it can use;
   * the rest waits and is offered again with more, or in the next deferred run. */
  void (*step)(struct conn *c, struct str *in);
  void (*eof)(struct conn *c);   /* the peer closed its direction; all bytes before it were offered */
  void (*left)(struct conn *c);  /* the peer closed its direction while its bytes wait because nobody wants them */
  void (*moved)(struct conn *c); /* output may have gone out */
  void (*broken)(struct conn *c, int code, bool writing); /* reading: nothing more comes. writing: output was dropped */
  void (*due)(struct conn *c);                            /* c->deadline is over */
  void (*freed)(struct conn *c);                          /* the last call; the memory is the owner's again */
  /* How many of the bytes to come are only carried on, and whereto; 0: `step` is to see them. May be NULL. */
  uint64_t (*pass)(struct conn *c, struct conn_way *to);
  void (*passed)(struct conn *c, size_t n); /* that many were; `step` follows */
};

/* What carries the bytes. Like the system calls, but negative errno. */
struct conn_io {
  ssize_t (*read)(struct conn *c, void *p, size_t n);
  ssize_t (*write)(struct conn *c, const struct iovec *v, int n, bool more);
  ssize_t (*file)(struct conn *c, int fd, uint64_t offset, size_t n); /* NULL: copied through memory */
  int (*shut)(struct conn *c);                                        /* end of our direction */
  bool (*pending)(const struct conn *c); /* holds bytes that the socket no longer shows; NULL: never */
  void (*close)(struct conn *c,
                bool clean); /* before the descriptor closes; clean: nothing was cut off; NULL: no matter */
};
extern const struct conn_io conn_io_plain;

struct conn {
  uv_poll_t poll;
  struct net *net;
  const struct conn_ops *ops;
  const struct conn_io *io;
  void *io_data;
  const void *group; /* the server it belongs to, or NULL */
  struct net_member node;
  struct buf in; /* bytes that wait, the first in_off of them used */
  size_t in_off;
  struct conn_seg *out, *out_last;
  uint64_t queued;   /* bytes of out, those of files too */
  size_t queued_mem; /* without files */
  unsigned npiped;   /* pieces of out that are pipes */
  size_t in_held;    /* of node.held, in `in` */
  uint64_t deadline; /* loop time in ms, 0 = none; conn_deadline */
  uint64_t stall_at; /* last time output moved */
  unsigned stall_ms; /* 0 = a peer may refuse output for ever */
  int fd, events;
  int out_error;
  const char *refusal; /* why the carrier gave up, a constant; NULL: it did not */
  bool want;           /* set by the protocol: it has use for more bytes */
  bool lent;           /* set by the protocol: somebody else reads from the socket */
  bool eof, gone, failed, closed;
  bool cut;         /* with gone: by a reset */
  bool blocked;     /* the socket takes no more; out waits for it */
  bool read_waits;  /* set by the carrier: it can't read before it could write */
  bool write_waits; /* set by the carrier: it can't write before the peer has spoken */
  bool shut_asked, shut_done;
  unsigned spent; /* of CONN_SHARE, in this event or deferred run */
  bool busy;      /* its share is used up: it is not read before its next deferred run */
  bool stepping, error_told;
  bool exit_resets; /* conn_reset_by_exit */
};

/* fd is owned from here. ops->freed comes once for each conn_start, after conn_close. */
int conn_start(struct conn *c, struct net *net, int fd, const struct conn_ops *ops, size_t in_max);
void conn_deadline(struct conn *c, unsigned ms); /* 0 = none */

/* Written at once as far as the socket takes it, the rest is copied. cork: kept for the next write, or for the
 * end of this loop iteration, to go out in one packet with it. While a net gathers, all small writes are kept until
 * that ends. 0 or -EPIPE, -ENOBUFS. */
int conn_write(struct conn *c, const struct iovec *v, int n, bool cork);
int conn_write_file(struct conn *c, int fd, uint64_t offset, uint64_t n); /* fd owned, in all cases */
int conn_write_pipe(struct conn *c, int fd, size_t n);                    /* what a pipe holds, all of it; fd owned */
void conn_push(struct conn *c); /* corked bytes go, now or when the net lets go */
void conn_push_now(struct conn *c);
void conn_full(struct conn *c);                /* the protocol waits for `moved` from now on */
void conn_shut(struct conn *c);                /* our direction ends once the queue is out */
void conn_hold(struct conn *c, uint64_t n);    /* that many more bytes wait, here or in the protocol */
void conn_release(struct conn *c, uint64_t n); /* that many went, or were dropped */
void conn_defer(struct conn *c);
/* The protocol reports what it does for the peer, in units of about a nanosecond. One whose share of this event is used
 * up becomes `busy`: the protocol stops where it is, and goes on in the connection's next deferred run, after
 * all other connections. */
#define CONN_SHARE ((unsigned)1 << 20)
bool conn_spend(struct conn *c, size_t units); /* true: busy */
void conn_close(struct conn *c);               /* FIN, unless unread bytes make it RST */
void conn_reset(struct conn *c);               /* RST; queued output is lost */
void conn_reset_by_exit(struct conn *c);       /* from now on the same happens where the process ends, by any cause */

#endif
