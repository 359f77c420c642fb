/* SPDX-License-Identifier: Apache-2.0 */
/* Steps about what outlives sandboxes, and git. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "driver.h"

#define ERR       (&d.error)
#define WITH(...) CLOCHE_WITH(__VA_ARGS__)

/* ---- metrics and templates ---- */

static enum cloche_code play_measured(void)
{
  struct cloche_metric_list *list = NULL;
  for (int i = 0; i < 200; i++) { /* 20 s */
    GIVE(cloche_metrics(d.client, cloche_box_id(step_box()), 0, 0, &list, NULL, ERR));
    if (list->count)
      break;
    cloche_free(list);
    list = NULL;
    poll(NULL, 0, 100); /* between two looks */
  }
  buf_puts(&d.out, "[");
  if (list) {
    const struct cloche_metric *m = &list->items[0];
    put_int("{\"is\":\"SandboxMetrics\",\"cpu_count\":", m->cpu_count);
    buf_printf(&d.out, ",\"cpu_used_pct\":%.6f", m->cpu_used_pct);
    put_int(",\"disk_total\":", m->disk_total);
    put_int(",\"disk_used\":", m->disk_used);
    put_int(",\"mem_total\":", m->mem_total);
    put_int(",\"mem_used\":", m->mem_used);
    put_int(",\"mem_cache\":", m->mem_cache);
    put_time(",\"timestamp\":", m->timestamp);
    buf_puts(&d.out, "}");
  }
  buf_puts(&d.out, "]");
  cloche_free(list);
  return CLOCHE_OK;
}

static int on_log(const struct cloche_build_entry *entry, void *user)
{
  static const char *const levels[] = {"error", "info", "warn"};
  for (int i = 0; i < 3; i++)
    if (entry->level && strcmp(entry->level, levels[i]) == 0)
      ((bool *)user)[i] = true;
  return 0;
}

static enum cloche_code play_build(void)
{
  bool seen[3] = {0};
  struct cloche_build_info *info;
  struct cloche_recipe *r = cloche_recipe_new();
  const char *name = arg("name"), *const *tags = text_list(json_get(d.step, "tags"));
  cloche_recipe_from_template(r, arg("base"));
  cloche_recipe_run(r, arg("run"), NULL);
  enum cloche_code code =
      cloche_build(d.client, r, name,
                   WITH(cloche_build, .tags = tags, .cpu_count = 1, .memory_mb = 512, .on_log = on_log, .user = seen),
                   &info, WITH(cloche_call, .timeout_ms = 60000), ERR);
  cloche_recipe_free(r);
  GIVE(code);
  put_text("{\"info\":{\"is\":\"BuildInfo\",\"template_id\":", info->template_id);
  put_text(",\"build_id\":", info->build_id);
  put_text(",\"name\":", name);
  put_text(",\"alias\":", name);
  buf_puts(&d.out, ",\"tags\":");
  put_texts(&d.out, tags);
  const char *between = "";
  static const char *const levels[] = {"\"error\"", "\"info\"", "\"warn\""};
  buf_puts(&d.out, "},\"log\":[");
  for (int i = 0; i < 3; i++)
    if (seen[i])
      buf_printf(&d.out, "%s%s", between, levels[i]), between = ",";
  buf_puts(&d.out, "]}");
  cloche_free(info);
  return CLOCHE_OK;
}

static enum cloche_code play_recipe(void)
{
  struct cloche_recipe *r = cloche_recipe_new();
  cloche_recipe_from_template(r, arg("base"));
  cloche_recipe_run(r, arg("run"), NULL);
  cloche_recipe_workdir(r, "/tmp");
  cloche_recipe_user(r, "user");
  cloche_recipe_start(r, "sleep 1", "true");
  put_recipe(&d.out, r, false);
  cloche_recipe_free(r);
  return CLOCHE_OK;
}

