/* SPDX-License-Identifier: Apache-2.0 */
/* jupyter_message.h - Jupyter messages: signed JSON frames behind a delimiter.
 *
 * Content is never decoded into a tree: it stays the text of its frame, read member by member. */
#ifndef CLOCHE_AGENT_INTERPRETER_JUPYTER_MESSAGE_H
#define CLOCHE_AGENT_INTERPRETER_JUPYTER_MESSAGE_H

#include "base/base.h"

struct jupyter_session {
  char key[UUID_TEXT];
  char id[UUID_TEXT]; /* also the sockets' identity */
  uint64_t last;      /* number of the last message sent */
};

/* What arrived; slices of the frames. */
struct jupyter_message {
  struct str type;   /* body of header.msg_type */
  struct str parent; /* body of parent_header.msg_id, empty when none */
  struct str date;   /* body of header.date */
  struct str content;
};

void jupyter_session_init(struct jupyter_session *s);

/* 0, or -EINVAL when the frames are no message, -EACCES when the signature is wrong. */
int jupyter_message_read(const struct jupyter_session *s, const struct str *frames, size_t n,
                         struct jupyter_message *m);

/* The frames of a message to send: 6 of them, in the arena. id gets the message's own. */
#define JUPYTER_FRAMES 6
#define JUPYTER_ID     64
int jupyter_message_write(struct jupyter_session *s, struct arena *a, const char *type, struct str content,
                          struct str frames[JUPYTER_FRAMES], char id[JUPYTER_ID]);

/* A member of an object frame, raw; no bytes when absent. */
struct str jupyter_member(struct str object, const char *name);

#endif
