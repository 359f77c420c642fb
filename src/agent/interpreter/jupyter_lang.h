/* SPDX-License-Identifier: Apache-2.0 */
/* jupyter_lang.h - how a foreign kernel's language says "set this variable" and "go there".
 *
 * Jupyter has no message for either, so they are silent cells, kept apart from the user's code. Values are written as
 * literals of the language with everything but plain ASCII escaped. */
#ifndef CLOCHE_AGENT_INTERPRETER_JUPYTER_LANG_H
#define CLOCHE_AGENT_INTERPRETER_JUPYTER_LANG_H

#include "base/base.h"

enum kernel_lang { LANG_NONE, LANG_PYTHON, LANG_JAVASCRIPT, LANG_R, LANG_BASH, LANG_JULIA };

enum kernel_lang lang_of(const char *language);
void lang_set(enum kernel_lang w, struct buf *b, struct str name, struct str value);
void lang_unset(enum kernel_lang w, struct buf *b, struct str name);
int lang_cd(enum kernel_lang w, struct buf *b, const char *path); /* -ENOTSUP where the language is not known */

#endif
