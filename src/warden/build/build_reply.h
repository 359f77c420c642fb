/* SPDX-License-Identifier: Apache-2.0 */
/* build_reply.h - what a box that builds a template says about its commands (exec_packet.h), turned into lines and an
 * exit status. The box may say anything in any order: events of commands that are not waited for are dropped, lines are
 * cut at BUILD_LINE_MOST bytes. */
#ifndef CLOCHE_WARDEN_BUILD_BUILD_REPLY_H
#define CLOCHE_WARDEN_BUILD_BUILD_REPLY_H

#include "base/base.h"
#include "wire/exec_packet.h"

#define BUILD_LINE_MOST 4000 /* bytes without a newline that are logged as a line */

struct build_envs;

/* What is to be run, and where its output goes. */
struct build_cmd {
  const char *user, *cwd;       /* NULL: the box's root, the user's home */
  const struct build_envs *env; /* in place of the template's variables; NULL: those */
  const char *const *argv;
  int input;           /* borrowed; -1 = none */
  const char *prefix;  /* of its lines in the log, like "[builder 1/3]" */
  struct buf *capture; /* stdout goes here instead; NULL = the log */
  int status;          /* exit code, or 128 + signal */
  uint32_t number;     /* given here */
  struct buf part[2];  /* lines that have not ended yet */
  bool over;
};

struct build_output {
  void (*line)(void *arg, const struct build_cmd *o, bool errors, struct str line);
  void *arg;
};

void build_cmd_begin(struct build_cmd *o, uint32_t number);
void build_cmd_free(struct build_cmd *o);
/* One packet, for `o` or `beside`; both may be NULL. */
int build_reply_take(const struct build_output *ear, struct build_cmd *o, struct build_cmd *beside, struct str packet,
                     struct err *err);

#endif
