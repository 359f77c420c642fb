/* SPDX-License-Identifier: Apache-2.0 */
/* http_fields.h - dates, ranges, names and types as HTTP headers spell them. Pure text work. */
#ifndef CLOCHE_AGENT_ENVD_HTTP_FIELDS_H
#define CLOCHE_AGENT_ENVD_HTTP_FIELDS_H

#include "base/base.h"
#include <time.h>

#define HTTP_DATE_TEXT 32
void http_date_text(time_t t, char out[HTTP_DATE_TEXT]);
int http_date_parse(struct str text, time_t *out);

/* A Range header against a size. 1 = *from and *n are to be sent, 0 = send all of it (no range, several, or not
 * understood), -ERANGE = none of it is there. */
int http_range_parse(struct str text, uint64_t size, uint64_t *from, uint64_t *n);

/* `inline; filename=...` */
void http_disposition(struct str name, struct buf *out);
const char *http_mime_type(struct str name);

/* What an Accept-Encoding header lets us send. */
enum http_coding { CODING_IDENTITY, CODING_GZIP, CODING_NONE };
enum http_coding http_coding_choose(struct str accept, bool ranged);

#endif
