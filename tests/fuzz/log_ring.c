/* SPDX-License-Identifier: Apache-2.0 */
/* log_ring.c - a log ring as root of a box may write it, read as the gate and the warden do. No more comes out than was
 * asked for, whole lines only; what is told of them is JSON. */
#include "must.h"

#include "wire/log_entry.h"
#include "wire/logring.h"

#include <sys/mman.h>

#define READ_MOST 65536

static void check_json(struct buf *b)
{
  cleanup_arena struct arena a = ARENA_INIT((size_t)64 << 20);
  MUST(buf_failed(b) || json_is(json_read(&a, buf_str(b), 0, NULL), JSON_OBJECT));
}

static void take_line(struct str line)
{
  cleanup_arena struct arena a = ARENA_INIT((size_t)64 * LOG_LINE_MOST);
  cleanup_buf struct buf one = BUF_INIT((size_t)4 << 20), two = BUF_INIT((size_t)4 << 20);
  struct jw first = JW(&one), second = JW(&two);
  struct log_entry e;
  if (line.n > LOG_LINE_MOST || !log_entry_read(&a, line, &e))
    return;
  log_entry_put_line(&first, &e);
  log_entry_put(&second, &e);
  check_json(&one);
  check_json(&two);
}

/* As the exporter does: from anywhere on, in pieces. */
static void follow(int fd, uint64_t at)
{
  uint64_t lost = 0;
  for (int i = 0; i < 3; i++) {
    cleanup_buf struct buf lines = BUF_INIT(READ_MOST);
    int r = logring_follow(fd, &at, 1024, &lines, &lost);
    MUST(r == 0 || r == -EINVAL);
    MUST(lines.n <= 1024 && (!lines.n || lines.p[lines.n - 1] == '\n'));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static int fd = -1;
  cleanup_buf struct buf lines = BUF_INIT(READ_MOST);
  if (fd < 0)
    fd = memfd_create("ring", MFD_CLOEXEC);
  MUST(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
  int r = logring_read(fd, READ_MOST, &lines);
  MUST(r == 0 || r == -EINVAL);
  MUST(lines.n <= READ_MOST && (!lines.n || lines.p[lines.n - 1] == '\n'));
  follow(fd, 0);
  follow(fd, size < 24 ? 1 : UINT64_MAX - data[16]);
  follow(fd, size < 24 ? size : data[16]);
  struct str rest = buf_str(&lines), line;
  while (rest.n) {
    str_cut(rest, '\n', &line, &rest);
    take_line(line);
  }
  return 0;
}
