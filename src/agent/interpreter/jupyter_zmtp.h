/* SPDX-License-Identifier: Apache-2.0 */
/* jupyter_zmtp.h - the part of ZMTP 3.0 that talking to a Jupyter kernel takes; no sockets in here.
 *
 * NULL mechanism, client side of DEALER and SUB. libzmq would bring C++, threads and a second event loop into a static
 * program that must stay small; the wire format we need fits into this file. Bytes from the peer go into zmtp_feed(),
 * complete messages come out through the callback, and what must be sent gathers in `out`. There is no high-water mark
 * and nothing is dropped. */
#ifndef CLOCHE_AGENT_INTERPRETER_JUPYTER_ZMTP_H
#define CLOCHE_AGENT_INTERPRETER_JUPYTER_ZMTP_H

#include "base/base.h"

#define ZMTP_FRAMES_MAX  64                  /* frames of one message */
#define ZMTP_MESSAGE_MAX ((size_t)272 << 20) /* bytes of one message, all frames */

enum zmtp_state { ZMTP_GREETING, ZMTP_HANDSHAKE, ZMTP_OPEN, ZMTP_BROKEN };

struct zmtp {
  enum zmtp_state state;
  bool subscriber; /* SUB, else DEALER */
  char identity[64];
  void (*message)(void *arg, const struct str *frames, size_t n);
  void *arg;
  struct buf in, out;
  size_t parsed, start; /* bytes of `in` that were looked at, and where among them the unfinished message begins */
  size_t at[ZMTP_FRAMES_MAX], len[ZMTP_FRAMES_MAX], n; /* its frames, as places in `in` */
};

void zmtp_init(struct zmtp *z, bool subscriber, const char *identity,
               void (*message)(void *arg, const struct str *frames, size_t n), void *arg);
void zmtp_free(struct zmtp *z);
/* 0, or negative when the peer broke the protocol (state is ZMTP_BROKEN then). */
int zmtp_feed(struct zmtp *z, struct str bytes);
/* One message. Only in state ZMTP_OPEN. */
int zmtp_send(struct zmtp *z, const struct str *frames, size_t n);

#endif
