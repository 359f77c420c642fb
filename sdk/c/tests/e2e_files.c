/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "e2e.h"

static void a_file_comes_back_as_it_was_written(void)
{
  static const char data[] = "bytes \0 and \xff more";
  const struct cloche_pair metadata[] = {{"author", "me"}};
  struct cloche_entry *entry;
  struct cloche_text *text;
  OK(cloche_write(e2e.box, "c/ü name+%.bin", data, sizeof data,
                  WITH(cloche_file, .metadata = metadata, .metadata_count = 1), &entry, NULL, ERR));
  SAME(entry->path, "/home/user/c/ü name+%.bin");
  CHECK(entry->metadata_count == 1);
  cloche_free(entry);
  OK(cloche_read(e2e.box, "c/ü name+%.bin", NULL, &text, NULL, ERR));
  CHECK(text->len == sizeof data && memcmp(text->data, data, sizeof data) == 0);
  cloche_free(text);
  OK(cloche_stat(e2e.box, "c/ü name+%.bin", NULL, &entry, NULL, ERR));
  CHECK(entry->size == sizeof data && entry->type == CLOCHE_ENTRY_FILE && entry->mode == 0644 && !entry->is_symlink);
  SAME(entry->metadata[0].value, "me");
  SAME(entry->owner, "user");
  cloche_free(entry);
  OK(cloche_write(e2e.box, "c/empty", NULL, 0, NULL, NULL, NULL, ERR));
  OK(cloche_read(e2e.box, "c/empty", NULL, &text, NULL, ERR));
  CHECK(text->len == 0 && text->data[0] == 0);
  cloche_free(text);
  FAILS(CLOCHE_ENOTFOUND, cloche_read(e2e.box, "c/none", NULL, &text, NULL, ERR));
  FAILS(CLOCHE_EINVAL, cloche_read(e2e.box, "c", NULL, &text, NULL, ERR));
}

static void names_move_and_go(void)
{
  bool made, exists;
  struct cloche_entry *entry;
  struct cloche_entry_list *list;
  OK(cloche_make_dir(e2e.box, "d/one/two", NULL, &made, NULL, ERR));
  CHECK(made);
  OK(cloche_make_dir(e2e.box, "d/one/two", NULL, &made, NULL, ERR));
  CHECK(!made);
  OK(cloche_write(e2e.box, "d/f", "1", 1, NULL, NULL, NULL, ERR));
  OK(cloche_move(e2e.box, "d/f", "d/one/g", NULL, &entry, NULL, ERR));
  SAME(entry->name, "g");
  cloche_free(entry);
  OK(cloche_list_dir(e2e.box, "d", 2, NULL, &list, NULL, ERR));
  CHECK(list->count == 3 && list->items[0].type == CLOCHE_ENTRY_DIRECTORY && list->items[1].size == 1);
  SAME(list->items[2].path, "/home/user/d/one/two");
  cloche_free(list);
  OK(cloche_exists(e2e.box, "d/one/g", NULL, &exists, NULL, ERR));
  CHECK(exists);
  OK(cloche_remove(e2e.box, "d", NULL, NULL, ERR));
  OK(cloche_exists(e2e.box, "d/one/g", NULL, &exists, NULL, ERR));
  CHECK(!exists);
  FAILS(CLOCHE_ENOTFOUND, cloche_list_dir(e2e.box, "d", 1, NULL, &list, NULL, ERR));
}

static int progress(int64_t done, int64_t total, void *user)
{
  *(int64_t *)user = done;
  return 0;
}

static void descriptors_are_copied_both_ways(void)
{
  int64_t bytes, seen = 0;
  int in = memfd_create("in", 0), out = memfd_create("out", 0);
  static char block[1 << 20], back[1 << 20];
  for (int i = 0; i < 8; i++) {
    memset(block, 'a' + i, sizeof block);
    CHECK(write(in, block, sizeof block) == sizeof block);
  }
  lseek(in, 0, SEEK_SET);
  OK(cloche_write_fd(e2e.box, "/tmp/fd", in, WITH(cloche_file, .on_progress = progress, .user = &seen), NULL, NULL,
                     ERR));
  CHECK(seen == 8 << 20);
  OK(cloche_read_fd(e2e.box, "/tmp/fd", out, NULL, &bytes, NULL, ERR));
  CHECK(bytes == 8 << 20);
  lseek(out, 0, SEEK_SET);
  for (int i = 0; i < 8; i++) {
    CHECK(read(out, back, sizeof back) == sizeof back);
    CHECK(back[0] == 'a' + i && back[sizeof back - 1] == 'a' + i);
  }
  close(in);
  close(out);
  FAILS(CLOCHE_ESYSTEM, cloche_write_fd(e2e.box, "/tmp/fd", 9999, NULL, NULL, NULL, ERR));
}

struct pipe_job {
  int fd;
  char got[64];
};

static void *feed(void *arg)
{
  const int *fd = arg;
  for (int i = 0; i < 3; i++) {
    usleep(30000); /* the client must wait for it, again and again */
    if (write(*fd, "part ", 5) != 5)
      break;
  }
  close(*fd);
  return NULL;
}

