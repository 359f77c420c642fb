/* SPDX-License-Identifier: Apache-2.0 */
/* sender_role.h - what the sender keeps of its rights, beyond a gate: sockets of its own to the internet, and the files
 * by which names are resolved. The supervisor starts the sender again when one of them changes. */
#ifndef CLOCHE_SENDER_ROLE_H
#define CLOCHE_SENDER_ROLE_H

#include "base/base.h"
#include "confine/confine.h"
#include <linux/netlink.h>
#include <seccomp.h>
#include <sys/socket.h>

static const int sender_calls[] = {
    SCMP_SYS(openat), /* of a root with three files */
    SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(sendmmsg),          SCMP_SYS(connect),
    SCMP_SYS(bind),       SCMP_SYS(uname), SCMP_SYS(sched_getaffinity),
};

/* TCP and UDP, and the kernel's list of addresses by which answers of name servers are sorted; no unix socket. */
static const struct confine_socket sender_sockets[] = {
    {AF_INET, SOCK_STREAM, -1}, {AF_INET, SOCK_DGRAM, -1},      {AF_INET6, SOCK_STREAM, -1},
    {AF_INET6, SOCK_DGRAM, -1}, {AF_NETLINK, 0, NETLINK_ROUTE},
};

static const struct confine_file sender_files[] = {
    {"/etc/nsswitch.conf", "hosts: files dns\n"}, {"/etc/resolv.conf", NULL}, {"/etc/hosts", NULL}};

static const struct confine_role sender_role = {
    .name = "cloche-sender",
    .calls = sender_calls,
    .ncalls = ARRAY_LEN(sender_calls),
    .sockets = sender_sockets,
    .nsockets = ARRAY_LEN(sender_sockets),
    .files = sender_files,
    .nfiles = ARRAY_LEN(sender_files),
    .fds_max = 4096,
    .memory_max = (uint64_t)2 << 30,
};

#endif
