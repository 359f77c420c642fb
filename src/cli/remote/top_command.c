/* SPDX-License-Identifier: Apache-2.0 */
/* top_command.c - `cloche top`: a live table of running sandboxes with what they use. On a terminal it has the screen
 * for itself until Ctrl-C; else every table follows the one before. */
#include "cli/remote/commands.h"
#include "cli/remote/remote.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>

#define BOXES_MOST 100 /* one page */
#define EVERY_S    2
#define WINDOW_S   60 /* a sample that is older says nothing about now */

struct use {
  bool known;
  double cpu_percent;
  int64_t memory, memory_total, disk;
};

static struct use use_of(struct remote *r, const char *id)
{
  struct use use = {0};
  struct cloche_metric_list *list = NULL;
  int64_t now = clock_wall_us() / 1000000;
  if (!cloche_metrics(r->client, id, now - WINDOW_S, now + 1, &list, NULL, NULL) && list->count) {
    const struct cloche_metric *m = &list->items[list->count - 1];
    use = (struct use){true, m->cpu_used_pct, m->mem_used, m->mem_total, m->disk_used};
  }
  cloche_free(list);
  return use;
}

static void add_text(struct table *t, bool known, const char *fmt, double value)
{
  cleanup_free char *text = xasprintf(fmt, value);
  table_add(t, known ? text : "");
}

static void add_row(struct table *t, const struct cloche_box_info *box, const struct use *use)
{
  cleanup_buf struct buf left = BUF_INIT(64);
  int64_t end = 0;
  bool ends = box->end_at && !clock_parse(str_of(box->end_at), &end);
  duration_text(&left, ends ? (end - clock_wall_us()) / 1000000 : -1);
  table_add(t, box->id);
  table_add(t, box->alias && *box->alias ? box->alias : box->template_id ? box->template_id : "");
  add_text(t, use->known, "%.1f", use->cpu_percent);
  add_text(t, use->known, "%.0f", (double)use->memory / (1 << 20));
  add_text(t, use->known, "%.0f", (double)use->memory_total / (1 << 20));
  add_text(t, use->known, "%.0f", (double)use->disk / (1 << 20));
  table_add(t, buf_z(&left));
}

static void add_json(struct jw *w, const struct cloche_box_info *box, const struct use *use)
{
  jw_open(w, '{');
  jw_key(w, "sandboxID");
  jw_z(w, box->id);
  if (use->known) {
    jw_key(w, "cpuUsedPct");
    jw_double(w, use->cpu_percent, 2);
    jw_key(w, "memUsed");
    jw_int(w, use->memory);
    jw_key(w, "memTotal");
    jw_int(w, use->memory_total);
    jw_key(w, "diskUsed");
    jw_int(w, use->disk);
  }
  jw_close(w, '}');
}

static int one_table(struct remote *r, bool json, struct buf *out)
{
  static const char *const heads[] = {"ID", "TEMPLATE", "CPU %", "MEM MB", "OF MB", "DISK MB", "LEFT"};
  struct table table = {.columns = ARRAY_LEN(heads)};
  struct cloche_box_list *list = NULL;
  struct jw w = JW(out);
  if (cloche_list(r->client, CLOCHE_WITH(cloche_list, .state = "running", .limit = BOXES_MOST), &list, NULL, &r->error))
    return remote_failed(r, NULL);
  for (size_t i = 0; i < ARRAY_LEN(heads); i++)
    table_add(&table, heads[i]);
  if (json)
    jw_open(&w, '[');
  for (size_t i = 0; i < list->count; i++) {
    struct use use = use_of(r, list->items[i].id);
    if (json)
      add_json(&w, &list->items[i], &use);
    else
      add_row(&table, &list->items[i], &use);
  }
  if (json) {
    jw_close(&w, ']');
    buf_addc(out, '\n');
  } else {
    table_print(&table, out);
  }
  table_free(&table);
  cloche_free(list);
  return 0;
}

/* As much of the text as the terminal has lines and columns for. */
static void fit(struct str text, struct buf *out)
{
  struct winsize size = {0};
  if (ioctl(1, TIOCGWINSZ, &size) || !size.ws_col || !size.ws_row)
    size = (struct winsize){.ws_row = 24, .ws_col = 80};
  unsigned row = 0, column = 0;
  for (size_t i = 0; i < text.n && row + 1 < size.ws_row; i++) {
    bool begins = ((unsigned char)text.p[i] & 0xc0) != 0x80;
    if (text.p[i] == '\n') {
      buf_addz(out, "\033[K\n");
      row++;
      column = 0;
      continue;
    }
    column += begins;
    if (column < size.ws_col)
      buf_addc(out, text.p[i]);
  }
}

/* True when a signal other than that of a new size came. */
static bool wait_signal(struct remote *r)
{
  struct signalfd_siginfo info;
  struct pollfd p = {.fd = r->signals, .events = POLLIN};
  return poll(&p, 1, EVERY_S * 1000) > 0 && read(r->signals, &info, sizeof(info)) == sizeof(info) &&
         info.ssi_signo != SIGWINCH;
}

static int top_run(struct args *args)
{
  struct remote r;
  int status = remote_open(args, &r);
  if (status)
    return status;
  const bool screen = isatty(1) && !args->json;
  status = remote_signals(&r);
  if (!status && screen)
    fd_write_all(1, "\033[?1049h\033[?25l", 14);
  for (uint64_t i = 0; !status; i++) {
    cleanup_buf struct buf text = BUF_INIT(PRINT_MAX), out = BUF_INIT(PRINT_MAX);
    if ((status = one_table(&r, args->json, &text)))
      break;
    if (screen) {
      buf_addz(&out, "\033[H");
      fit(buf_str(&text), &out);
      buf_addz(&out, "\033[J");
    }
    status = print_out(screen ? &out : &text);
    if ((args->lines && i + 1 >= args->lines) || wait_signal(&r))
      break;
  }
  if (screen)
    fd_write_all(1, "\033[?25h\033[?1049l", 14);
  remote_close(&r);
  return status;
}

static const struct option_spec top_options[] = {
    {"count", 'n', "N", "so many tables, then end [until Ctrl-C]", OPTION_NUMBER, offsetof(struct args, lines), 1,
     1000000},
};

const struct command_spec top_spec = {
    .name = "top",
    .summary = "watch what running sandboxes use",
    .usage = "",
    .text = "A table of processor time, memory and disk of up to 100 sandboxes of the key's team, renewed every two\n"
            "seconds. Into a file or pipe one table follows the other.",
    .options = top_options,
    .option_count = ARRAY_LEN(top_options),
    .run = top_run,
};
