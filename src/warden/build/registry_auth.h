/* SPDX-License-Identifier: Apache-2.0 */
/* registry_auth.h - what a client says to be allowed to fetch an image, made into what a registry asks for: a user and
 * a password.
 *
 * Three kinds, as the SDKs send them: a user and a password; a service account of Google's, whose key is the password
 * of the user _json_key; a key pair of AWS, with which a token is asked for first. The warden does not read any of it:
 * this program runs once more as the user that fetches (registry_auth_helper.c), gets the text on its standard input,
 * has curl sign and send the request to AWS, and prints one line. The warden checks that this line is base64 and
 * nothing else. Nothing is stored or logged. */
#ifndef CLOCHE_WARDEN_BUILD_REGISTRY_AUTH_H
#define CLOCHE_WARDEN_BUILD_REGISTRY_AUTH_H

#include "warden/build/source_spec.h"

#define REGISTRY_AUTH_MAX     ((size_t)64 << 10)
#define REGISTRY_AUTH_SECONDS 35
#define REGISTRY_AUTH_COMMAND "registry-auth" /* the program's sub-command that is the helper */

/* base64 of user:password, added to `code`. `work` is a directory of the fetch's own. */
int registry_auth_read(const struct source_spec *s, int work, uint32_t uid, struct buf *code, struct err *err);
bool registry_auth_code(struct str s); /* the alphabet of base64, not empty */

/* The helper process: the client's JSON on standard input, argv[1] the address of AWS or "". Prints the code, or why
 * not. */
int registry_auth_main(int argc, char **argv);

#endif
