/* SPDX-License-Identifier: Apache-2.0 */
/* build_box.h - a box in which one step of a template's build runs. Blocking calls, all on the build's own thread.
 *
 * It is isolated like any other box. The warden's side of the protocol is wire/exec_packet.h: fixed packets, and bytes
 * that go to the build's log or, for a value the builder asked for, into a bounded buffer. */
#ifndef CLOCHE_WARDEN_BUILD_BUILD_BOX_H
#define CLOCHE_WARDEN_BUILD_BUILD_BOX_H

#include "jail/jail.h"
#include "jail/net/jail_net.h"
#include "warden/build/build_run.h"
#include "warden/build/build_reply.h"
#include "wire/sizes.h"

struct build_box {
  struct build_run *run;
  struct jail jail;
  struct jail_spec spec;
  struct jail_net net;
  struct arena arena;
  char name[HOST_NAME_SIZE], dir[DATA_DIR_SIZE];
  int talk; /* -1 = closed */
  char secret[2 * SHA256_LEN + 1];
  const char *layers; /* what it stands on; borrowed */
  uint32_t commands;  /* begun so far */
  bool given;         /* a sandbox has taken it over (build_keep.h) */
};

int build_box_open(struct build_box *b, struct build_run *run, const char *layers, const char *config, struct err *err);
/* Begins a command without waiting: its output is read while others are waited for. */
int build_box_begin(struct build_box *b, struct build_cmd *o, struct err *err);
/* Waits until `o` is over; events of `beside` (may be NULL) are read as well, and its end ends the wait too. */
int build_box_wait(struct build_box *b, struct build_cmd *o, struct build_cmd *beside, struct err *err);
/* Only listens to `beside` until then, or until it has ended. */
int build_box_listen(struct build_box *b, struct build_cmd *beside, int64_t until_us, struct err *err);
int build_box_run(struct build_box *b, struct build_cmd *o, struct err *err); /* both */
/* Lets go of the box, which goes on: no connection to the outside is left in it. */
int build_box_release(struct build_box *b, struct err *err);
/* Everything in it ends; its files stay until build_box_remove. */
int build_box_stop(struct build_box *b, struct err *err);
void build_box_remove(struct build_box *b);

#endif
