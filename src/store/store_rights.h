/* SPDX-License-Identifier: Apache-2.0 */
/* store_rights.h - what the store process keeps of its rights: sockets of its own to PostgreSQL, the files by which
 * names are resolved and its certificate is checked. */
#ifndef CLOCHE_STORE_RIGHTS_H
#define CLOCHE_STORE_RIGHTS_H

#include "base/base.h"
#include "confine/confine.h"
#include <linux/netlink.h>
#include <seccomp.h>
#include <sys/socket.h>

static const int store_calls[] = {
    SCMP_SYS(openat), /* of a root with four files */
    SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(sendmmsg),          SCMP_SYS(connect),
    SCMP_SYS(bind),       SCMP_SYS(uname), SCMP_SYS(sched_getaffinity), SCMP_SYS(rseq),
};

static const struct confine_socket store_sockets[] = {
    {AF_INET, SOCK_STREAM, -1}, {AF_INET, SOCK_DGRAM, -1},      {AF_INET6, SOCK_STREAM, -1},
    {AF_INET6, SOCK_DGRAM, -1}, {AF_NETLINK, 0, NETLINK_ROUTE}, {AF_UNIX, SOCK_STREAM, -1},
};

#define STORE_CA_FILE "/etc/store-ca.pem" /* in its root: the operator's, else the system's authorities */

static struct confine_file store_files[] = {{"/etc/nsswitch.conf", "hosts: files dns\n"},
                                            {"/etc/resolv.conf", NULL},
                                            {"/etc/hosts", NULL},
                                            {STORE_CA_FILE, ""}};

static struct confine_role store_rights = {
    .name = "cloche-store",
    .calls = store_calls,
    .ncalls = ARRAY_LEN(store_calls),
    .sockets = store_sockets,
    .nsockets = ARRAY_LEN(store_sockets),
    .files = store_files,
    .nfiles = ARRAY_LEN(store_files),
    .fds_max = 256,
    .memory_max = (uint64_t)2 << 30,
    .writes_files = true, /* the log, where that is a file; there is no other */
};

#endif
