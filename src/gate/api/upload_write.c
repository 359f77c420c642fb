/* SPDX-License-Identifier: Apache-2.0 */
/* upload_write.c - see upload_write.h. */
#include "gate/api/upload_write.h"

#include "gate/api/disk_work.h"

struct upload_write {
  struct disk_work work; /* first: its callbacks get it */
  int fd;                /* the uploader's */
  int left_fd;           /* its own, once nobody waits; -1 before */
  int code;              /* of the write */
  upload_written_fn written;
  void *arg;
  size_t n;
  char data[];
};

static void act(struct disk_work *work)
{
  struct upload_write *w = (struct upload_write *)work;
  w->code = fd_write_all(w->fd, w->data, w->n);
}

static void done(struct disk_work *work)
{
  struct upload_write *w = (struct upload_write *)work;
  if (w->left_fd >= 0)
    close(w->left_fd);
  else
    w->written(w->arg, w->code);
  free(w);
}

struct upload_write *upload_write(struct gate *g, const char *team, int fd, struct str data, upload_written_fn written,
                                  void *arg)
{
  struct upload_write *w = xmalloc(sizeof(*w) + data.n);
  *w = (struct upload_write){
      .work = {.act = act, .done = done}, .fd = fd, .left_fd = -1, .written = written, .arg = arg, .n = data.n};
  memcpy(w->data, data.p, data.n);
  disk_work_queue(g, team, &w->work);
  return w;
}

void upload_write_leave(struct upload_write *w, int fd)
{
  if (!disk_work_cancel(&w->work)) {
    w->left_fd = fd;
    return;
  }
  close(fd);
  free(w);
}
