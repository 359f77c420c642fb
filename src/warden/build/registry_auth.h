/* credential.h - what a client says to be allowed to fetch an image, made into what a registry asks for: a user and a password.
 *
 * Three kinds, as the SDKs send them: a user and a password; a service account of Google's, whose key is the password of the
 * user _json_key; a key pair of AWS, with which a token is asked for first. That question is signed here and sent by the
 * program that fetches (courier.h): the secret key itself leaves this process nowhere. Nothing is stored or logged. */
#ifndef CLOCHE_CREDENTIAL_H
#define CLOCHE_CREDENTIAL_H

#include "warden/build/source.h"

#define CREDENTIAL_MAX ((size_t)64 << 10)

/* base64 of user:password, added to `code`. `work` is a directory of the fetch's own. */
int credential_read(const struct source_spec *s, int work, struct buf *code, struct err *err);

#endif
