/* claim.h - layers in use, and layers that go. Builds take layers on threads of their own while the loop clears what nothing
 * needs; a claim and a removal exclude each other, so a layer that was claimed is there, and its time says that it is in use. */
#ifndef CLOCHE_CLAIM_H
#define CLOCHE_CLAIM_H

#include "base/base.h"

/* True: <data>/layers/<key> is there, and is not removed while a build that began before this call is at work. Any thread. */
bool claim_layer(const char *dir);
bool claim_tree(const char *fs); /* the same by its files, <data>/layers/<key>/fs; false when it has none */
/* Renames a layer to `gone` unless it was claimed at `since` (wall seconds) or later. True: it went. */
bool claim_remove(const char *dir, const char *gone, int64_t since);

#endif
