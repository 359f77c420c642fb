/* SPDX-License-Identifier: Apache-2.0 */
/* keyring.h - the master keys: the first one seals, all of them open. A key is 64 hex digits; where there are several
 * (while values go from an old one to a new one) white space is between them.
 *
 * They come from the environment variable CLOCHE_SECRETS_KEY, else from the systemd credential cloche-secrets-key, else
 * from a file, which only its owner may read. The file alone is ever written, and never over keys that could not be
 * read. */
#ifndef CLOCHE_WARDEN_SECRET_KEYRING_H
#define CLOCHE_WARDEN_SECRET_KEYRING_H

#include "warden/secret/seal.h"
#include "wire/sizes.h"

#define KEYRING_MAX      8
#define KEYRING_VARIABLE "CLOCHE_SECRETS_KEY"

enum key_source { KEY_OF_FILE, KEY_OF_VARIABLE, KEY_OF_CREDENTIAL };

struct keyring {
  struct master_key keys[KEYRING_MAX]; /* [0] is the current one */
  size_t n;                            /* 0: none could be read */
  enum key_source source;
  char path[DATA_PATH_SIZE]; /* of the file or the credential; of a variable its name */
};

/* Reads the keys, again where that was done before. The variable is taken out of the environment. -ENOENT: there is no
 * file at `file`, which may be made then; other errors: what is there can't be used. */
int keyring_read(struct keyring *k, const char *file, struct err *err);
int keyring_parse(struct keyring *k, struct str text, struct err *err); /* pure */
/* A new first key, in memory and, synced, in the file; -EROFS: the keys are not a file's. */
int keyring_add(struct keyring *k, struct err *err);
/* Only the first key stays. */
int keyring_drop_old(struct keyring *k, struct err *err);
const struct master_key *keyring_find(const struct keyring *k, const char *id); /* NULL: there is none */
void keyring_wipe(struct keyring *k);

#endif
