/* SPDX-License-Identifier: Apache-2.0 */
/* cert.h - making certificates: a private authority, and leaves it vouches for. See cert.c. */
#ifndef CLOCHE_CERT_H
#define CLOCHE_CERT_H

#include "base/base.h"

struct cert {
  struct buf cert, key; /* PEM */
};

#define CERT_INIT ((struct cert){BUF_INIT(1 << 20), BUF_INIT(1 << 20)})
void cert_free(struct cert *c); /* the key's bytes are wiped */
#define cleanup_cert __attribute__((cleanup(cert_free)))

int cert_authority(const char *name, struct cert *out, struct err *err);
/* names: host names (a leading "*." is a wildcard) and IP addresses; the first one that is short enough becomes the
 * common name. */
struct cert_signer; /* an authority that was read, and one key for all of its leaves */
struct cert_signer *cert_signer_new(const struct cert *authority, struct err *err);
void cert_signer_free(struct cert_signer *s);
int cert_signer_leaf(const struct cert_signer *s, const char *const *names, size_t n, struct cert *out,
                     struct err *err);
int cert_leaf(const struct cert *authority, const char *const *names, size_t n, struct cert *out, struct err *err);

/* One or more certificates, and nothing but them can be read. */
int cert_list_check(struct str pem, struct err *err);

struct cert_facts {
  char subject[256], issuer[256], names[1024], until[40], fingerprint[100];
  int64_t days_left;
};
int cert_look(struct str pem, struct cert_facts *out, struct err *err); /* of the first certificate */

#endif