static enum cloche_code play_template_exists(void)
{
  bool exists;
  GIVE(cloche_template_exists(d.client, arg("name"), &exists, NULL, ERR));
  put_bool("", exists);
  return CLOCHE_OK;
}

static enum cloche_code play_assign(void)
{
  const char *target = arg("target_name"), *const *tags = text_list(json_get(d.step, "tags"));
  char name[256];
  struct cloche_tag_list *list;
  GIVE(cloche_tags_assign(d.client, target, tags, NULL, ERR));
  snprintf(name, sizeof name, "%.*s", (int)strcspn(target, ":"), target);
  GIVE(cloche_tags(d.client, name, &list, NULL, ERR));
  for (size_t i = 0; i < list->count; i++)
    if (strcmp(list->items[i].tag, tags[0]) == 0)
      put_text("{\"is\":\"TemplateTagInfo\",\"build_id\":", list->items[i].build_id);
  buf_puts(&d.out, ",\"tags\":");
  put_texts(&d.out, tags);
  buf_puts(&d.out, "}");
  cloche_free(list);
  return CLOCHE_OK;
}

static enum cloche_code play_tags(void)
{
  struct cloche_tag_list *list;
  GIVE(cloche_tags(d.client, arg("template_id"), &list, NULL, ERR));
  buf_puts(&d.out, "[");
  for (size_t i = 0; i < list->count; i++) {
    put_text(i ? ",{\"is\":\"TemplateTag\",\"tag\":" : "{\"is\":\"TemplateTag\",\"tag\":", list->items[i].tag);
    put_text(",\"build_id\":", list->items[i].build_id);
    put_time(",\"created_at\":", list->items[i].created_at);
    buf_puts(&d.out, "}");
  }
  buf_puts(&d.out, "]");
  cloche_free(list);
  return CLOCHE_OK;
}

static enum cloche_code play_untag(void)
{
  return cloche_tags_remove(d.client, arg("name"), text_list(json_get(d.step, "tags")), NULL, ERR);
}

/* ---- volumes ---- */

static const struct cloche_volume *volume(void)
{
  return step_kept() ? step_kept()->volume : NULL;
}

static enum cloche_code play_volume(void)
{
  struct cloche_volume *v;
  GIVE(cloche_volume_create(d.client, arg("name"), &v, NULL, ERR));
  keep(json_text(d.step, "as"), (struct kept){.volume = v});
  buf_puts(&d.out, "{\"is\":\"Volume\"}");
  return CLOCHE_OK;
}

static enum cloche_code play_volume_info(void)
{
  struct cloche_volume *v;
  GIVE(cloche_volume_get(d.client, arg("volume_id"), &v, NULL, ERR));
  put_text("{\"is\":\"VolumeAndToken\",\"volume_id\":", v->id);
  put_text(",\"name\":", v->name);
  put_text(",\"token\":", v->token);
  put_text(",\"domain\":", v->domain);
  buf_puts(&d.out, "}");
  cloche_free(v);
  return CLOCHE_OK;
}

static enum cloche_code play_volume_destroy(void)
{
  bool existed;
  GIVE(cloche_volume_delete(d.client, arg("volume_id"), &existed, NULL, ERR));
  put_bool("", existed);
  return CLOCHE_OK;
}

static void tell_stat(const struct cloche_volume_entry *e)
{
  put_text("{\"is\":\"VolumeEntryStat\",\"name\":", e->name);
  put_text(",\"type\":", e->type);
  put_text(",\"path\":", e->path);
  put_int(",\"size\":", e->size);
  put_int(",\"mode\":", e->mode);
  put_int(",\"uid\":", e->uid);
  put_int(",\"gid\":", e->gid);
  put_time(",\"atime\":", e->atime);
  put_time(",\"mtime\":", e->mtime);
  put_time(",\"ctime\":", e->ctime);
  put_text(",\"target\":", e->target);
  buf_puts(&d.out, "}");
}

