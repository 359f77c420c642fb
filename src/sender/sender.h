/* SPDX-License-Identifier: Apache-2.0 */
/* sender.h - the sender: the role that posts events to the URLs of webhooks.
 *
 * Start here in this folder. Whoever holds an API key names the URLs, so this is the one part of the server that
 * connects to where strangers point. It promises that no request goes to an address that receiver_address.h refuses,
 * whatever the name resolves to and whenever; that redirects and proxies are not followed; that certificates are
 * verified; and that a receiver can make it neither wait longer nor keep more than the limits. It has no rights, no
 * files, no secret: the warden hands it finished requests, signature included (src/warden/webhook), and decides from
 * its report what is sent again. sender.c has the loop, post.c one request, sender_role.h the rights that it keeps. */
#ifndef CLOCHE_SENDER_SENDER_H
#define CLOCHE_SENDER_SENDER_H

#include "sender/sender_config.h"

int sender_main(const struct sender_config *config);

#endif
