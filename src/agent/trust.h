/* SPDX-License-Identifier: Apache-2.0 */
/* trust.h - the certificate authority of this box's egress, known to the programs of the box and to nobody else.
 *
 * A box with header rules talks to the hosts of its rules through a gateway outside, which shows certificates of an
 * authority that was made for this box alone. Its private key never comes here. The certificate goes where programs
 * look: the system's store (file, hashed link and bundle), Java's store where the box has one, and variables for those
 * that bring a store of their own (Python's requests, Node, Deno, git). */
#ifndef CLOCHE_AGENT_TRUST_H
#define CLOCHE_AGENT_TRUST_H

#include "agent/agent.h"

/* `pem`: one certificate. It takes the place of one that came before, such as that of the box this one is a copy of.
 * What can't be written is logged: a box with a strange file system still starts. */
int trust_install(struct agent *a, struct str pem, struct err *err);

/* The parts, for tests. */

/* `bundle` with the section of an earlier authority cut out and `pem` behind the rest. */
void trust_bundle(struct str bundle, struct str pem, struct buf *out);
/* A Java key store (JKS) of every certificate of a PEM bundle, under the usual password. Returns how many. */
size_t trust_java(struct str bundle, int64_t when_ms, struct buf *out);
void trust_sha1(struct str text, uint8_t out[20]);

#endif
