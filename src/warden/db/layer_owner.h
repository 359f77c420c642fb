/* SPDX-License-Identifier: Apache-2.0 */
/* layer_owner.h - whose a kept layer is and what it takes of the disk: a line beside its files, written before the
 * layer has its name, so that storage_quota.c can count what no template needs any more, too. */
#ifndef CLOCHE_WARDEN_DB_LAYER_OWNER_H
#define CLOCHE_WARDEN_DB_LAYER_OWNER_H

#include "base/base.h"
#include "wire/sizes.h"

#define LAYER_OWNER "owner" /* in <data>/layers/<key>, beside fs */

/* `dir` has the layer's files in fs, or none. Nothing is written for nobody (team ""). Any thread. */
int layer_owner_write(const char *dir, const char *team, uint64_t bytes, struct err *err);
/* Of a layer that has no such line the bytes are 0. */
void layer_owner_read(int layers, const char *key, char team[UUID_SIZE], uint64_t *bytes);

#endif
