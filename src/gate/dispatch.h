/* SPDX-License-Identifier: Apache-2.0 */
/* dispatch.h - every request comes in here. */
#ifndef CLOCHE_GATE_DISPATCH_H
#define CLOCHE_GATE_DISPATCH_H

#include "net/http.h"

void dispatch_request(struct http_x *x, void *gate);

#endif
