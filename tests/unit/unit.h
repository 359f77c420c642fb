/* SPDX-License-Identifier: Apache-2.0 */
/* unit.h - what every unit test includes. */
#ifndef CLOCHE_UNIT_H
#define CLOCHE_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"

#endif
