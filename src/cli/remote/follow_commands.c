/* SPDX-License-Identifier: Apache-2.0 */
/* follow_commands.c - the remote forms of `cloche logs` and `cloche events`: what was, and with -f what comes. Servers
 * are asked again twice a second; a line is printed once. */
#include "cli/remote/commands.h"
#include "cli/remote/remote.h"

#include <stdio.h>
#include <time.h>

#define PAGE          1000
#define EVENTS        100 /* of a page, as the API has it at most */
#define LINES_DEFAULT 20
#define FOLLOW_NS     500000000

static void wait_a_while(void)
{
  nanosleep(&(struct timespec){.tv_nsec = FOLLOW_NS}, NULL);
}

static void text_member(struct jw *w, const char *name, const char *value)
{
  jw_key(w, name);
  jw_z(w, value ? value : "");
}

/* ---- logs ---- */

struct log_tail {
  int64_t at_us;  /* of the newest line that was printed */
  size_t printed; /* lines of the millisecond of at_us */
};

static void print_log(const struct args *args, const struct cloche_log_entry *e, struct buf *out)
{
  if (args->json) {
    struct jw w = JW(out);
    jw_open(&w, '{');
    text_member(&w, "timestamp", e->timestamp);
    text_member(&w, "level", e->level);
    text_member(&w, "message", e->message);
    jw_close(&w, '}');
  } else {
    text_clean(out, str_of(e->timestamp), 0);
    buf_addc(out, ' ');
    text_clean(out, str_of(e->level), 0);
    buf_addc(out, ' ');
    text_clean(out, str_trim(str_of(e->message)), CLEAN_LINES | CLEAN_COLOURS);
  }
  buf_addc(out, '\n');
}

/* One page from where the last one ended. The cursor is a millisecond, so its lines come again and are passed over. */
static int print_page(struct remote *r, const struct args *args, struct log_tail *tail, size_t *count)
{
  struct cloche_log_list *list = NULL;
  cleanup_buf struct buf out = BUF_INIT(PRINT_MAX);
  const int64_t cursor = MAX(tail->at_us / 1000, (int64_t)1);
  size_t again = tail->printed;
  *count = 0;
  if (cloche_logs(r->client, args->words[0],
                  CLOCHE_WITH(cloche_log_options, .cursor_ms = cursor, .forward = true, .limit = PAGE), &list, NULL,
                  &r->error))
    return EXIT_FAILED;
  for (size_t i = 0; i < list->count; i++) {
    int64_t at = tail->at_us;
    clock_parse(str_of(list->items[i].timestamp), &at);
    bool same = at / 1000 == tail->at_us / 1000;
    if (same && again) {
      again--;
      continue;
    }
    tail->printed = same ? tail->printed + 1 : 1;
    tail->at_us = at;
    print_log(args, &list->items[i], &out);
    ++*count;
  }
  if (!*count && list->count == PAGE) { /* more lines in one millisecond than a page has: those behind it are lost */
    *tail = (struct log_tail){.at_us = (cursor + 1) * 1000};
    *count = 1;
  }
  cloche_free(list);
  return print_out(&out);
}

static bool still_there(struct remote *r, const char *id)
{
  struct cloche_box_info *info = NULL;
  enum cloche_code code = cloche_info(r->client, id, &info, NULL, NULL);
  cloche_free(info);
  return code != CLOCHE_ENOTFOUND && code != CLOCHE_EGONE;
}

static int logs_run(struct args *args)
{
  struct remote r;
  struct log_tail tail = {0};
  size_t count;
  int status = remote_open(args, &r);
  if (status)
    return status;
  for (bool there = true;;) {
    status = print_page(&r, args, &tail, &count);
    if (status || (!count && (!args->follow || !there)))
      break;
    if (count)
      continue;
    wait_a_while();
    there = still_there(&r, args->words[0]);
  }
  if (r.error.code)
    status = remote_failed(&r, args->words[0]);
  remote_close(&r);
  return status;
}

/* ---- events ---- */

static void print_event(const struct args *args, const struct cloche_event *e, struct buf *out)
{
  if (args->json) {
    buf_addz(out, e->raw);
  } else {
    text_clean(out, str_of(e->timestamp), 0);
    buf_addz(out, "  ");
    text_clean(out, str_of(e->box_id), 0);
    buf_addz(out, "  ");
    text_clean(out, str_of(e->type), 0);
  }
  buf_addc(out, '\n');
}

/* The newest first from the server, printed oldest first, as far back as `last` (an ID that was printed; may be NULL).
 */
static int print_events(struct remote *r, const struct args *args, int limit, char **last)
{
  struct cloche_event_list *list = NULL;
  cleanup_buf struct buf out = BUF_INIT(PRINT_MAX);
  const char *id = args->word_count ? args->words[0] : NULL;
  if (cloche_events(r->client, id, CLOCHE_WITH(cloche_event_options, .limit = limit), &list, NULL, &r->error))
    return remote_failed(r, id);
  size_t n = 0;
  while (n < list->count && (!*last || strcmp(list->items[n].id, *last) != 0))
    n++;
  for (size_t i = n; i > 0; i--)
    print_event(args, &list->items[i - 1], &out);
  if (n) {
    free(*last);
    *last = xstrdup(list->items[0].id);
  }
  cloche_free(list);
  return print_out(&out);
}

static int events_run(struct args *args)
{
  struct remote r;
  cleanup_free char *last = NULL;
  int status = remote_open(args, &r);
  if (status)
    return status;
  status = print_events(&r, args, args->lines ? (int)args->lines : LINES_DEFAULT, &last);
  while (!status && args->follow) {
    wait_a_while();
    status = print_events(&r, args, EVENTS, &last);
  }
  remote_close(&r);
  return status;
}

static const struct option_spec logs_options[] = {
    {"follow", 'f', NULL, "go on with what is written, until the sandbox has ended", OPTION_FLAG,
     offsetof(struct args, follow), 0, 0},
};
static const struct option_spec events_options[] = {
    {"follow", 'f', NULL, "go on with what happens, until interrupted", OPTION_FLAG, offsetof(struct args, follow), 0,
     0},
    {"lines", 'n', "N", "so many of the latest events [20]", OPTION_NUMBER, offsetof(struct args, lines), 1, EVENTS},
};

const struct command_spec logs_spec = {
    .name = "logs",
    .summary = "show what a sandbox printed",
    .usage = "ID",
    .text = "Oldest first, as far as the log goes back; also of a sandbox that ended a while ago.",
    .options = logs_options,
    .option_count = ARRAY_LEN(logs_options),
    .least_words = 1,
    .most_words = 1,
    .run = logs_run,
};
const struct command_spec events_spec = {
    .name = "events",
    .summary = "show what happened to sandboxes",
    .usage = "[ID]",
    .text = "The latest lifecycle events of the team's sandboxes, or of one, oldest first.",
    .options = events_options,
    .option_count = ARRAY_LEN(events_options),
    .most_words = 1,
    .run = events_run,
};
