/* SPDX-License-Identifier: Apache-2.0 */
/* login_code.h - one-time codes that sign a browser in to the console (docs/console.md). A code is 160 random bits,
 * shown once, good once and for minutes; only its hash is kept, in memory: a restart forgets all of them. */
#ifndef CLOCHE_WARDEN_CORE_LOGIN_CODE_H
#define CLOCHE_WARDEN_CORE_LOGIN_CODE_H

#include "base/base.h"
#include "wire/sizes.h"

#define LOGIN_CODES_MAX  32 /* at once; one more replaces the one that ends first */
#define LOGIN_CODES_TEAM 4  /* of one team; one more replaces its own that ends first */
#define LOGIN_CODE_TEXT  41

struct login_codes {
  struct login_code {
    uint8_t hash[SHA256_LEN];
    char team[UUID_SIZE]; /* "" = free */
    int64_t until_us;
  } codes[LOGIN_CODES_MAX];
};

void login_code_make(struct login_codes *c, struct str team, int64_t now_us, unsigned seconds,
                     char text[LOGIN_CODE_TEXT]);
void login_code_hash(struct str text, uint8_t hash[SHA256_LEN]);
/* Takes the code away. -EACCES: unknown, used or over. */
int login_code_use(struct login_codes *c, struct str hash, int64_t now_us, char team[UUID_SIZE]);

#endif
