/* SPDX-License-Identifier: Apache-2.0 */
/* exporter_role.h - what the exporter keeps of its rights: sockets of its own to the collector, and the files by which
 * names are resolved. */
#ifndef CLOCHE_EXPORTER_ROLE_H
#define CLOCHE_EXPORTER_ROLE_H

#include "base/base.h"
#include "confine/confine.h"
#include <linux/netlink.h>
#include <seccomp.h>
#include <sys/socket.h>

static const int exporter_calls[] = {
    SCMP_SYS(openat), /* of a root with three files */
    SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(sendmmsg),          SCMP_SYS(connect),
    SCMP_SYS(bind),       SCMP_SYS(uname), SCMP_SYS(sched_getaffinity), SCMP_SYS(socketpair),
    SCMP_SYS(rseq),
};

static const struct confine_socket exporter_sockets[] = {
    {AF_INET, SOCK_STREAM, -1}, {AF_INET, SOCK_DGRAM, -1},      {AF_INET6, SOCK_STREAM, -1},
    {AF_INET6, SOCK_DGRAM, -1}, {AF_NETLINK, 0, NETLINK_ROUTE},
};

static const struct confine_file exporter_files[] = {
    {"/etc/nsswitch.conf", "hosts: files dns\n"}, {"/etc/resolv.conf", NULL}, {"/etc/hosts", NULL}};

static const struct confine_role exporter_role = {
    .name = "cloche-exporter",
    .calls = exporter_calls,
    .ncalls = ARRAY_LEN(exporter_calls),
    .sockets = exporter_sockets,
    .nsockets = ARRAY_LEN(exporter_sockets),
    .files = exporter_files,
    .nfiles = ARRAY_LEN(exporter_files),
    .fds_max = 8192, /* a log ring per box, see box_logs.c */
    .memory_max = (uint64_t)2 << 30,
};

#endif
