/* SPDX-License-Identifier: Apache-2.0 */
/* jupyter_channel.h - one of a Jupyter kernel's sockets: TCP on loopback, ZMTP on top.
 *
 * A kernel binds some time after it was started, so connecting is tried again and again until the channel is closed. */
#ifndef CLOCHE_AGENT_INTERPRETER_JUPYTER_CHANNEL_H
#define CLOCHE_AGENT_INTERPRETER_JUPYTER_CHANNEL_H

#include "agent/interpreter/jupyter_zmtp.h"
#include <uv.h>

struct channel {
  struct zmtp zmtp;
  uv_loop_t *loop;
  uv_poll_t *poll; /* freed by its own close; NULL while not connected */
  int fd;
  uint16_t port;
};

void channel_init(struct channel *c, uv_loop_t *loop, uint16_t port, bool subscriber, const char *identity,
                  void (*message)(void *arg, const struct str *frames, size_t n), void *arg);
void channel_free(struct channel *c);
void channel_connect(struct channel *c);    /* one try; call again until channel_open() */
bool channel_open(const struct channel *c); /* both sides have shaken hands */
int channel_send(struct channel *c, const struct str *frames, size_t n);
bool channel_read(struct channel *c); /* what is there now; false when there was nothing */

#endif
