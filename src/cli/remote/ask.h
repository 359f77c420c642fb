/* SPDX-License-Identifier: Apache-2.0 */
/* ask.h - requests of the API by their path, and their answers as JSON, as tables for people or as they came. */
#ifndef CLOCHE_CLI_ASK_H
#define CLOCHE_CLI_ASK_H

#include "cli/remote/remote.h"

struct answer {
  struct arena arena;
  struct cloche_text *text;
  struct json *json; /* in the arena; NULL where the answer is empty */
};

/* "/templates/{}/tags" with the words, escaped, in the place of {}. Owned by the caller. */
char *path_of(const char *pattern, ...);
/* As remote_open(), for requests that need the administrator's token and no API key. */
int remote_open_admin(const struct args *args, struct remote *r);
/* The token that is meant: --admin-token, CLOCHE_ADMIN_TOKEN; NULL: none. */
const char *admin_token(const struct args *args);
/* Sends a request; `body` may be NULL, and so may `what`, the name to complain about. The administrator's token goes
 * with paths below /admin and /nodes only. 0 or an exit status with the reason printed. */
int ask(struct remote *r, const struct args *args, const char *method, const char *path, const char *body,
        const char *what, struct answer *out);
/* The same without a complaint when there is no such thing: *missing tells so. */
int ask_whether(struct remote *r, const struct args *args, const char *method, const char *path, const char *what,
                struct answer *out, bool *missing);
void answer_free(struct answer *a);
#define cleanup_answer __attribute__((cleanup(answer_free)))

enum column_kind { COLUMN_TEXT, COLUMN_AGE, COLUMN_TIME, COLUMN_FIRST, COLUMN_MIB, COLUMN_GIB };
struct column {
  const char *head, *key; /* "a.b": inside of a */
  enum column_kind kind;
};

/* The member of an object that a column's key names; NULL: none. */
const struct json *member_at(const struct json *object, const char *key);
/* A list as a table, or with --json as it came. */
int print_rows(const struct args *args, const struct answer *a, const struct column *columns, size_t n);
/* One object, a line for each member that a column names, or with --json as it came. */
int print_object(const struct args *args, const struct answer *a, const struct column *columns, size_t n);
/* With --json the answer (an empty one as {}), else a text member of it, else nothing. */
int print_answer(const struct args *args, const struct answer *a, const char *member);

#endif
