/* SPDX-License-Identifier: Apache-2.0 */
/* console.h - the files of the web console (docs/console.md), out of memory that the supervisor packed. It promises
 * that only GET and HEAD of `/`, `/console` and what is below it are answered here, that each answer has the strict
 * headers of its kind, and that nothing of a request names a file of the host. */
#ifndef CLOCHE_GATE_CONSOLE_H
#define CLOCHE_GATE_CONSOLE_H

#include "gate/gate_state.h"

bool console_owns(const struct gate *g, const struct http_head *h);
void console_request(struct gate *g, struct http_x *x); /* takes the exchange */
/* Memory of file_pack.h comes with it (closed here); -1: there is no console in this build, which its page says. */
void console_take(struct gate *g, int fd);

/* Pure: which file a path means. NULL: none; a path of the page's own routes means index.html. */
struct file_pack;
const struct packed_file *console_find(const struct file_pack *p, struct str path);

#endif
