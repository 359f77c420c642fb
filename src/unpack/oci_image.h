/* SPDX-License-Identifier: Apache-2.0 */
/* oci_image.h - the JSON of OCI images: index, manifest, configuration. Pure; every digest is checked to be one. */
#ifndef CLOCHE_UNPACK_OCI_IMAGE_H
#define CLOCHE_UNPACK_OCI_IMAGE_H

#include "base/base.h"
#include "unpack/unpack.h"

#define IMAGE_LAYERS_MAX 512
#define IMAGE_JSON_MAX   ((size_t)4 << 20)
#define IMAGE_RESULT_MAX ((size_t)60 << 10) /* fits one packet */
#define IMAGE_LABEL      "dev.cloche.template"

/* This machine, as images call it. */
#if defined(__x86_64__)
#define IMAGE_ARCHITECTURE "amd64"
#elif defined(__aarch64__)
#define IMAGE_ARCHITECTURE "arm64"
#else
#define IMAGE_ARCHITECTURE "unknown"
#endif

struct image_manifest {
  char config[UNPACK_DIGEST];
  char (*layers)[UNPACK_DIGEST]; /* bottom first; in the arena */
  size_t n;
};

/* The digest of the one manifest an index names. */
int image_index(struct str text, char digest[UNPACK_DIGEST], struct err *err);
int image_manifest(struct arena *a, struct str text, struct image_manifest *out, struct err *err);
/* Writes what a template takes over of the configuration, and gives the digests of the unpacked layers, bottom first.
 */
int image_config(struct arena *a, struct str text, struct buf *out, char (**diffs)[UNPACK_DIGEST], size_t *n,
                 struct err *err);

#endif
