/* SPDX-License-Identifier: Apache-2.0 */
/* store_role.h - `cloche-store role`: the store process of a server whose setting `store` names a PostgreSQL. The
 * supervisor starts it with the control socket (wire/control.h) and a description on CONTROL_SETTINGS_FD: lines "uid
 * N", "level WORD" and, last, "url URL". It has an unprivileged user, a root with what PostgreSQL is reached by and
 * nothing else, the list of system calls below, and no secret but the URL. */
#ifndef CLOCHE_STORE_ROLE_H
#define CLOCHE_STORE_ROLE_H

int store_role_main(void);

#endif
