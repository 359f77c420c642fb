/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of scenarios as calls of libcloche. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "driver.h"

#define ERR       (&d.error)
#define WITH(...) CLOCHE_WITH(__VA_ARGS__)

static struct cloche_call limited(long default_s)
{
  return (struct cloche_call){.size = sizeof(struct cloche_call),
                              .timeout_ms = arg_number("timeout", default_s) * 1000};
}

static bool streams(const char *what)
{
  const struct json *list = json_get(d.step, "streamed");
  for (const struct json *e = list ? list->child : NULL; e; e = e->next)
    if (strcmp(e->text, what) == 0)
      return true;
  return false;
}

/* ---- sandboxes ---- */

static const char *box_id(void)
{
  const char *id = arg("sandbox_id");
  return id ? id : step_box() ? cloche_box_id(step_box()) : "";
}

/* Another client where the step names a key of its own. */
static struct cloche *client_of_step(void)
{
  struct cloche *other = NULL;
  if (!arg("api_key") || cloche_open(WITH(cloche_config, .key = arg("api_key")), &other, ERR) != CLOCHE_OK)
    return d.client;
  return other;
}

static void done_with(struct cloche *client)
{
  if (client != d.client)
    cloche_close(client);
}

static enum cloche_code play_create(void)
{
  struct cloche_box *box;
  struct cloche *client = client_of_step();
  const struct json *lifecycle = json_get(d.step, "lifecycle"), *network = json_get(d.step, "network");
  const struct json *resume = json_get(lifecycle, "auto_resume"), *timeout = json_get(d.step, "timeout");
  struct cloche_create o = {
      .size = sizeof o, .template_id = arg("template"), .timeout_s = (int)arg_number("timeout", 0)};
  struct cloche_network n = {.size = sizeof n};
  size_t mount_count;
  const struct cloche_pair *wanted = arg_pairs("volume_mounts", &mount_count);
  struct cloche_volume_mount *mounts = arena_array(&d.memory, mount_count, sizeof *mounts);
  for (size_t i = 0; i < mount_count; i++)
    mounts[i] = (struct cloche_volume_mount){wanted[i].value, wanted[i].name};
  o.mounts = mounts;
  o.mount_count = mount_count;
  if (timeout && json_int(timeout, 1) == 0)
    o.timeout_s = -1; /* 0 means the default here; both are refused */
  o.metadata = arg_pairs("metadata", &o.metadata_count);
  o.envs = arg_pairs("envs", &o.env_count);
  const char *on_timeout = json_text(lifecycle, "on_timeout");
  o.pause_on_timeout = on_timeout && strcmp(on_timeout, "pause") == 0;
  o.resume_on_traffic = resume && resume->type == JSON_TRUE;
  if (network) {
    n.allow_out = text_list(json_get(network, "allow_out"));
    n.deny_out = text_list(json_get(network, "deny_out"));
    o.network = &n;
  }
  enum cloche_code code = cloche_create(client, &o, &box, NULL, ERR);
  done_with(client);
  if (code != CLOCHE_OK)
    return code;
  keep(json_text(d.step, "as") ? json_text(d.step, "as") : "unnamed", (struct kept){.box = box});
  buf_puts(&d.out, "{\"is\":\"Sandbox\"}");
  return CLOCHE_OK;
}

static enum cloche_code play_connect(void)
{
  struct cloche_box *box;
  GIVE(cloche_connect(d.client, box_id(), WITH(cloche_connect, .timeout_s = (int)arg_number("timeout", 0)), &box, NULL,
                      ERR));
  const char *as = json_text(d.step, "as");
  if (as)
    keep(as, (struct kept){.box = box});
  else
    cloche_box_free(box);
  buf_puts(&d.out, "{\"is\":\"Sandbox\"}");
  return CLOCHE_OK;
}

static enum cloche_code play_read(void)
{
  put_text("", arg("of"));
  return CLOCHE_OK;
}

static enum cloche_code play_is_running(void)
{
  bool running;
  GIVE(cloche_is_running(step_box(), &running, NULL, ERR));
  put_bool("", running);
  return CLOCHE_OK;
}

static enum cloche_code play_info(void)
{
  struct cloche_box_info *info;
  GIVE(cloche_info(d.client, box_id(), &info, NULL, ERR));
  tell_box_info(info);
  cloche_free(info);
  return CLOCHE_OK;
}

