/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver - plays the scenarios of tests/sdk with libcloche; tests/sdk/README.md tells their language. Results are told
 * by the names of the Python SDK, so that they can be compared field by field.
 */
#ifndef CLOCHE_DRIVER_H
#define CLOCHE_DRIVER_H

#include "internal.h"

struct kept {
  const char *name;
  struct cloche_box *box;
  struct cloche_process *process;
  struct cloche_volume *volume;
  const char *text; /* an ID or an address */
};

struct driver {
  struct cloche *client;
  struct cloche_error error;
  struct arena memory; /* of the scenario */
  struct kept kept[32];
  size_t kept_count;
  const char *unique;
  struct buf out;  /* what the step gave */
  struct buf told; /* what callbacks were told */
  const struct json *step;
  const char *area; /* "files": whose errors these are */
};

extern struct driver d;

/* Arguments of the step: texts with {unique} and $names replaced. */
const char *arg(const char *name);
long arg_number(const char *name, long otherwise);
bool arg_true(const char *name);
struct cloche_pair *arg_pairs(const char *name, size_t *count);
struct kept *arg_kept(const char *name);
const char *const *text_list(const struct json *j); /* ends with NULL; NULL for NULL */
struct kept *step_kept(void);                       /* what the step is played on */
struct cloche_box *step_box(void);
void keep(const char *name, struct kept what);
void play_steps(const struct json *steps);

/* Members of an object that is being written: put_text(",\"a\":", x). */
void put_text(const char *before, const char *text);
void put_int(const char *before, int64_t value);
void put_bool(const char *before, bool value);
void put_names(const char *before, const struct cloche_pair *pairs, size_t count, bool empty_is_null);
void put_time(const char *before, const char *text);

void tell_execution(const struct cloche_execution *e);
void tell_result(struct buf *b, const struct cloche_result *r);
void tell_entry(const struct cloche_entry *e);
void tell_box_info(const struct cloche_box_info *info);
/* CLOCHE_OK: told; ECOMMAND: its status was not 0, and the error is told so. */
enum cloche_code tell_command(const struct cloche_command_result *r);
void tell_content(const struct cloche_text *text); /* as text, or bytes where the step asks for a format */
void tell_raised(enum cloche_code code);
void tell_exit(const struct cloche_command_result *r);

typedef enum cloche_code play_fn(void);
struct play {
  const char *name;
  play_fn *run;
};
extern const struct play box_plays[], code_plays[], file_plays[], command_plays[], keep_plays[];
#define GIVE(code)                                                                                                     \
  do {                                                                                                                 \
    enum cloche_code given_ = (code);                                                                                  \
    if (given_ != CLOCHE_OK)                                                                                           \
      return given_;                                                                                                   \
  } while (0)
#define NOT_PLAYED ((enum cloche_code)2000)
#define TOLD_ERROR ((enum cloche_code)2001) /* the step told its error itself */

#endif
