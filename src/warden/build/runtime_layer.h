/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_layer.h - the layer that makes any template a box: the agent and the kernels' programs. Copied into the data
 * directory under the hash of its contents, so that a new build or another version never changes a living box. */
#ifndef CLOCHE_WARDEN_BUILD_RUNTIME_LAYER_H
#define CLOCHE_WARDEN_BUILD_RUNTIME_LAYER_H

#include "base/base.h"
#include "wire/sizes.h"

/* Copies `source` to <data>/runtime/<hash> unless it is there; `name` gets the hash. */
int runtime_stage(const char *source, const char *data, char name[LAYER_ID_SIZE], struct err *err);
/* Removes staged copies that `used` does not want. */
void runtime_sweep(const char *data, bool (*used)(const char *name, void *arg), void *arg);

#endif
