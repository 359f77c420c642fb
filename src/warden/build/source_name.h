/* SPDX-License-Identifier: Apache-2.0 */
/* source_name.h - how images are named, and who may be asked for them. Pure. */
#ifndef CLOCHE_WARDEN_BUILD_SOURCE_NAME_H
#define CLOCHE_WARDEN_BUILD_SOURCE_NAME_H

#include "base/base.h"
#include "wire/sizes.h"

struct source_name {
  char transport[16]; /* docker (a registry), oci, oci-archive, docker-archive */
  char host[256];     /* docker: the registry, with its port */
  char rest[512];     /* docker: path[:tag][@digest]; else the file's path as written */
  char tag[TAG_SIZE]; /* of a file; "" = the only one */
  char suite[32];     /* the Debian release it stands for, or "" */
};

int source_name_read(struct str image, struct source_name *out, struct err *err);
/* A host among words like "a.example b.example:5000 *.c.example 127.0.0.1:*". */
bool source_host_listed(const char *list, const char *host);

#endif
