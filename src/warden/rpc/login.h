/* SPDX-License-Identifier: Apache-2.0 */
/* login.h - sign-in to the console, for the warden's own loop; the requests are in login_handlers.c. */
#ifndef CLOCHE_WARDEN_RPC_LOGIN_H
#define CLOCHE_WARDEN_RPC_LOGIN_H

#include "warden/core/login_code.h"

struct warden;

void login_code_for(struct warden *w, struct str team, char text[LOGIN_CODE_TEXT]);
void login_expire(struct warden *w); /* keys that are over are deleted */

#endif
