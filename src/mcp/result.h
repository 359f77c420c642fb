/* SPDX-License-Identifier: Apache-2.0 */
/* result.h - what a tool answers: content for the model, and the same as structured data for programs. */
#ifndef CLOCHE_MCP_RESULT_H
#define CLOCHE_MCP_RESULT_H

#include "base/base.h"

struct mcp_result {
  struct buf content, structured;
  struct jw items;       /* of content */
  struct jw data;        /* of structured: an object, opened */
  size_t text_max, left; /* bytes of one text; bytes of images and files that still fit */
  bool failed;
};

void result_begin(struct mcp_result *r, size_t text_max, size_t result_max);
void result_free(struct mcp_result *r);
void result_text(struct mcp_result *r, struct str text);                        /* empty: nothing is added */
void result_note(struct mcp_result *r, const char *fmt, ...) PRINTF_LIKE(2, 3); /* a line of the server's own */
/* A picture as base64; one that does not fit any more is named by a line instead. */
void result_image(struct mcp_result *r, const char *mime, struct str base64);
/* A member of the structured part, its text cut as text of the content is. */
void result_put(struct mcp_result *r, const char *name, struct str text);
/* JSON as it came; left out, with a line that says so, when it does not fit. */
void result_put_json(struct mcp_result *r, struct jw *w, const char *name, const char *json);
/* {"content":[...],"structuredContent":{...},"isError":...}; the result is closed by it. */
void result_write(struct mcp_result *r, struct buf *out);

/* At most `max` bytes of a text: its beginning and its end, and between them how much is left out. Never cuts a UTF-8
 * sequence. */
void text_shorten(struct buf *out, struct str text, size_t max);

#endif
