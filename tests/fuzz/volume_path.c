/* SPDX-License-Identifier: Apache-2.0 */
/* volume_path.c - paths in volumes and tokens, as clients write them: what is cleaned is clean, and stays as it is when
 * it is cleaned again; no token opens anything but one that was made. */
#include "must.h"

#include "warden/volume/volume_token.h"
#include "wire/volume_path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct str given = {(const char *)data, size};
  cleanup_buf struct buf once = BUF_INIT(1 << 17), twice = BUF_INIT(1 << 17);
  char id[UUID_SIZE], token[VOLUME_TOKEN_SIZE];
  volume_upload_valid(given);
  if (volume_path_valid(given))
    MUST(!str_trim(given).n || given.p[0] == '/');
  if (!volume_path_clean(given, &once)) {
    MUST(volume_path_valid(buf_str(&once)));
    if (str_eq(str_trim(buf_str(&once)), buf_str(&once))) { /* a name may end in a space before a slash that went */
      MUST(!volume_path_clean(buf_str(&once), &twice));
      MUST(str_eq(buf_str(&once), buf_str(&twice)));
    }
  }
  if (!volume_token_read(STR("secret"), given, id)) {
    volume_token_make(STR("secret"), id, token);
    MUST(str_is(given, token));
  }
  return 0;
}
