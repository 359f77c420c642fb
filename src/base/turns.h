/* turns.h - how soon and how long the scheduler lets a process run. See turns.c. */
#ifndef CLOCHE_TURNS_H
#define CLOCHE_TURNS_H

#include <sys/types.h>

/* pid 0: the calling thread. prompt: short turns (ignored before Linux 6.12). Children begin as ordinary ones. 0 or -errno. */
int turns_set(pid_t pid, int nice, bool prompt);

#endif