static enum cloche_code play_listed_boxes(void)
{
  struct cloche_box_list *list;
  struct cloche_list o = {.size = sizeof o};
  const struct json *state = json_get(d.step, "state");
  o.metadata = arg_pairs("metadata", &o.metadata_count);
  o.state = state ? state->child->text : NULL;
  GIVE(cloche_list(d.client, &o, &list, NULL, ERR));
  buf_puts(&d.out, "[");
  for (size_t i = 0; i < list->count; i++) {
    buf_puts(&d.out, i ? "," : "");
    tell_box_info(&list->items[i]);
  }
  buf_puts(&d.out, "]");
  cloche_free(list);
  return CLOCHE_OK;
}

static enum cloche_code play_set_timeout(void)
{
  return cloche_set_timeout(d.client, box_id(), (int)arg_number("timeout", 0), NULL, ERR);
}

static enum cloche_code play_host(void)
{
  char *host;
  GIVE(cloche_host(step_box(), (int)arg_number("port", 0), &host, ERR));
  put_text("", host);
  cloche_free(host);
  return CLOCHE_OK;
}

static enum cloche_code play_kill(void)
{
  bool existed;
  struct cloche *client = client_of_step();
  enum cloche_code code = cloche_kill(client, box_id(), &existed, NULL, ERR);
  done_with(client);
  if (code == CLOCHE_OK)
    put_bool("", existed);
  return code;
}

static enum cloche_code play_pause(void)
{
  bool paused;
  GIVE(cloche_pause(d.client, box_id(), NULL, &paused, NULL, ERR));
  put_bool("", paused);
  return CLOCHE_OK;
}

static enum cloche_code play_network(void)
{
  const struct json *network = json_get(d.step, "network");
  return cloche_set_network(d.client, box_id(),
                            WITH(cloche_network, .deny_out = text_list(json_get(network, "deny_out"))), NULL, ERR);
}

static void tell_snapshot(const struct cloche_snapshot *s)
{
  put_text("{\"is\":\"SnapshotInfo\",\"snapshot_id\":", s->id);
  buf_puts(&d.out, ",\"names\":");
  put_texts(&d.out, s->names);
  buf_puts(&d.out, "}");
}

static enum cloche_code play_snapshot(void)
{
  struct cloche_snapshot *s;
  GIVE(cloche_snapshot(d.client, box_id(), NULL, &s, NULL, ERR));
  tell_snapshot(s);
  keep(json_text(d.step, "as"), (struct kept){.text = s->id});
  cloche_free(s);
  return CLOCHE_OK;
}

static enum cloche_code play_snapshots(void)
{
  struct cloche_snapshot_list *list;
  GIVE(cloche_snapshots(d.client, box_id(), 0, NULL, &list, NULL, ERR));
  buf_puts(&d.out, "[");
  for (size_t i = 0; i < list->count; i++)
    buf_puts(&d.out, i ? "," : ""), tell_snapshot(&list->items[i]);
  buf_puts(&d.out, "]");
  cloche_free(list);
  return CLOCHE_OK;
}

static enum cloche_code play_snapshot_delete(void)
{
  bool existed;
  GIVE(cloche_snapshot_delete(d.client, arg("snapshot_id"), &existed, NULL, ERR));
  put_bool("", existed);
  return CLOCHE_OK;
}

static enum cloche_code play_url(void)
{
  char *url;
  const char *path = arg("path"), *user = arg("user");
  long expires = arg_number("use_signature_expiration", 0);
  GIVE(strcmp(d.area, "download_url") == 0 ? cloche_download_url(step_box(), path, user, expires, &url, ERR)
                                           : cloche_upload_url(step_box(), path, user, expires, &url, ERR));
  put_text("", url);
  keep(json_text(d.step, "as"), (struct kept){.text = url});
  cloche_free(url);
  return CLOCHE_OK;
}

static size_t fetched(char *data, size_t one, size_t len, void *user)
{
  buf_add(user, data, len);
  return len;
}

