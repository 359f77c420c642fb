/* SPDX-License-Identifier: Apache-2.0 */
/* files.h - whole files over plain HTTP: /files and /files/compose, and what their handlers share. */
#ifndef CLOCHE_AGENT_ENVD_FILES_H
#define CLOCHE_AGENT_ENVD_FILES_H

#include "agent/agent.h"
#include "agent/user.h"
#include "net/http.h"

void files_upload(struct http_x *x, struct agent *a);   /* upload.c */
void files_download(struct http_x *x, struct agent *a); /* download.c */
void files_compose(struct http_x *x, struct agent *a);  /* compose.c */

/* The query of a /files request, decoded. */
struct files_query {
  struct buf path, username, signature, expiration;
  bool has_path, has_username, has_signature, has_expiration;
};
int files_query_parse(struct str query, struct files_query *q); /* -EINVAL on a broken escape or expiration */
void files_query_free(struct files_query *q);
#define cleanup_files_query __attribute__((cleanup(files_query_free)))

#define SIGNATURE_TEXT      47 /* "v1_", 43 characters, NUL */
/* v1_ + base64 without padding of SHA-256 over path:operation:username:token[:expiration]. */
void files_sign(struct str path, const char *operation, struct str username, struct str token, struct str expiration,
                bool has_expiration, char out[SIGNATURE_TEXT]);
/* The rule of /files: NULL = allowed, else the text of the 401. `now` in unix seconds. */
const char *files_refuse(const struct files_query *q, const char *operation, const char *token, struct str header,
                         int64_t now);

/* Query, signature and user in the contract's order. Negative: answered already (ops were set). */
int files_enter(struct http_x *x, struct agent *a, const char *operation, struct files_query *q, struct user *u);

#endif
