/* SPDX-License-Identifier: Apache-2.0 */
/* config_table.h - the table of settings as config.c has it, for the files that read, show and reload settings. */
#ifndef CLOCHE_CONFIG_TABLE_H
#define CLOCHE_CONFIG_TABLE_H

#include "cli/config.h"

enum kind { KIND_TEXT, KIND_NUMBER, KIND_CHOICE };

struct setting {
  const char *name;
  enum kind kind;
  bool live;           /* SIGHUP changes it in a running server */
  size_t at, size;     /* in struct config */
  uint64_t factor;     /* of a number: what one of the setting's unit is where it lands */
  const char *choices; /* words, by spaces; NULL = any */
  const char *fallback;
  uint64_t least, most; /* of a text: bytes */
  const char *meaning;
};

const struct setting *settings_table(size_t *n);
size_t setting_place(const struct setting *s); /* in the table */
/* By its name; '-' stands for '_'. NULL when there is none. */
const struct setting *setting_find(struct str name);
int setting_unknown(const char *from, struct str name, struct err *err); /* -EINVAL, with the name that may be meant */
/* Sets it from a text of `from`: "file:line", "CLOCHE_NAME", "--name" or "default". */
int setting_put(struct config *c, const struct setting *s, const char *value, const char *from, struct err *err);
void setting_put_text(struct config *c, const struct setting *s, const char *value);
const char *setting_text(const struct config *c, const struct setting *s);
/* The value as it would be written in a file, without quotes. */
void setting_show(const struct config *c, const struct setting *s, struct buf *out);
bool setting_secret(const struct setting *s);
/* What follows from several settings, or from one and the host. */
void config_derive(struct config *c);

#endif