static enum cloche_code stat_told(enum cloche_code code, struct cloche_volume_entry **given)
{
  struct cloche_volume_entry *entry = *given; /* by its address: the call is made before */
  if (code != CLOCHE_OK)
    return code;
  tell_stat(entry);
  cloche_free(entry);
  return CLOCHE_OK;
}

static enum cloche_code play_volume_dir(void)
{
  struct cloche_volume_entry *e = NULL;
  return stat_told(cloche_volume_make_dir(d.client, volume(), arg("path"),
                                          WITH(cloche_volume_write, .mode = (int)arg_number("mode", 0)), &e, NULL, ERR),
                   &e);
}

static enum cloche_code play_volume_write(void)
{
  struct cloche_volume_entry *e = NULL;
  const char *data = arg("data");
  return stat_told(cloche_volume_write(d.client, volume(), arg("path"), data, strlen(data), NULL, &e, NULL, ERR), &e);
}

static enum cloche_code play_volume_chmod(void)
{
  struct cloche_volume_entry *e = NULL;
  return stat_told(
      cloche_volume_chmod(d.client, volume(), arg("path"), -1, -1, (int)arg_number("mode", -1), &e, NULL, ERR), &e);
}

static enum cloche_code play_volume_read(void)
{
  struct cloche_text *text;
  GIVE(cloche_volume_read(d.client, volume(), arg("path"), &text, NULL, ERR));
  tell_content(text);
  cloche_free(text);
  return CLOCHE_OK;
}

static enum cloche_code play_volume_list(void)
{
  struct cloche_volume_entry_list *list;
  GIVE(cloche_volume_list_dir(d.client, volume(), arg("path"), (int)arg_number("depth", 1), &list, NULL, ERR));
  buf_puts(&d.out, "[");
  for (size_t i = 0; i < list->count; i++)
    buf_puts(&d.out, i ? "," : ""), tell_stat(&list->items[i]);
  buf_puts(&d.out, "]");
  cloche_free(list);
  return CLOCHE_OK;
}

static enum cloche_code play_volume_exists(void)
{
  struct cloche_volume_entry *e = NULL;
  enum cloche_code code = cloche_volume_stat(d.client, volume(), arg("path"), &e, NULL, ERR);
  cloche_free(e);
  if (code != CLOCHE_OK && code != CLOCHE_ENOTFOUND)
    return code;
  put_bool("", code == CLOCHE_OK);
  return CLOCHE_OK;
}

static enum cloche_code play_volume_remove(void)
{
  bool existed;
  GIVE(cloche_volume_remove(d.client, volume(), arg("path"), &existed, NULL, ERR));
  return existed ? CLOCHE_OK : error_set(ERR, CLOCHE_ENOTFOUND, "no such path");
}

/* ---- secrets ---- */

static enum cloche_code secret_told(enum cloche_code code, struct cloche_secret **given)
{
  struct cloche_secret *s = *given; /* by its address: the call is made before */
  if (code != CLOCHE_OK)
    return code;
  put_text("{\"is\":\"SecretInfo\",\"secret_id\":", s->id);
  put_text(",\"name\":", s->name);
  put_int(",\"version\":", s->version);
  put_names(",\"metadata\":", s->metadata, s->metadata_count, false);
  put_time(",\"created_at\":", s->created_at);
  put_time(",\"updated_at\":", s->updated_at);
  buf_puts(&d.out, "}");
  keep(json_text(d.step, "as"), (struct kept){.text = s->id});
  cloche_free(s);
  return CLOCHE_OK;
}

static enum cloche_code play_secret(void)
{
  struct cloche_secret *s = NULL;
  size_t n;
  const struct cloche_pair *metadata = arg_pairs("metadata", &n);
  return secret_told(cloche_secret_create(d.client, arg("name"), arg("value"), metadata, n, &s, NULL, ERR), &s);
}

