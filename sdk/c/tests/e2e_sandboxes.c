/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include "e2e.h"

static struct cloche_box *made(const struct cloche_create *options)
{
  struct cloche_box *box;
  OK(cloche_create(e2e.client, options, &box, NULL, ERR));
  return box;
}

static void ended(struct cloche_box *box)
{
  OK(cloche_kill(e2e.client, cloche_box_id(box), NULL, NULL, ERR));
  cloche_box_free(box);
}

static void info_tells_what_create_was_given(void)
{
  const struct cloche_pair metadata[] = {{"a b", "x&y=ü"}, {"run", e2e.unique}}, envs[] = {{"FOO", "it's \"1\"\n"}};
  struct cloche_box *box = made(WITH(cloche_create, .template_id = "base", .timeout_s = 77, .metadata = metadata,
                                     .metadata_count = 2, .envs = envs, .env_count = 1, .pause_on_timeout = true));
  struct cloche_box_info *info;
  OK(cloche_info(e2e.client, cloche_box_id(box), &info, NULL, ERR));
  SAME(info->id, cloche_box_id(box));
  SAME(info->state, "running");
  SAME(info->on_timeout, "pause");
  CHECK(info->metadata_count == 2 && info->cpu_count > 0 && info->memory_mb > 0 && info->raw[0] == '{');
  SAME(info->metadata[0].value, "x&y=ü");
  cloche_free(info);
  struct cloche_command_result *r;
  OK(cloche_command(box, "printf %s \"$FOO\"", NULL, &r, NULL, ERR));
  SAME(r->out.data, "it's \"1\"\n");
  cloche_free(r);
  struct cloche_box_list *list;
  OK(cloche_list(e2e.client, WITH(cloche_list, .metadata = metadata, .metadata_count = 2), &list, NULL, ERR));
  CHECK(list->count == 1 && !list->next);
  SAME(list->items[0].id, cloche_box_id(box));
  cloche_free(list);
  ended(box);
}

static void lists_come_in_pages(void)
{
  struct cloche_box *boxes[3];
  const struct cloche_pair metadata[] = {{"pages", e2e.unique}};
  for (int i = 0; i < 3; i++)
    boxes[i] = made(WITH(cloche_create, .template_id = "base", .metadata = metadata, .metadata_count = 1));
  int seen = 0, pages = 0;
  char next[512] = "";
  do {
    struct cloche_box_list *list;
    OK(cloche_list(
        e2e.client,
        WITH(cloche_list, .metadata = metadata, .metadata_count = 1, .limit = 2, .next = next[0] ? next : NULL), &list,
        NULL, ERR));
    seen += (int)list->count;
    pages++;
    snprintf(next, sizeof next, "%s", list->next ? list->next : "");
    cloche_free(list);
  } while (next[0]);
  CHECK(seen == 3 && pages == 2);
  for (int i = 0; i < 3; i++)
    ended(boxes[i]);
}

static void a_killed_sandbox_is_gone_with_its_cause(void)
{
  struct cloche_box *box = made(WITH(cloche_create, .template_id = "base"));
  bool existed, running;
  OK(cloche_is_running(box, &running, NULL, ERR));
  CHECK(running);
  OK(cloche_kill(e2e.client, cloche_box_id(box), &existed, NULL, ERR));
  CHECK(existed);
  OK(cloche_kill(e2e.client, cloche_box_id(box), &existed, NULL, ERR));
  CHECK(!existed);
  OK(cloche_is_running(box, &running, NULL, ERR));
  CHECK(!running);
  struct cloche_command_result *r;
  FAILS(CLOCHE_EGONE, cloche_command(box, "true", NULL, &r, NULL, ERR));
  SAME(e2e.error.cause, "killed: by request");
  struct cloche_box *again;
  FAILS(CLOCHE_EGONE, cloche_connect(e2e.client, cloche_box_id(box), NULL, &again, NULL, ERR));
  CHECK(e2e.error.cause && strstr(e2e.error.cause, "killed: by API key"));
  cloche_box_free(box);
}

static void the_cause_of_an_end_reaches_a_running_command(void)
{
  struct cloche_box *box = made(WITH(cloche_create, .template_id = "base"));
  struct cloche_process *p;
  struct cloche_command_result *r;
  OK(cloche_start(box, "sleep 60", NULL, &p, NULL, ERR));
  OK(cloche_kill(e2e.client, cloche_box_id(box), NULL, NULL, ERR));
  FAILS(CLOCHE_EGONE, cloche_wait(p, &r, WITHIN(20000), ERR));
  SAME(e2e.error.cause, "killed: by request");
  cloche_process_free(p);
  cloche_box_free(box);
}

