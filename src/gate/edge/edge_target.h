/* SPDX-License-Identifier: Apache-2.0 */
/* edge_target.h - which port of which box a request means: by host name, by routing headers or by path. Pure. */
#ifndef CLOCHE_GATE_EDGE_TARGET_H
#define CLOCHE_GATE_EDGE_TARGET_H

#include "base/base.h"
#include "wire/sizes.h"

struct edge_target {
  char box[BOX_ID_SIZE];
  unsigned port;
  size_t skip; /* path style: bytes of the path that name the target; 0 otherwise */
  bool shared; /* a browser takes the answer as one of the API's origin, where the console is too: path style, signed
                  URLs, and what a page fetches by routing headers */
};

bool target_from_host(struct str host, struct edge_target *t); /* {port}-{id}[-anything].domain[:port] */
bool target_from_headers(struct str id, struct str port, struct edge_target *t); /* E2b-Sandbox-Id, E2b-Sandbox-Port */
bool target_from_path(struct str path, struct edge_target *t);                   /* /box/{id}/{port} and what follows */

#endif
