/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h - telling the agent of a restored box who the box is now. Through the same door requests take, with the
 * secret the agent knows: its memory is another box's, or of another time. */
#ifndef CLOCHE_IDENTITY_H
#define CLOCHE_IDENTITY_H

#include "jail/jail.h"
#include "warden/db/store.h"
#include <uv.h>

/* `was`: the secret in the restored memory. Tokens, variables, ids and secret become the row's; kernels draw new random
 * numbers. `authority`: PEM, the one of the box's egress (agent/trust.h); empty = none. -ETIMEDOUT when the agent has
 * not answered after so many seconds. This one blocks: for threads of their own (builds) only. */
int identity_tell(const struct jail *j, const char *was, const struct row_box *row, unsigned seconds, struct err *err);

/* The same on the loop. `done` is called once, later. jail and row are not needed after it returns. */
struct identity;
typedef void identity_fn(void *arg, int result, const struct err *err);
void identity_begin(uv_loop_t *loop, const struct jail *j, const char *was, const struct row_box *row,
                    struct str authority, unsigned seconds, identity_fn *done, void *arg);
/* The box stays who it is and trusts this authority from now on. */
void agent_trust(uv_loop_t *loop, const struct jail *j, const char *secret, struct str authority, unsigned seconds,
                 identity_fn *done, void *arg);

/* Whether the agent of a running box answers GET /health within so many seconds; else -ESHUTDOWN, and err says what it
 * did instead. `done` is called once, later, on the loop; jail is not needed after it returns. */
void agent_health(uv_loop_t *loop, const struct jail *j, unsigned seconds, identity_fn *done, void *arg);

#endif
