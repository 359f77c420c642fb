/* SPDX-License-Identifier: Apache-2.0 */
/* post.h - one request to a receiver: resolve, check every address, connect to one of those and no other, post, report.
 * For the files of this folder. */
#ifndef CLOCHE_SENDER_POST_H
#define CLOCHE_SENDER_POST_H

#include "wire/lookup.h"
#include "sender/sender_config.h"
#include "wire/receiver_address.h"
#include "wire/ipc.h"
#include "wire/wire.h"
#include <curl/curl.h>
#include <openssl/ssl.h>

struct post;

/* What all requests share. */
struct posts {
  const struct sender_config *config;
  uv_loop_t *loop;
  CURLM *multi;
  uv_timer_t timer, sweeper;
  struct receiver_rules rules;
  X509_STORE *roots; /* the authorities; NULL = none could be read, and every certificate is refused */
  struct ipc *link;  /* where reports go; NULL = nowhere */
  struct post *all;
  struct lookups lookups; /* opened by the owner, after the rights are given up */
};

/* Before the rights are given up: libcurl, and the authorities' certificates. err says what is wrong with the setting
 * `webhook_ca`. */
int posts_open(struct posts *p, struct err *err);
void post_start(struct posts *p, struct str packet); /* a WIRE_SEND; answered by a WIRE_SENT, also when it is wrong */
void posts_abandon(struct posts *p);                 /* the link is gone: nobody wants the reports */

#endif