static enum cloche_code play_fetch(void)
{
  CURL *easy = curl_easy_init();
  struct buf got = {0};
  const char *body = arg("body");
  long status = 0;
  struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/octet-stream");
  curl_easy_setopt(easy, CURLOPT_URL, arg("url"));
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, fetched);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &got);
  if (body)
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
  curl_easy_perform(easy);
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  put_int("{\"status\":", status);
  put_text(",\"body\":", body || status != 200 || !got.data ? "" : got.data);
  buf_puts(&d.out, "}");
  curl_slist_free_all(headers);
  curl_easy_cleanup(easy);
  buf_free(&got);
  return CLOCHE_OK;
}

const struct play box_plays[] = {{"Sandbox.create", play_create},
                                 {"Sandbox.connect", play_connect},
                                 {"connect", play_connect},
                                 {"read", play_read},
                                 {"is_running", play_is_running},
                                 {"get_info", play_info},
                                 {"Sandbox.get_info", play_info},
                                 {"listed_boxes", play_listed_boxes},
                                 {"set_timeout", play_set_timeout},
                                 {"get_host", play_host},
                                 {"kill", play_kill},
                                 {"Sandbox.kill", play_kill},
                                 {"pause", play_pause},
                                 {"update_network", play_network},
                                 {"create_snapshot", play_snapshot},
                                 {"list_snapshots", play_snapshots},
                                 {"Sandbox.delete_snapshot", play_snapshot_delete},
                                 {"download_url", play_url},
                                 {"upload_url", play_url},
                                 {"fetch", play_fetch},
                                 {0}};

/* ---- cells ---- */

static void next_told(const char *which)
{
  buf_puts(&d.told, d.told.len ? "," : "");
  buf_puts(&d.told, "[");
  buf_json(&d.told, which);
  buf_puts(&d.told, ",");
}

static int message_told(const struct cloche_text *text, bool is_error)
{
  next_told(is_error ? "stderr" : "stdout");
  buf_puts(&d.told, "{\"is\":\"OutputMessage\",\"line\":");
  buf_json(&d.told, text->data);
  buf_puts(&d.told, ",\"timestamp\":");
  buf_json(&d.told, text->timestamp ? text->timestamp : "");
  buf_printf(&d.told, ",\"error\":%s}]", is_error ? "true" : "false");
  return 0;
}

static int cell_out(const struct cloche_text *text, void *user)
{
  return message_told(text, false);
}

static int cell_err(const struct cloche_text *text, void *user)
{
  return message_told(text, true);
}

static int cell_result(const struct cloche_result *result, void *user)
{
  next_told("result");
  tell_result(&d.told, result);
  buf_puts(&d.told, "]");
  return 0;
}

static int cell_error(const struct cloche_code_error *error, void *user)
{
  next_told("error");
  buf_puts(&d.told, "{\"is\":\"ExecutionError\",\"name\":");
  buf_json(&d.told, error->name);
  buf_puts(&d.told, ",\"value\":");
  buf_json(&d.told, error->value);
  buf_puts(&d.told, ",\"traceback\":");
  buf_json(&d.told, error->traceback);
  buf_puts(&d.told, "}]");
  return 0;
}

static enum cloche_code play_cell(void)
{
  struct cloche_execution *e;
  struct cloche_call call = limited(0);
  struct cloche_run o = {.size = sizeof o, .language = arg("language"), .context_id = arg("context")};
  o.envs = arg_pairs("envs", &o.env_count);
  o.on_stdout = streams("stdout") ? cell_out : NULL;
  o.on_stderr = streams("stderr") ? cell_err : NULL;
  o.on_result = streams("result") ? cell_result : NULL;
  o.on_error = streams("error") ? cell_error : NULL;
  GIVE(cloche_run_code(step_box(), arg("code"), &o, &e, &call, ERR));
  tell_execution(e);
  cloche_free(e);
  return CLOCHE_OK;
}

static enum cloche_code play_context(void)
{
  struct cloche_context *c;
  GIVE(cloche_context_create(step_box(), arg("language"), arg("cwd"), &c, NULL, ERR));
  put_text("{\"is\":\"Context\",\"id\":", c->id);
  put_text(",\"language\":", c->language);
  put_text(",\"cwd\":", c->cwd);
  buf_puts(&d.out, "}");
  keep(json_text(d.step, "as"), (struct kept){.text = c->id});
  cloche_free(c);
  return CLOCHE_OK;
}

static enum cloche_code play_restart(void)
{
  return cloche_context_restart(step_box(), arg("context"), NULL, ERR);
}