static void pause_and_connect_keep_memory(void)
{
  struct cloche_box *box = made(NULL), *again;
  struct cloche_execution *e;
  bool paused;
  OK(cloche_run_code(box, "kept = 'here'", NULL, NULL, NULL, ERR));
  OK(cloche_pause(e2e.client, cloche_box_id(box), NULL, &paused, NULL, ERR));
  CHECK(paused);
  OK(cloche_pause(e2e.client, cloche_box_id(box), NULL, &paused, NULL, ERR));
  CHECK(!paused);
  OK(cloche_connect(e2e.client, cloche_box_id(box), WITH(cloche_connect, .timeout_s = 120), &again, NULL, ERR));
  SAME(cloche_box_id(again), cloche_box_id(box));
  OK(cloche_run_code(again, "kept", NULL, &e, NULL, ERR));
  SAME(e->text, "here");
  cloche_free(e);
  struct cloche_box *third;
  FAILS(CLOCHE_EEXISTS, cloche_resume(e2e.client, cloche_box_id(box), NULL, &third, NULL, ERR));
  OK(cloche_set_timeout(e2e.client, cloche_box_id(box), 30, NULL, ERR));
  OK(cloche_pause(e2e.client, cloche_box_id(box), WITH(cloche_pause, .without_memory = true), NULL, NULL, ERR));
  OK(cloche_resume(e2e.client, cloche_box_id(box), NULL, &third, NULL, ERR));
  cloche_box_free(third);
  cloche_box_free(again);
  ended(box);
}

static void forks_and_snapshots_have_the_source_s_files(void)
{
  struct cloche_box *box = made(WITH(cloche_create, .template_id = "base"));
  struct cloche_fork_list *forks;
  struct cloche_text *text;
  OK(cloche_write(box, "mark", "of the source", 13, NULL, NULL, NULL, ERR));
  OK(cloche_fork(e2e.client, cloche_box_id(box), 2, 60, &forks, NULL, ERR));
  CHECK(forks->count == 2);
  for (size_t i = 0; i < 2; i++) {
    CHECK(forks->items[i].box);
    OK(cloche_read(forks->items[i].box, "mark", NULL, &text, NULL, ERR));
    SAME(text->data, "of the source");
    cloche_free(text);
    ended(forks->items[i].box);
  }
  cloche_free(forks);
  struct cloche_snapshot *snapshot;
  struct cloche_snapshot_list *list;
  OK(cloche_snapshot(e2e.client, cloche_box_id(box), WITH(cloche_snapshot_options, .without_memory = true), &snapshot,
                     NULL, ERR));
  OK(cloche_snapshots(e2e.client, cloche_box_id(box), 10, NULL, &list, NULL, ERR));
  CHECK(list->count == 1);
  SAME(list->items[0].id, snapshot->id);
  cloche_free(list);
  struct cloche_box *child = made(WITH(cloche_create, .template_id = snapshot->id));
  OK(cloche_read(child, "mark", NULL, &text, NULL, ERR));
  SAME(text->data, "of the source");
  cloche_free(text);
  ended(child);
  bool existed;
  OK(cloche_snapshot_delete(e2e.client, snapshot->id, &existed, NULL, ERR));
  CHECK(existed);
  cloche_free(snapshot);
  ended(box);
}

static void events_and_logs_tell_what_happened(void)
{
  struct cloche_event_list *events;
  static const char *const types[] = {"sandbox.lifecycle.created", NULL};
  OK(cloche_events(e2e.client, cloche_box_id(e2e.box), WITH(cloche_event_options, .types = types), &events, NULL, ERR));
  CHECK(events->count == 1);
  SAME(events->items[0].box_id, cloche_box_id(e2e.box));
  cloche_free(events);
  struct cloche_log_list *logs;
  OK(cloche_logs(e2e.client, cloche_box_id(e2e.box), WITH(cloche_log_options, .limit = 5), &logs, NULL, ERR));
  CHECK(logs->count <= 5);
  cloche_free(logs);
  struct cloche_net_log *net;
  enum cloche_code code = cloche_network_log(e2e.client, cloche_box_id(e2e.box), 0, 0, 10, &net, NULL, ERR);
  if (code == CLOCHE_OK)
    cloche_free(net);
  else /* a server without networks for its boxes keeps none, and says so */
    CHECK(code == CLOCHE_EDENIED && strstr(e2e.error.message, "network_log"));
  struct cloche_metric_list *metrics;
  OK(cloche_metrics(e2e.client, cloche_box_id(e2e.box), 0, 0, &metrics, NULL, ERR));
  cloche_free(metrics);
}

