/* SPDX-License-Identifier: Apache-2.0 */
/* sizes.h - how long the names that several processes share can be. Each is the size of the array that holds the text,
 * the final NUL included. A longer text is refused where it comes in, never cut. */
#ifndef CLOCHE_WIRE_SIZES_H
#define CLOCHE_WIRE_SIZES_H

#define UUID_SIZE            40 /* of a team, a key, a build: a UUID with room for a prefix */
#define BOX_ID_SIZE          64 /* sandbox ID */
#define UPLOAD_ID_SIZE       24
#define TEMPLATE_ID_SIZE     32
#define TEMPLATE_REF_SIZE    160 /* team/name:tag */
#define TAG_SIZE             129
#define VOLUME_NAME_SIZE     129
#define DISPLAY_NAME_SIZE    128 /* what people call a team or a key */
#define HOST_NAME_SIZE       64  /* of a box's cgroup, directory and checkpoints on the host */
#define CHECKPOINT_NAME_SIZE 64  /* host name of the box and a random word: a directory under <data>/checkpoints */
#define INSTANCE_SIZE        24  /* random word that names all host objects of one server */
#define DIGEST_TEXT_SIZE     65  /* SHA-256 as hex digits */
#define LAYER_ID_SIZE        80  /* hash of a layer with a prefix */
#define SECRET_SIZE          80  /* hex text of a token's secret */
#define SECRET_ID_SIZE       32  /* "sec_" and a random word: of a secret that a team keeps here */
#define SECRET_NAME_SIZE     129
#define SEAL_KEY_SIZE        20  /* id of a master key */
#define IDEMPOTENCY_KEY_SIZE 256 /* of a create, chosen by the client */
#define KEY_MASK_SIZE        64  /* what is shown of an API key; see api_key.h */
#define DOMAIN_SIZE          256 /* a DNS name */
#define PEER_SIZE            80  /* address and port of a client */
#define URL_SIZE             160 /* of a listener: scheme, host and port */
#define LISTEN_HOST_SIZE     128
#define DATA_DIR_SIZE        512  /* <data>/boxes/<host name> and the like: the data directory's own path is bounded */
#define DATA_PATH_SIZE       1024 /* a file below such a directory */

#endif