static enum cloche_code play_remove_context(void)
{
  return cloche_context_remove(step_box(), arg("context"), NULL, ERR);
}

const struct play code_plays[] = {{"run_code", play_cell},
                                  {"create_code_context", play_context},
                                  {"restart_code_context", play_restart},
                                  {"remove_code_context", play_remove_context},
                                  {0}};

/* ---- files ---- */

static struct cloche_file file_options(void)
{
  struct cloche_file o = {.size = sizeof o, .user_name = arg("user")};
  o.metadata = arg_pairs("metadata", &o.metadata_count);
  return o;
}

static enum cloche_code write_one(const struct json *data, const char *path, const struct cloche_file *o)
{
  struct cloche_entry *entry;
  struct cloche_text *bytes = NULL;
  const char *coded = json_text(data, "bytes");
  if (coded)
    GIVE(cloche_decode(coded, &bytes, ERR));
  enum cloche_code code = cloche_write(step_box(), path, bytes ? bytes->data : data->text,
                                       bytes ? bytes->len : data->len, o, &entry, NULL, ERR);
  cloche_free(bytes);
  GIVE(code);
  put_text("{\"is\":\"WriteInfo\",\"type\":\"file\",\"name\":", entry->name);
  put_text(",\"path\":", entry->path);
  put_names(",\"metadata\":", entry->metadata, entry->metadata_count, true);
  buf_puts(&d.out, "}");
  cloche_free(entry);
  return CLOCHE_OK;
}

static enum cloche_code play_write(void)
{
  struct cloche_file o = file_options();
  return write_one(json_get(d.step, "data"), arg("path"), &o);
}

static enum cloche_code play_write_files(void)
{
  struct cloche_file o = {.size = sizeof o};
  const struct json *files = json_get(d.step, "files");
  buf_puts(&d.out, "[");
  for (const struct json *f = files->child; f; f = f->next) {
    buf_puts(&d.out, f == files->child ? "" : ",");
    GIVE(write_one(json_get(f, "data"), json_text(f, "path"), &o));
  }
  buf_puts(&d.out, "]");
  return CLOCHE_OK;
}

static enum cloche_code play_read_file(void)
{
  struct cloche_file o = file_options();
  struct cloche_text *text;
  GIVE(cloche_read(step_box(), arg("path"), &o, &text, NULL, ERR));
  tell_content(text);
  cloche_free(text);
  return CLOCHE_OK;
}

static enum cloche_code play_stat(void)
{
  struct cloche_file o = file_options();
  struct cloche_entry *entry;
  GIVE(cloche_stat(step_box(), arg("path"), &o, &entry, NULL, ERR));
  tell_entry(entry);
  cloche_free(entry);
  return CLOCHE_OK;
}

static enum cloche_code play_list(void)
{
  struct cloche_entry_list *list;
  long depth = arg_number("depth", 1);
  if (depth < 1)
    return error_set(ERR, CLOCHE_EINVAL, "depth should be at least 1");
  GIVE(cloche_list_dir(step_box(), arg("path"), (int)depth, NULL, &list, NULL, ERR));
  buf_puts(&d.out, "[");
  for (size_t i = 0; i < list->count; i++)
    buf_puts(&d.out, i ? "," : ""), tell_entry(&list->items[i]);
  buf_puts(&d.out, "]");
  cloche_free(list);
  return CLOCHE_OK;
}

static enum cloche_code play_exists(void)
{
  bool exists;
  GIVE(cloche_exists(step_box(), arg("path"), NULL, &exists, NULL, ERR));
  put_bool("", exists);
  return CLOCHE_OK;
}

static enum cloche_code play_make_dir(void)
{
  bool made;
  GIVE(cloche_make_dir(step_box(), arg("path"), NULL, &made, NULL, ERR));
  put_bool("", made);
  return CLOCHE_OK;
}

static enum cloche_code play_rename(void)
{
  struct cloche_entry *entry;
  GIVE(cloche_move(step_box(), arg("old_path"), arg("new_path"), NULL, &entry, NULL, ERR));
  tell_entry(entry);
  cloche_free(entry);
  return CLOCHE_OK;
}

static enum cloche_code play_remove(void)
{
  return cloche_remove(step_box(), arg("path"), NULL, NULL, ERR);
}

