/* SPDX-License-Identifier: Apache-2.0 */
/* unsupported.c - features this server does not have yet. Each answers by name, so that nobody takes silence for
 * success. */
#include "gate/api/api.h"

void unsupported_volumes(struct req *r)
{
  api_error(r, 403, "volumes are not available on this server");
}
