/* SPDX-License-Identifier: Apache-2.0 */
/* unpack.h - start here: the protocol between cloche-unpack and whoever starts it.
 *
 * The room turns OCI images and archives into directory trees: oci_image.c walks an image's blobs, decompress.c and
 * tar_read.c read a layer, extract.c puts its entries below one directory; tar_write.c writes archives. It promises
 * that no entry, whatever its name, type or link target, creates or changes anything outside of that directory; that
 * bytes and entries stay within the limits given; and that what it does not understand is refused by name.
 *
 * The unpacker is a small static program that runs as the first process of a box of its own, without a network: it
 * reads what registries and users sent, so it must own nothing worth taking. It speaks over its fd 3, a SOCK_SEQPACKET;
 * one packet per message, the first byte says what it is. It starts when it is sent a request; it then asks for blobs
 * by digest and gets read-only descriptors of files; the last message is RESULT or FAILED. */
#ifndef CLOCHE_UNPACK_H
#define CLOCHE_UNPACK_H

#include <stdint.h>

#define UNPACK_PROGRAM "/usr/lib/cloche/unpack"
#define UNPACK_ROOT                                                                                                    \
  "/image" /* where the tree grows, but for a part with others below it: these are the box's own root then */
#define UNPACK_DIGEST 65 /* SHA-256 in hex, and NUL */
#define UNPACK_PACKET (64u * 1024)
#define UNPACK_INDEX  "index" /* asked for in a digest's place: the layout's index */

enum unpack_msg {
  UNPACK_WANT = 'G',   /* to the host: 64 hex digits, or UNPACK_INDEX */
  UNPACK_HERE = 'F',   /* answer: a descriptor comes with it */
  UNPACK_ABSENT = 'N', /* answer */
  UNPACK_PART_IS =
      'Y', /* to the host, before IS, bottom first: a layer's digest as stored and as unpacked, 128 hex digits */
  UNPACK_IS = 'C',     /* to the host: 64 hex digits of the image's configuration, which names the whole content */
  UNPACK_GO = 'U',     /* answer: unpack it */
  UNPACK_KNOWN = 'S',  /* answer: it is there already, send the configuration only */
  UNPACK_NOTE = 'L',   /* to the host: a line for the log */
  UNPACK_RESULT = 'R', /* to the host: the bytes of a part, or JSON
                          {"env":{},"user":"","workdir":"","cmd":[],"entrypoint":[],"cloche":{}} */
  UNPACK_FAILED = 'E', /* to the host: why */
};

/* TAR: one archive, asked for as UNPACK_INDEX. PART: one layer of an image. */
enum unpack_what { UNPACK_IMAGE = 1, UNPACK_TAR = 2, UNPACK_PART = 3 };

struct unpack_request {
  uint32_t what;
  uint32_t lowest;                                 /* a part with nothing below it */
  uint64_t bytes, entries;                         /* limits */
  uint64_t used;                                   /* of the bytes, by the layers below a part */
  char packed[UNPACK_DIGEST], diff[UNPACK_DIGEST]; /* of a part */
};

#endif
