/* SPDX-License-Identifier: Apache-2.0 */
/* Git, templates, volumes, secrets. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "e2e.h"

static void git_from_init_to_push(void)
{
  struct cloche_git_status *status;
  struct cloche_git_branches *branches;
  struct cloche_text *text;
  OK(cloche_git_init(e2e.box, "/tmp/bare", WITH(cloche_git, .bare = true), NULL, NULL, ERR));
  OK(cloche_git_init(e2e.box, "/tmp/repo", WITH(cloche_git, .branch = "trunk"), NULL, NULL, ERR));
  OK(cloche_git_configure_user(e2e.box, "/tmp/repo", "Ann O'Nym", "ann@example.org", WITH(cloche_git, .scope = "local"),
                               NULL, NULL, ERR));
  OK(cloche_git_get_config(e2e.box, "/tmp/repo", "user.name", WITH(cloche_git, .scope = "local"), &text, NULL, ERR));
  SAME(text->data, "Ann O'Nym");
  cloche_free(text);
  OK(cloche_write(e2e.box, "/tmp/repo/a file", "1\n", 2, NULL, NULL, NULL, ERR));
  OK(cloche_git_status(e2e.box, "/tmp/repo", NULL, &status, NULL, ERR));
  SAME(status->branch, "trunk");
  CHECK(status->file_count == 1 && status->untracked_count == 1 && !status->upstream);
  cloche_free(status);
  OK(cloche_git_add(e2e.box, "/tmp/repo", NULL, NULL, NULL, NULL, ERR));
  OK(cloche_git_commit(e2e.box, "/tmp/repo", "It's \"the\" first", NULL, NULL, NULL, ERR));
  OK(cloche_git_remote_add(e2e.box, "/tmp/repo", "origin", "/tmp/nowhere", NULL, NULL, NULL, ERR));
  OK(cloche_git_remote_add(e2e.box, "/tmp/repo", "origin", "/tmp/bare", WITH(cloche_git, .overwrite = true), NULL, NULL,
                           ERR));
  OK(cloche_git_remote_get(e2e.box, "/tmp/repo", "origin", NULL, &text, NULL, ERR));
  SAME(text->data, "/tmp/bare");
  cloche_free(text);
  OK(cloche_git_remote_get(e2e.box, "/tmp/repo", "other", NULL, &text, NULL, ERR));
  CHECK(!text);
  OK(cloche_git_push(e2e.box, "/tmp/repo", WITH(cloche_git, .remote = "origin", .branch = "trunk"), NULL, NULL, ERR));
  OK(cloche_git_create_branch(e2e.box, "/tmp/repo", "side", NULL, NULL, NULL, ERR));
  OK(cloche_git_branches(e2e.box, "/tmp/repo", NULL, &branches, NULL, ERR));
  SAME(branches->current, "side");
  CHECK(branches->names[0] && branches->names[1] && !branches->names[2]);
  cloche_free(branches);
  OK(cloche_git_checkout(e2e.box, "/tmp/repo", "trunk", NULL, NULL, NULL, ERR));
  OK(cloche_git_delete_branch(e2e.box, "/tmp/repo", "side", WITH(cloche_git, .force = true), NULL, NULL, ERR));
  OK(cloche_write(e2e.box, "/tmp/repo/a file", "2\n", 2, NULL, NULL, NULL, ERR));
  static const char *const files[] = {"a file", NULL};
  OK(cloche_git_add(e2e.box, "/tmp/repo", files, NULL, NULL, NULL, ERR));
  OK(cloche_git_reset(e2e.box, "/tmp/repo", files, NULL, NULL, NULL, ERR));
  OK(cloche_git_restore(e2e.box, "/tmp/repo", files, NULL, NULL, NULL, ERR));
  OK(cloche_git_status(e2e.box, "/tmp/repo", NULL, &status, NULL, ERR));
  CHECK(status->file_count == 0);
  SAME(status->upstream, "origin/trunk");
  cloche_free(status);
  OK(cloche_git_clone(e2e.box, "/tmp/bare", "/tmp/cloned", WITH(cloche_git, .branch = "trunk", .depth = 1), NULL, NULL,
                      ERR));
  OK(cloche_git_pull(e2e.box, "/tmp/cloned", NULL, NULL, NULL, ERR));
  FAILS(CLOCHE_ECOMMAND, cloche_git_checkout(e2e.box, "/tmp/repo", "nothing", NULL, NULL, NULL, ERR));
  CHECK(strstr(e2e.error.message, "nothing"));
  FAILS(CLOCHE_EINVAL, cloche_git_clone(e2e.box, "x", NULL, WITH(cloche_git, .git_user = "u"), NULL, NULL, ERR));
}

static int on_log(const struct cloche_build_entry *entry, void *user)
{
  if (strstr(entry->message, "marked by the build"))
    ++*(int *)user;
  return 0;
}

static void a_template_is_built_tagged_and_deleted(void)
{
  char dir[] = "/tmp/cloche-c-e2e-XXXXXX", path[128], name[64];
  CHECK(mkdtemp(dir));
  snprintf(path, sizeof path, "%s/greeting.txt", dir);
  FILE *f = fopen(path, "w");
  fputs("hello from the context", f);
  fclose(f);
  snprintf(name, sizeof name, "t-%s", e2e.unique);
  struct cloche_recipe *recipe = cloche_recipe_new();
  CHECK(recipe);
  cloche_recipe_from_template(recipe, "base");
  cloche_recipe_context(recipe, dir);
  cloche_recipe_env(recipe, "COLOUR", "blue");
  cloche_recipe_copy(recipe, "greeting.txt", "/srv/", NULL, "0640");
  cloche_recipe_run(recipe, "echo marked by the build; cat /srv/greeting.txt", NULL);
  cloche_recipe_workdir(recipe, "/srv");
  int marks = 0;
  struct cloche_build_info *info;
  enum cloche_code code = cloche_build(e2e.client, recipe, name, WITH(cloche_build, .on_log = on_log, .user = &marks),
                                       &info, WITHIN(120000), ERR);
  unlink(path);
  rmdir(dir);
  OK(code);
  SAME(info->status, "ready");
  CHECK(marks >= 1);
  static const char *const tags[] = {"v1", NULL};
  bool exists;
  struct cloche_tag_list *list;
  OK(cloche_tags_assign(e2e.client, name, tags, NULL, ERR));
  OK(cloche_tags(e2e.client, name, &list, NULL, ERR));
  CHECK(list->count == 2);
  cloche_free(list);
  OK(cloche_tags_remove(e2e.client, name, tags, NULL, ERR));
  OK(cloche_template_exists(e2e.client, name, &exists, NULL, ERR));
  CHECK(exists);
  struct cloche_template_list *templates;
  OK(cloche_templates(e2e.client, &templates, NULL, ERR));
  CHECK(templates->count >= 1);
  cloche_free(templates);
  struct cloche_box *box;
  struct cloche_command_result *r;
  OK(cloche_create(e2e.client, WITH(cloche_create, .template_id = name), &box, NULL, ERR));
  OK(cloche_command(box, "pwd; echo $COLOUR; stat -c %a greeting.txt; cat greeting.txt", NULL, &r, NULL, ERR));
  SAME(r->out.data, "/srv\nblue\n640\nhello from the context");
  cloche_free(r);
  OK(cloche_kill(e2e.client, cloche_box_id(box), NULL, NULL, ERR));
  cloche_box_free(box);
  struct cloche_build_info *again;
  OK(cloche_build_status(e2e.client, info->template_id, info->build_id, 0, &again, NULL, ERR));
  CHECK(again->log_count > 0);
  cloche_free(again);
  cloche_free(info);
  cloche_recipe_run(recipe, "exit 9", NULL);
  cloche_recipe_context(recipe, "/nowhere");
  FAILS(CLOCHE_EINVAL, cloche_build(e2e.client, recipe, name, NULL, NULL, NULL, ERR));
  cloche_recipe_free(recipe);
  recipe = cloche_recipe_new();
  OK(cloche_recipe_dockerfile(recipe, "FROM x\nRUN exit 9\n", ERR));
  cloche_recipe_from_template(recipe, "base");
  FAILS(CLOCHE_EBUILD, cloche_build(e2e.client, recipe, name, NULL, NULL, WITHIN(120000), ERR));
  CHECK(strstr(e2e.error.message, "9"));
  cloche_recipe_free(recipe);
  OK(cloche_template_delete(e2e.client, name, &exists, NULL, ERR));
  CHECK(exists);
  OK(cloche_template_delete(e2e.client, name, &exists, NULL, ERR));
  CHECK(!exists);
}

static void volumes_keep_files_outside_of_sandboxes(void)
{
  struct cloche_volume *volume;
  struct cloche_volume_list *list;
  struct cloche_volume_entry *entry;
  struct cloche_volume_entry_list *entries;
  struct cloche_text *text;
  char name[64];
  bool existed;
  snprintf(name, sizeof name, "v-%s", e2e.unique);
  OK(cloche_volume_create(e2e.client, name, &volume, NULL, ERR));
  SAME(volume->name, name);
  OK(cloche_volumes(e2e.client, &list, NULL, ERR));
  CHECK(list->count >= 1 && !list->items[0].token);
  FAILS(CLOCHE_EINVAL, cloche_volume_stat(e2e.client, &list->items[0], "/", &entry, NULL, ERR));
  cloche_free(list);
  OK(cloche_volume_make_dir(e2e.client, volume, "/a/b", WITH(cloche_volume_write, .force = true), &entry, NULL, ERR));
  SAME(entry->type, "directory");
  cloche_free(entry);
  OK(cloche_volume_write(e2e.client, volume, "/a/b/file", "kept", 4, WITH(cloche_volume_write, .mode = 0600), &entry,
                         NULL, ERR));
  CHECK(entry->size == 4 && entry->mode == 0600);
  cloche_free(entry);
  FAILS(CLOCHE_EEXISTS, cloche_volume_write(e2e.client, volume, "/a/b/file", "x", 1, NULL, NULL, NULL, ERR));
  OK(cloche_volume_read(e2e.client, volume, "/a/b/file", &text, NULL, ERR));
  SAME(text->data, "kept");
  cloche_free(text);
  OK(cloche_volume_chmod(e2e.client, volume, "/a/b/file", 1000, -1, 0644, &entry, NULL, ERR));
  CHECK(entry->uid == 1000 && entry->mode == 0644);
  cloche_free(entry);
  OK(cloche_volume_list_dir(e2e.client, volume, "/", 3, &entries, NULL, ERR));
  CHECK(entries->count == 3);
  cloche_free(entries);
  const struct cloche_volume_mount mounts[] = {{name, "/mnt/kept"}};
  struct cloche_box *box;
  struct cloche_command_result *r;
  OK(cloche_create(e2e.client, WITH(cloche_create, .template_id = "base", .mounts = mounts, .mount_count = 1), &box,
                   NULL, ERR));
  OK(cloche_command(box, "cat /mnt/kept/a/b/file", NULL, &r, NULL, ERR));
  SAME(r->out.data, "kept");
  cloche_free(r);
  OK(cloche_kill(e2e.client, cloche_box_id(box), NULL, NULL, ERR));
  cloche_box_free(box);
  OK(cloche_volume_remove(e2e.client, volume, "/a", &existed, NULL, ERR));
  CHECK(existed);
  OK(cloche_volume_remove(e2e.client, volume, "/a", &existed, NULL, ERR));
  CHECK(!existed);
  OK(cloche_volume_delete(e2e.client, volume->id, &existed, NULL, ERR));
  CHECK(existed);
  FAILS(CLOCHE_ENOTFOUND, cloche_volume_get(e2e.client, volume->id, &(struct cloche_volume *){NULL}, NULL, ERR));
  cloche_free(volume);
}

static void secrets_have_versions_and_no_values(void)
{
  struct cloche_secret *secret;
  struct cloche_secret_list *list;
  const struct cloche_pair metadata[] = {{"for", "tests"}};
  char name[64];
  bool existed;
  snprintf(name, sizeof name, "s-%s", e2e.unique);
  OK(cloche_secret_create(e2e.client, name, "one", metadata, 1, &secret, NULL, ERR));
  CHECK(secret->version == 1 && secret->metadata_count == 1);
  cloche_free(secret);
  FAILS(CLOCHE_EEXISTS, cloche_secret_create(e2e.client, name, "one", NULL, 0, &secret, NULL, ERR));
  OK(cloche_secret_update(e2e.client, name, "two", NULL, 0, &secret, NULL, ERR));
  CHECK(secret->version == 2 && secret->metadata_count == 1);
  cloche_free(secret);
  OK(cloche_secrets(e2e.client, 100, NULL, &list, NULL, ERR));
  CHECK(list->count >= 1);
  cloche_free(list);
  OK(cloche_secret_get(e2e.client, name, &secret, NULL, ERR));
  SAME(secret->name, name);
  cloche_free(secret);
  OK(cloche_secret_delete(e2e.client, name, &existed, NULL, ERR));
  CHECK(existed);
  FAILS(CLOCHE_ENOTFOUND, cloche_secret_get(e2e.client, name, &secret, NULL, ERR));
}

static void what_has_no_function_is_requested(void)
{
  struct cloche_text *answer;
  OK(cloche_request(e2e.client, "POST", "/api-keys", WITH(cloche_request, .body = "{\"name\":\"by hand\"}"), &answer,
                    NULL, ERR));
  const char *at = strstr(answer->data, "\"id\":\"");
  CHECK(at && strlen(at) > 43);
  char path[64];
  snprintf(path, sizeof path, "/api-keys/%.36s", at + 6);
  cloche_free(answer);
  OK(cloche_request(e2e.client, "DELETE", path, NULL, &answer, NULL, ERR));
  CHECK(answer->len == 0);
  cloche_free(answer);
  FAILS(CLOCHE_ENOTFOUND, cloche_request(e2e.client, "DELETE", path, NULL, &answer, NULL, ERR));
  FAILS(CLOCHE_EINVAL, cloche_request(e2e.client, "BREW", "/templates", NULL, &answer, NULL, ERR));
  FAILS(CLOCHE_EINVAL, cloche_request(e2e.client, "GET", "/a b", NULL, &answer, NULL, ERR));
  const struct cloche_pair two[] = {{"X-Admin-Token", "a\r\nX-Other: b"}};
  FAILS(CLOCHE_EINVAL, cloche_request(e2e.client, "GET", "/nodes",
                                      WITH(cloche_request, .headers = two, .header_count = 1), &answer, NULL, ERR));
}

const struct e2e_case keep_cases[] = {
    {"git, from init to push", git_from_init_to_push},
    {"a template is built, tagged and deleted", a_template_is_built_tagged_and_deleted},
    {"volumes keep files outside of sandboxes", volumes_keep_files_outside_of_sandboxes},
    {"secrets have versions and no values", secrets_have_versions_and_no_values},
    {"what has no function is requested", what_has_no_function_is_requested},
    {0}};