struct watched {
  const struct json *steps;
  const char *until;
  char *seen[64]; /* ["name","type"], each once */
  size_t count;
};

static int watch_began(void *user)
{
  struct watched *w = user;
  play_steps(w->steps);
  return 0;
}

static int watch_told(const struct cloche_watch_event *event, void *user)
{
  static const char *const types[] = {"", "create", "write", "remove", "rename", "chmod"};
  struct watched *w = user;
  if (strcmp(event->name, w->until) == 0)
    return 1;
  struct buf b = {0};
  buf_puts(&b, "[");
  buf_json(&b, event->name);
  buf_printf(&b, ",\"%s\"]", types[event->type]);
  for (size_t i = 0; i < w->count; i++)
    if (strcmp(w->seen[i], b.data) == 0) {
      buf_free(&b);
      return 0;
    }
  if (w->count < 64)
    w->seen[w->count++] = buf_steal(&b);
  buf_free(&b);
  return 0;
}

static int by_text(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum cloche_code play_watch(void)
{
  struct watched w = {.steps = json_get(d.step, "steps"), .until = arg("until")};
  enum cloche_code code = cloche_watch(step_box(), arg("path"),
                                       WITH(cloche_watch, .recursive = arg_true("recursive"), .on_start = watch_began,
                                            .on_event = watch_told, .user = &w),
                                       WITH(cloche_call, .timeout_ms = 20000), ERR);
  if (code != CLOCHE_ECANCELED)
    return code;
  qsort(w.seen, w.count, sizeof w.seen[0], by_text);
  buf_puts(&d.out, "[");
  for (size_t i = 0; i < w.count; i++) {
    buf_puts(&d.out, i ? "," : "");
    buf_puts(&d.out, w.seen[i]);
    free(w.seen[i]);
  }
  buf_puts(&d.out, "]");
  return CLOCHE_OK;
}

const struct play file_plays[] = {{"files.write", play_write},
                                  {"write_files", play_write_files},
                                  {"files.read", play_read_file},
                                  {"files.get_info", play_stat},
                                  {"files.list", play_list},
                                  {"files.exists", play_exists},
                                  {"files.make_dir", play_make_dir},
                                  {"files.rename", play_rename},
                                  {"files.remove", play_remove},
                                  {"watch", play_watch},
                                  {0}};

/* ---- commands ---- */

/* The Python SDK tells output line by line. */
static int lines_told(const struct cloche_text *text, const char *which)
{
  for (const char *at = text->data; *at;) {
    size_t n = strcspn(at, "\n");
    n += at[n] == '\n';
    char *line = strndup(at, n);
    next_told(which);
    buf_json(&d.told, line);
    buf_puts(&d.told, "]");
    free(line);
    at += n;
  }
  return 0;
}

static int command_out(const struct cloche_text *text, void *user)
{
  return lines_told(text, "stdout");
}

static int command_err(const struct cloche_text *text, void *user)
{
  return lines_told(text, "stderr");
}

static struct cloche_command command_options(void)
{
  struct cloche_command o = {
      .size = sizeof o, .user_name = arg("user"), .cwd = arg("cwd"), .stdin_open = arg_true("stdin")};
  o.envs = arg_pairs("envs", &o.env_count);
  o.on_stdout = streams("stdout") ? command_out : NULL;
  o.on_stderr = streams("stderr") ? command_err : NULL;
  return o;
}

static enum cloche_code told_and_freed(struct cloche_command_result *r)
{
  enum cloche_code code = tell_command(r);
  cloche_free(r);
  return code;
}

static enum cloche_code play_command(void)
{
  struct cloche_command_result *r;
  struct cloche_command o = command_options();
  struct cloche_call call = limited(0);
  GIVE(cloche_command(step_box(), arg("cmd"), &o, &r, &call, ERR));
  return told_and_freed(r);
}

static enum cloche_code play_started(void)
{
  struct cloche_process *p;
  struct cloche_command o = command_options();
  GIVE(cloche_start(step_box(), arg("cmd"), &o, &p, NULL, ERR));
  keep(json_text(d.step, "as"), (struct kept){.process = p});
  buf_puts(&d.out, "{\"is\":\"CommandHandle\"}");
  return CLOCHE_OK;
}

static enum cloche_code play_connected(void)
{
  struct cloche_process *p;
  const char *of = arg("of");
  GIVE(cloche_reconnect(step_box(), (uint32_t)(of ? strtol(of, NULL, 10) : arg_number("pid", 0)), NULL, &p, NULL, ERR));
  keep(json_text(d.step, "as"), (struct kept){.process = p});
  buf_puts(&d.out, "{\"is\":\"CommandHandle\"}");
  return CLOCHE_OK;
}

static enum cloche_code play_wait(void)
{
  struct cloche_command_result *r;
  GIVE(cloche_wait(arg_kept("of")->process, &r, WITH(cloche_call, .timeout_ms = 30000), ERR));
  return told_and_freed(r);
}

static enum cloche_code play_stop(void)
{
  bool existed;
  const char *of = arg("of");
  uint32_t pid = (uint32_t)(of ? strtol(of, NULL, 10) : arg_number("pid", 0));
  GIVE(cloche_signal(step_box(), pid, 9, &existed, NULL, ERR));
  put_bool("", existed);
  return CLOCHE_OK;
}

static enum cloche_code play_type(void)
{
  const char *to = arg("to"), *text = arg("text") ? arg("text") : arg("data");
  uint32_t pid = (uint32_t)(to ? strtol(to, NULL, 10) : arg_number("pid", 0));
  return cloche_stdin(step_box(), pid, text, strlen(text), NULL, ERR);
}

static enum cloche_code play_end_input(void)
{
  return cloche_close_stdin(step_box(), (uint32_t)strtol(arg("to"), NULL, 10), NULL, ERR);
}

static enum cloche_code play_listed(void)
{
  struct cloche_process_list *list;
  uint32_t pid = (uint32_t)strtol(arg("of"), NULL, 10);
  GIVE(cloche_processes(step_box(), &list, NULL, ERR));
  buf_puts(&d.out, "[");
  for (size_t i = 0; i < list->count; i++) {
    const struct cloche_process_info *p = &list->items[i];
    if (p->pid != pid)
      continue;
    put_int("{\"is\":\"ProcessInfo\",\"pid\":", p->pid);
    put_text(",\"tag\":", p->tag);
    put_text(",\"cmd\":", p->cmd);
    put_text(",\"cwd\":", p->cwd);
    buf_puts(&d.out, ",\"args\":");
    put_texts(&d.out, p->args);
    put_names(",\"envs\":", p->envs, p->env_count, false);
    buf_puts(&d.out, "}");
  }
  buf_puts(&d.out, "]");
  cloche_free(list);
  return CLOCHE_OK;
}

static enum cloche_code play_terminal(void)
{
  struct cloche_process *p;
  struct cloche_command_result *r;
  const char *keys = arg("type");
  GIVE(cloche_start(step_box(), NULL, WITH(cloche_command, .cols = 80, .rows = 24), &p, NULL, ERR));
  uint32_t pid = cloche_process_pid(p);
  enum cloche_code code = cloche_pty_resize(step_box(), pid, 100, 30, NULL, ERR);
  if (code == CLOCHE_OK)
    code = cloche_pty_input(step_box(), pid, keys, strlen(keys), NULL, ERR);
  if (code == CLOCHE_OK)
    code = cloche_wait(p, &r, WITH(cloche_call, .timeout_ms = 30000), ERR);
  cloche_process_free(p);
  GIVE(code);
  put_bool("{\"found\":", strstr(r->out.data, arg("until")) != NULL);
  buf_puts(&d.out, ",\"ended\":");
  r->out.data = ""; /* what a terminal printed is not in the stock SDK's error */
  if (r->exit_code)
    tell_exit(r);
  else
    buf_puts(&d.out, "null");
  buf_puts(&d.out, "}");
  cloche_free(r);
  return CLOCHE_OK;
}

const struct play command_plays[] = {{"commands.run", play_command},
                                     {"started", play_started},
                                     {"connected", play_connected},
                                     {"commands.connect", play_connected},
                                     {"wait", play_wait},
                                     {"stop", play_stop},
                                     {"commands.kill", play_stop},
                                     {"type", play_type},
                                     {"commands.send_stdin", play_type},
                                     {"end_input", play_end_input},
                                     {"listed", play_listed},
                                     {"terminal", play_terminal},
                                     {0}};
