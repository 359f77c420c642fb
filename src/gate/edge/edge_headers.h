/* SPDX-License-Identifier: Apache-2.0 */
/* edge_headers.h - which headers of a box's answer pass, and how. All boxes have host names below one domain; a cookie
 * with that domain would be sent to the boxes of others, and stand among theirs. */
#ifndef CLOCHE_GATE_EDGE_HEADERS_H
#define CLOCHE_GATE_EDGE_HEADERS_H

#include "base/base.h"

bool hop_by_hop(struct str name);
/* Path style: the answer comes from the API's own origin, so what a browser would take as said about all of it is left
 * out. */
bool about_origin(struct str name);
/* The value of a Set-Cookie header without its Domain attributes, so that the cookie is the answering host's alone. The
 * same text where there is none; p NULL: no memory. */
struct str cookie_host_only(struct arena *a, struct str value);

#endif
