/* SPDX-License-Identifier: Apache-2.0 */
/* host_names.c - host_names WORD...: reads every file of /proc and /sys, link targets and names included, and prints
 * where one of the words is found. The words are ids and directories of another team's sandboxes. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MOST (1 << 20)

static char text[FILE_MOST + 1];
static char **words;
static long files;

static void search(const char *path, const char *what, size_t n)
{
  for (char **w = words; *w; w++)
    if (memmem(what, n, *w, strlen(*w)))
      printf("found %s in %s\n", *w, path);
}

static void look_at_file(const char *path)
{
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  size_t n = 0;
  for (ssize_t k; fd >= 0 && n < FILE_MOST && (k = read(fd, text + n, FILE_MOST - n)) > 0; n += (size_t)k)
    ;
  if (fd >= 0) {
    close(fd);
    files++;
  }
  search(path, text, n);
}

static void look_at_link(const char *path)
{
  char target[4096];
  ssize_t n = readlink(path, target, sizeof(target));
  if (n > 0)
    search(path, target, (size_t)n);
}

/* Our own words are in our own arguments and environment, and in those of the shell that started us. */
static int is_about_arguments(const char *name)
{
  return strcmp(name, "cmdline") == 0 || strcmp(name, "environ") == 0 || strcmp(name, "mem") == 0 ||
         strcmp(name, "pagemap") == 0;
}

static void walk(const char *dir, int depth)
{
  DIR *d = depth < 16 ? opendir(dir) : NULL;
  for (struct dirent *e; d && (e = readdir(d));) {
    char path[4096];
    struct stat st;
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || is_about_arguments(e->d_name))
      continue;
    snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
    if (lstat(path, &st))
      continue;
    search(path, e->d_name, strlen(e->d_name));
    if (S_ISDIR(st.st_mode))
      walk(path, depth + 1);
    else if (S_ISLNK(st.st_mode))
      look_at_link(path);
    else if (S_ISREG(st.st_mode))
      look_at_file(path);
  }
  if (d)
    closedir(d);
}

int main(int argc, char **argv)
{
  (void)argc;
  words = argv + 1;
  walk("/proc", 0);
  walk("/sys", 0);
  printf("read %ld files\n", files);
  return 0;
}
