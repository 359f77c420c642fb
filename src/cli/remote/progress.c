/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/progress.h"
#include "cli/remote/table.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WAIT_US 500000
#define GAP_US  100000
#define BAR     24
#define LINE    512

void progress_begin(struct progress *p, struct str name)
{
  cleanup_buf struct buf clean = BUF_INIT(4096);
  text_clean(&clean, str_sub(name, 0, 1024), 0);
  *p = (struct progress){.began_us = clock_mono_us()};
  snprintf(p->name, sizeof(p->name), "%s", buf_z(&clean));
}

static bool due(struct progress *p)
{
  int64_t now = clock_mono_us();
  if (!isatty(2) || now - p->began_us < WAIT_US || now - p->shown_us < GAP_US)
    return false;
  p->shown_us = now;
  return true;
}

/* As many characters as the terminal has columns, so that the line stays one. */
static void show(struct progress *p, struct buf *line)
{
  struct winsize size = {0};
  if (ioctl(2, TIOCGWINSZ, &size) || !size.ws_col)
    size.ws_col = 80;
  size_t n = 0, columns = 0;
  for (; n < line->n; n++) {
    columns += ((unsigned char)line->p[n] & 0xc0) != 0x80;
    if (columns >= size.ws_col)
      break;
  }
  fprintf(stderr, "\r\033[K%.*s", (int)n, buf_z(line));
  p->shown = true;
}

static void add_bar(struct buf *line, double part)
{
  int full = (int)(MIN(MAX(part, 0.0), 1.0) * BAR);
  buf_addc(line, '[');
  for (int i = 0; i < BAR; i++)
    buf_addc(line, i < full ? '#' : '.');
  buf_addf(line, "] %3d%%", (int)(part * 100));
}

int progress_bytes(int64_t done, int64_t total, void *user)
{
  struct progress *p = user;
  cleanup_buf struct buf line = BUF_INIT(LINE);
  if (!due(p))
    return 0;
  double seconds = (double)(clock_mono_us() - p->began_us) / 1e6;
  buf_addf(&line, "%s  ", p->name);
  if (total > 0) {
    add_bar(&line, (double)done / (double)total);
    buf_addf(&line, "  %lld of %lld MiB", (long long)done >> 20, (long long)total >> 20);
  } else {
    buf_addf(&line, "%lld MiB", (long long)done >> 20);
  }
  buf_addf(&line, "  %.1f MiB/s", (double)done / 1048576 / seconds);
  show(p, &line);
  return 0;
}

void progress_steps(struct progress *p, uint64_t done, uint64_t total, struct str doing)
{
  cleanup_buf struct buf line = BUF_INIT(LINE);
  if (!due(p))
    return;
  buf_addf(&line, "%s  ", p->name);
  if (total)
    add_bar(&line, (double)done / (double)total);
  buf_addf(&line, "  %llds  ", (long long)(clock_mono_us() - p->began_us) / 1000000);
  text_clean(&line, str_sub(doing, 0, 200), CLEAN_COLOURS);
  show(p, &line);
}

void progress_end(struct progress *p)
{
  if (p->shown)
    fputs("\r\033[K", stderr);
  p->shown = false;
}
