/* jupyter_words.h - how a foreign kernel's language says "set this variable" and "go there".
 *
 * Jupyter has no message for either, so they are silent cells, kept apart from the user's code. Values are written as literals of
 * the language with everything but plain ASCII escaped. */
#ifndef CLOCHE_JUPYTER_WORDS_H
#define CLOCHE_JUPYTER_WORDS_H

#include "base/base.h"

enum words { WORDS_NONE, WORDS_PYTHON, WORDS_JAVASCRIPT, WORDS_R, WORDS_BASH, WORDS_JULIA };

enum words words_of(const char *language);
void words_set(enum words w, struct buf *b, struct str name, struct str value);
void words_unset(enum words w, struct buf *b, struct str name);
int words_cd(enum words w, struct buf *b, const char *path); /* -ENOTSUP where the language is not known */

#endif
