/* SPDX-License-Identifier: Apache-2.0 */
/* base.h - what C lacks, in one include.
 *
 * Start here: str (borrowed bytes), buf (owned growing bytes with a stated maximum), arena (memory that dies
 * together), vec, map, err (how things fail), log, clock, path (names that can't escape a root), json, codec
 * (hex, base64, SHA-256), fdx (descriptors). Nothing in this folder knows what Cloche does. */
#ifndef CLOCHE_BASE_H
#define CLOCHE_BASE_H

#include "base/arena.h"
#include "base/bucket.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/codec.h"
#include "base/core.h"
#include "base/err.h"
#include "base/fdx.h"
#include "base/json.h"
#include "base/log.h"
#include "base/map.h"
#include "base/path.h"
#include "base/str.h"
#include "base/vec.h"

#endif