static enum cloche_code play_secret_update(void)
{
  struct cloche_secret *s = NULL;
  return secret_told(cloche_secret_update(d.client, arg("secret"), arg("value"), NULL, 0, &s, NULL, ERR), &s);
}

static enum cloche_code play_secret_info(void)
{
  struct cloche_secret *s = NULL;
  return secret_told(cloche_secret_get(d.client, arg("secret"), &s, NULL, ERR), &s);
}

static enum cloche_code play_secret_exists(void)
{
  struct cloche_secret *s = NULL;
  enum cloche_code code = cloche_secret_get(d.client, arg("secret"), &s, NULL, ERR);
  cloche_free(s);
  if (code != CLOCHE_OK && code != CLOCHE_ENOTFOUND)
    return code;
  put_bool("", code == CLOCHE_OK);
  return CLOCHE_OK;
}

static enum cloche_code play_secret_destroy(void)
{
  bool existed;
  GIVE(cloche_secret_delete(d.client, arg("secret"), &existed, NULL, ERR));
  put_bool("", existed);
  return CLOCHE_OK;
}

/* ---- git ---- */

static enum cloche_code git_told(enum cloche_code code, struct cloche_command_result **given)
{
  struct cloche_command_result *r = *given; /* by its address: the call is made before */
  if (code != CLOCHE_OK)
    return code;
  code = tell_command(r);
  cloche_free(r);
  return code;
}

#define GIT(name, call)                                                                                                \
  static enum cloche_code play_git_##name(void)                                                                        \
  {                                                                                                                    \
    struct cloche_command_result *r = NULL;                                                                            \
    return git_told(call, &r);                                                                                         \
  }

GIT(init, cloche_git_init(step_box(), arg("path"), WITH(cloche_git, .branch = arg("initial_branch")), &r, NULL, ERR))
GIT(user, cloche_git_configure_user(step_box(), NULL, arg("name"), arg("email"), NULL, &r, NULL, ERR))
GIT(add, cloche_git_add(step_box(), arg("path"), NULL, NULL, &r, NULL, ERR))
GIT(commit, cloche_git_commit(step_box(), arg("path"), arg("message"), NULL, &r, NULL, ERR))
GIT(branch, cloche_git_create_branch(step_box(), arg("path"), arg("branch"), NULL, &r, NULL, ERR))
GIT(checkout, cloche_git_checkout(step_box(), arg("path"), arg("branch"), NULL, &r, NULL, ERR))
GIT(delete, cloche_git_delete_branch(step_box(), arg("path"), arg("branch"), NULL, &r, NULL, ERR))
GIT(remote, cloche_git_remote_add(step_box(), arg("path"), arg("name"), arg("url"), NULL, &r, NULL, ERR))
GIT(push, cloche_git_push(step_box(), arg("path"), NULL, &r, NULL, ERR))

static enum cloche_code line_told(enum cloche_code code, struct cloche_text **given)
{
  struct cloche_text *text = *given; /* by its address: the call is made before */
  if (code == CLOCHE_OK)
    put_text("", text ? text->data : NULL);
  cloche_free(text);
  return code;
}

static enum cloche_code play_git_remote_get(void)
{
  struct cloche_text *text = NULL;
  return line_told(cloche_git_remote_get(step_box(), arg("path"), arg("name"), NULL, &text, NULL, ERR), &text);
}

static enum cloche_code play_git_config(void)
{
  struct cloche_text *text = NULL;
  return line_told(cloche_git_get_config(step_box(), NULL, arg("key"), NULL, &text, NULL, ERR), &text);
}

static enum cloche_code play_git_branches(void)
{
  struct cloche_git_branches *b;
  GIVE(cloche_git_branches(step_box(), arg("path"), NULL, &b, NULL, ERR));
  put_text("{\"is\":\"GitBranches\",\"current_branch\":", b->current);
  buf_puts(&d.out, ",\"branches\":");
  put_texts(&d.out, b->names);
  buf_puts(&d.out, "}");
  cloche_free(b);
  return CLOCHE_OK;
}