static void *drain(void *arg)
{
  struct pipe_job *job = arg;
  static char sink[1 << 16];
  size_t sum = 0;
  ssize_t n;
  while ((n = read(job->fd, sink, sizeof sink)) > 0) {
    sum += (size_t)n;
    usleep(1000);
  }
  snprintf(job->got, sizeof job->got, "%zu", sum);
  return NULL;
}

static void pipes_that_wait_are_waited_for(void)
{
  int p[2];
  pthread_t thread;
  struct cloche_text *text;
  CHECK(pipe(p) == 0);
  pthread_create(&thread, NULL, feed, &p[1]);
  OK(cloche_write_fd(e2e.box, "/tmp/pipe", p[0], NULL, NULL, NULL, ERR));
  pthread_join(thread, NULL);
  close(p[0]);
  OK(cloche_read(e2e.box, "/tmp/pipe", NULL, &text, NULL, ERR));
  SAME(text->data, "part part part ");
  cloche_free(text);
  struct cloche_command_result *r;
  OK(cloche_command(e2e.box, "head -c 3000000 /dev/zero > /tmp/zeros", NULL, &r, NULL, ERR));
  cloche_free(r);
  CHECK(pipe2(p, O_NONBLOCK) == 0);
  fcntl(p[0], F_SETFL, 0);
  struct pipe_job job = {.fd = p[0]};
  pthread_create(&thread, NULL, drain, &job);
  int64_t bytes;
  OK(cloche_read_fd(e2e.box, "/tmp/zeros", p[1], NULL, &bytes, NULL, ERR));
  close(p[1]);
  pthread_join(thread, NULL);
  close(p[0]);
  SAME(job.got, "3000000");
}

static void a_transfer_without_progress_ends(void)
{
  int p[2];
  CHECK(pipe(p) == 0);
  FAILS(CLOCHE_ETIMEOUT, cloche_write_fd(e2e.box, "/tmp/stalled", p[0], NULL, NULL, WITHIN(300), ERR));
  close(p[0]);
  close(p[1]);
}

struct seen {
  bool created, written;
};

static int write_there(void *user)
{
  return cloche_write(e2e.box, "watched/sub/file", "1", 1, NULL, NULL, NULL, NULL) != CLOCHE_OK;
}

static int on_change(const struct cloche_watch_event *event, void *user)
{
  struct seen *seen = user;
  if (strcmp(event->name, "sub/file") != 0)
    return 0;
  seen->created |= event->type == CLOCHE_WATCH_CREATE && event->entry && event->entry->type == CLOCHE_ENTRY_FILE;
  seen->written |= event->type == CLOCHE_WATCH_WRITE;
  return seen->created && seen->written;
}

static void changes_are_told_while_a_watch_runs(void)
{
  struct seen seen = {0};
  OK(cloche_make_dir(e2e.box, "watched/sub", NULL, NULL, NULL, ERR));
  FAILS(CLOCHE_ECANCELED, cloche_watch(e2e.box, "watched",
                                       WITH(cloche_watch, .recursive = true, .with_entries = true,
                                            .on_start = write_there, .on_event = on_change, .user = &seen),
                                       WITHIN(20000), ERR));
  CHECK(seen.created && seen.written);
  FAILS(CLOCHE_ENOTFOUND, cloche_watch(e2e.box, "nothing", WITH(cloche_watch, .recursive = false), WITHIN(20000), ERR));
}

static void signed_addresses_work_without_a_token(void)
{
  char *url, line[1024];
  OK(cloche_write(e2e.box, "signed.txt", "by url", 6, NULL, NULL, NULL, ERR));
  OK(cloche_download_url(e2e.box, "signed.txt", "user", 60, &url, ERR));
  CHECK(strstr(url, "signature=v1_") && strstr(url, "signature_expiration="));
  snprintf(line, sizeof line, "curl -sf '%s'", url);
  FILE *f = popen(line, "r");
  char got[32] = "";
  CHECK(f && fgets(got, sizeof got, f));
  pclose(f);
  SAME(got, "by url");
  cloche_free(url);
  OK(cloche_upload_url(e2e.box, "up.txt", NULL, 0, &url, ERR));
  snprintf(line, sizeof line, "curl -sf -o /dev/null -H 'Content-Type: application/octet-stream' -d sent '%s'", url);
  CHECK(system(line) == 0);
  cloche_free(url);
  struct cloche_text *text;
  OK(cloche_read(e2e.box, "up.txt", NULL, &text, NULL, ERR));
  SAME(text->data, "sent");
  cloche_free(text);
}

const struct e2e_case file_cases[] = {{"a file comes back as it was written", a_file_comes_back_as_it_was_written},
                                      {"names move and go", names_move_and_go},
                                      {"descriptors are copied both ways", descriptors_are_copied_both_ways},
                                      {"pipes that wait are waited for", pipes_that_wait_are_waited_for},
                                      {"a transfer without progress ends", a_transfer_without_progress_ends},
                                      {"changes are told while a watch runs", changes_are_told_while_a_watch_runs},
                                      {"signed addresses work without a token", signed_addresses_work_without_a_token},
                                      {0}};
