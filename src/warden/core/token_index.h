/* SPDX-License-Identifier: Apache-2.0 */
/* token_index.h - which box's access token made the signature of a file URL? Clients that know one URL for all
 * sandboxes write signed URLs that name no box, and a signature can't be turned back into one. So the tokens of secure
 * boxes are kept in a table, and a signature is tried against them. The text before the token is hashed once per search
 * and the rest of each try is at most 85 bytes: texts that no client writes are refused (src/wire/signed_text.h). All
 * searches together have one budget per turn of the loop, whatever number of questions arrived in it, and a bounded
 * number of them waits. Nothing is listed and no box is touched. */
#ifndef CLOCHE_WARDEN_TOKEN_INDEX_H
#define CLOCHE_WARDEN_TOKEN_INDEX_H

#include "warden/core/reply.h"

struct box;
struct warden;

#define SEEK_SLICE     512 /* tokens tried per turn of the loop */
#define SEEK_TRY_BYTES 128 /* of the text before the token cost as much as one try */
#define SEEK_MAX       64  /* searches that wait; more are refused with -EAGAIN */

void token_index_add(struct box *b); /* a box that clients may know; only secure ones are kept */
void token_index_remove(struct box *b);
/* "v1_" and base64 of SHA-256("path:operation:user:" token [":expiry"]). The answer goes to `ask`: W_ID, or -EACCES, or
 * -EAGAIN. */
void token_index_find(struct warden *w, struct origin origin, struct str text, struct str expires,
                      struct str signature);
const struct box *token_index_token(struct warden *w,
                                    struct str hash); /* whose token has this SHA-256, or NULL; one look-up */
int token_index_signature(struct str signature, uint8_t digest[SHA256_LEN]); /* -EINVAL: it can't be one */

#endif
