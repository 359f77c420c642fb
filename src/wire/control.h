/* SPDX-License-Identifier: Apache-2.0 */
/* control.h - what the supervisor and its roles say to each other on fd 3 of each role: single packets of one letter,
 * sometimes with text or a descriptor behind it. A role whose supervisor is gone leaves by itself. */
#ifndef CLOCHE_WIRE_CONTROL_H
#define CLOCHE_WIRE_CONTROL_H

#include "base/base.h"

#define CONTROL_FD          3
#define CONTROL_SETTINGS_FD 4 /* at the start of a role: its settings */

struct ipc;

/* What a role does with changed settings, set before it starts; `pack` is as src/cli/config.c writes it. */
void control_on_settings(void (*take)(struct str pack, void *arg), void *arg);
/* True when the packet was settings: they are in the role's config now, and what was copied from there is to be copied
 * again. */
bool control_settings(struct str packet);

/* A role can't start: logs why and tells the supervisor. Returns the exit status. */
int control_failed(struct ipc *control, const struct err *err);

enum control {
  CONTROL_LINK = 'L',   /* to both: a new end of a gate-warden link comes with it */
  CONTROL_LISTEN = 'P', /* to a gate: a listening socket comes with it */
  CONTROL_METRICS_SHM =
      'B', /* to a gate: the shared memory of all gates' figures comes with it; the text is "<slot>/<slots>" */
  CONTROL_METRICS = 'M',     /* to a gate: a listening socket for figures and health only comes with it */
  CONTROL_CERTIFICATE = 'C', /* to a gate: sealed memory comes with it: "<n> <m>\n", n bytes of certificates, m of the
                                key (PEM), ticket keys */
  CONTROL_LISTEN_TLS = 'S',  /* to a gate: a listening socket for https comes with it */
  CONTROL_SENDER = 'W',      /* to the warden: its end of the link to the sender comes with it */
  CONTROL_EGRESS = 'G',      /* to the warden: its end of the link to the egress gateway comes with it */
  CONTROL_CONTENT = 'V',     /* to the warden: its end of the link to the content role comes with it */
  CONTROL_STORE = 'D',       /* to the warden: its end of the link to the store process comes with it */
  CONTROL_MCP = 'A',         /* to a gate: its end of a link to the MCP role comes with it */
  CONTROL_WANT_MCP = 'Q',    /* from a gate: it needs the MCP role */
  CONTROL_AUDIT = 'U',       /* to a gate, to the warden: its end of a link to the audit role comes with it */
  CONTROL_EXPORTER = 'X',    /* to a gate, to the warden: its end of a link to the exporter comes with it; to the
                                exporter: its end of the warden's */
  CONTROL_OWN = 'O',         /* to the sender: the server's own listeners, "ADDRESS:PORT" lines */
  CONTROL_SETTINGS = 'Y',    /* to all: settings that changed, and those that could (control_settings) */
  CONTROL_STOP = 'T',        /* to both: leave; boxes stay */
  CONTROL_STOP_ALL = 'E',    /* to the warden: end all boxes, then leave */
  CONTROL_CONSOLE = 'H',     /* to a gate: serve the console; its files may come with it (file_pack.h) */
  CONTROL_READY = 'R',       /* from a role: it works; the warden's carries the first API key (at the first start) and a
                                code for the console as text, a line each */
  CONTROL_FAILED = 'F',      /* from a role: why it can't start */
  CONTROL_HUNG = 'H',        /* from the warden: the content role does not answer, it is to be replaced */
};

#endif
