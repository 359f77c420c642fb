/* identity.h - telling the agent of a restored box who the box is now. Through the same door requests take, with the secret the agent
 * was told before: its memory is another box's, or of another time. Blocks: worker threads only. */
#ifndef CLOCHE_IDENTITY_H
#define CLOCHE_IDENTITY_H

#include "jail/jail.h"
#include "warden/db/store.h"

#define IDENTITY_MS 20000 /* longest wait for the agent's answer */

/* `was`: the secret in the restored memory. Tokens, variables, ids and secret become the row's; kernels draw new random numbers. */
int identity_tell(const struct jail *j, const char *was, const struct row_box *row, struct err *err);

#endif