static void network_rules_are_told_back(void)
{
  static const char *const allow[] = {"203.0.113.7", NULL}, *const deny[] = {"0.0.0.0/0", NULL};
  struct cloche_box *box =
      made(WITH(cloche_create, .template_id = "base",
                .network = WITH(cloche_network, .allow_out = allow, .deny_out = deny, .no_public_traffic = true)));
  struct cloche_box_info *info;
  CHECK(cloche_box_traffic_token(box));
  OK(cloche_info(e2e.client, cloche_box_id(box), &info, NULL, ERR));
  CHECK(info->network_json && strstr(info->network_json, "203.0.113.7"));
  cloche_free(info);
  OK(cloche_set_network(e2e.client, cloche_box_id(box), NULL, NULL, ERR));
  OK(cloche_info(e2e.client, cloche_box_id(box), &info, NULL, ERR));
  CHECK(!info->network_json || !strstr(info->network_json, "203.0.113.7"));
  cloche_free(info);
  ended(box);
}

static void wrong_arguments_and_keys_are_told(void)
{
  struct cloche *other;
  struct cloche_box *box;
  struct cloche_box_list *list;
  FAILS(CLOCHE_EINVAL, cloche_open(WITH(cloche_config, .url = "ftp://x"), &other, ERR));
  OK(cloche_open(WITH(cloche_config, .key = "e2b_00"), &other, ERR));
  FAILS(CLOCHE_EAUTH, cloche_list(other, NULL, &list, NULL, ERR));
  CHECK(e2e.error.http_status == 401);
  cloche_close(other);
  FAILS(CLOCHE_ENOTFOUND,
        cloche_create(e2e.client, WITH(cloche_create, .template_id = "no-such-template"), &box, NULL, ERR));
  CHECK(strstr(e2e.error.message, "no-such-template"));
  FAILS(CLOCHE_EINVAL, cloche_kill(e2e.client, "", NULL, NULL, ERR));
  OK(cloche_open(WITH(cloche_config, .url = "http://127.0.0.1:1"), &other, ERR));
  FAILS(CLOCHE_ENET, cloche_list(other, NULL, &list, NULL, ERR));
  cloche_close(other);
  char *host;
  OK(cloche_host(e2e.box, 3000, &host, ERR));
  CHECK(strncmp(host, "3000-", 5) == 0 && strstr(host, cloche_box_id(e2e.box)));
  cloche_free(host);
}

static void https_and_http2_work(void)
{
  const char *url = getenv("CLOCHE_TLS_URL"), *dir = getenv("CLOCHE_TLS_DIR");
  char ca[512];
  CHECK(url && dir);
  snprintf(ca, sizeof ca, "%s/ca.pem", dir);
  struct cloche *tls;
  struct cloche_box *box;
  struct cloche_execution *e;
  OK(cloche_open(WITH(cloche_config, .url = url, .ca_file = ca), &tls, ERR));
  OK(cloche_connect(tls, cloche_box_id(e2e.box), WITH(cloche_connect, .timeout_s = 600), &box, NULL, ERR));
  for (int i = 0; i < 3; i++) {
    OK(cloche_run_code(box, "6 * 7", NULL, &e, NULL, ERR));
    SAME(e->text, "42");
    cloche_free(e);
  }
  static char big[3 << 20];
  memset(big, 'b', sizeof big);
  struct cloche_text *text;
  OK(cloche_write(box, "/tmp/big", big, sizeof big, NULL, NULL, NULL, ERR));
  OK(cloche_read(box, "/tmp/big", NULL, &text, NULL, ERR));
  CHECK(text->len == sizeof big && memcmp(text->data, big, sizeof big) == 0);
  cloche_free(text);
  cloche_box_free(box);
  cloche_close(tls);
}

const struct e2e_case sandbox_cases[] = {
    {"info tells what create was given", info_tells_what_create_was_given},
    {"lists come in pages", lists_come_in_pages},
    {"a killed sandbox is gone, with its cause", a_killed_sandbox_is_gone_with_its_cause},
    {"the cause of an end reaches a running command", the_cause_of_an_end_reaches_a_running_command},
    {"pause and connect keep memory", pause_and_connect_keep_memory},
    {"forks and snapshots have the source's files", forks_and_snapshots_have_the_source_s_files},
    {"events and logs tell what happened", events_and_logs_tell_what_happened},
    {"network rules are told back", network_rules_are_told_back},
    {"wrong arguments and keys are told", wrong_arguments_and_keys_are_told},
    {"https and HTTP/2 work", https_and_http2_work},
    {0}};
