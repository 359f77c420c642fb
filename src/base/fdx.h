/* SPDX-License-Identifier: Apache-2.0 */
/* fdx.h - descriptors: closing, writing all of it, handing them to another process. */
#ifndef CLOCHE_FDX_H
#define CLOCHE_FDX_H

#include <dirent.h>
#include "base/buf.h"
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

static inline void cleanup_fd_p(int *fd)
{
  if (*fd >= 0)
    close(*fd);
}
#define cleanup_fd __attribute__((cleanup(cleanup_fd_p)))

static inline void cleanup_dir_p(DIR **d)
{
  if (*d)
    closedir(*d);
}
#define cleanup_dir __attribute__((cleanup(cleanup_dir_p)))
#define steal_fd(pfd)                                                                                                  \
  ({                                                                                                                   \
    int stolen_fd = *(pfd);                                                                                            \
    *(pfd) = -1;                                                                                                       \
    stolen_fd;                                                                                                         \
  })

int fd_write_all(int fd, const void *p, size_t n); /* blocking descriptors; 0 or -errno */
int fd_read_all(int fd, struct buf *out);          /* to end of file */
int file_read(const char *path, struct buf *out);
int file_write_atomic(const char *path, const void *p, size_t n, unsigned mode); /* temp + fsync + rename */
int fd_nonblock(int fd);
int fd_cloexec(int fd);

/* Messages with descriptors over unix sockets. recv gives received fds CLOEXEC; *nfds in: room, out: got. */
ssize_t fd_send(int sock, const void *p, size_t n, const int *fds, size_t nfds, int flags);
ssize_t fd_recv(int sock, void *p, size_t n, int *fds, size_t *nfds, int flags);

/* A path of /proc: "/proc/<pid>/ns/cgroup", "/proc/<pid>/fd/<number>" and the like. */
#define PROC_PATH 64

/* A process named so that a recycled pid can't be mistaken for it. */
struct proc_id {
  pid_t pid;
  uint64_t start; /* field 22 of /proc/PID/stat */
};
int proc_start_time(pid_t pid, uint64_t *start);
/* What this process holds in its memory is for nobody else: no tracing, no files in /proc for its own user, no core
 * dump, also not to a program that core_pattern names. A change of user undoes the first two where fs.suid_dumpable
 * is 1. */
void proc_hide(void);
int proc_open(struct proc_id id); /* pidfd when it still lives under that start time, else -ESRCH */

#endif