static enum cloche_code play_git_status(void)
{
  struct cloche_git_status *s;
  GIVE(cloche_git_status(step_box(), arg("path"), NULL, &s, NULL, ERR));
  put_text("{\"is\":\"GitStatus\",\"current_branch\":", s->branch);
  put_text(",\"upstream\":", s->upstream);
  put_int(",\"ahead\":", s->ahead);
  put_int(",\"behind\":", s->behind);
  put_bool(",\"detached\":", s->detached);
  put_int(",\"total_count\":", (int64_t)s->file_count);
  put_int(",\"staged_count\":", (int64_t)s->staged_count);
  put_int(",\"unstaged_count\":", (int64_t)s->unstaged_count);
  put_int(",\"untracked_count\":", (int64_t)s->untracked_count);
  put_int(",\"conflict_count\":", (int64_t)s->conflict_count);
  put_bool(",\"is_clean\":", s->file_count == 0);
  put_bool(",\"has_changes\":", s->file_count > 0);
  put_bool(",\"has_staged\":", s->staged_count > 0);
  put_bool(",\"has_untracked\":", s->untracked_count > 0);
  put_bool(",\"has_conflicts\":", s->conflict_count > 0);
  buf_puts(&d.out, ",\"file_status\":[");
  for (size_t i = 0; i < s->file_count; i++) {
    const struct cloche_git_file *f = &s->files[i];
    put_text(i ? ",{\"is\":\"GitFileStatus\",\"name\":" : "{\"is\":\"GitFileStatus\",\"name\":", f->name);
    put_text(",\"status\":", f->status);
    put_text(",\"index_status\":", (char[]){f->index_status, 0});
    put_text(",\"working_tree_status\":", (char[]){f->worktree_status, 0});
    put_bool(",\"staged\":", f->staged);
    put_text(",\"renamed_from\":", f->renamed_from);
    buf_puts(&d.out, "}");
  }
  buf_puts(&d.out, "]}");
  cloche_free(s);
  return CLOCHE_OK;
}

const struct play keep_plays[] = {{"measured", play_measured},
                                  {"build", play_build},
                                  {"recipe", play_recipe},
                                  {"Template.exists", play_template_exists},
                                  {"Template.assign_tags", play_assign},
                                  {"Template.get_tags", play_tags},
                                  {"Template.remove_tags", play_untag},
                                  {"Volume.create", play_volume},
                                  {"Volume.get_info", play_volume_info},
                                  {"Volume.destroy", play_volume_destroy},
                                  {"make_dir", play_volume_dir},
                                  {"write_file", play_volume_write},
                                  {"read_file", play_volume_read},
                                  {"list", play_volume_list},
                                  {"exists", play_volume_exists},
                                  {"update_metadata", play_volume_chmod},
                                  {"remove", play_volume_remove},
                                  {"Secret.create", play_secret},
                                  {"Secret.update", play_secret_update},
                                  {"Secret.get_info", play_secret_info},
                                  {"Secret.exists", play_secret_exists},
                                  {"Secret.destroy", play_secret_destroy},
                                  {"git.init", play_git_init},
                                  {"git.configure_user", play_git_user},
                                  {"git.add", play_git_add},
                                  {"git.commit", play_git_commit},
                                  {"git.create_branch", play_git_branch},
                                  {"git.checkout_branch", play_git_checkout},
                                  {"git.delete_branch", play_git_delete},
                                  {"git.remote_add", play_git_remote},
                                  {"git.remote_get", play_git_remote_get},
                                  {"git.get_config", play_git_config},
                                  {"git.branches", play_git_branches},
                                  {"git.status", play_git_status},
                                  {"git.push", play_git_push},
                                  {0}};
