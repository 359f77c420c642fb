/* SPDX-License-Identifier: Apache-2.0 */
/* api_routes.c - the table of routes, and which of them a request means. A new route is a row here. */
#include "gate/api/api.h"

static const struct route_entry routes[] = {
    {"GET", "health", health, NO_AUTH, "report health"},
    {"GET", "readyz", health, NO_AUTH, "report health"},
    {"GET", "livez", alive, NO_AUTH, "report health"},
    {"GET", "metrics", metrics, ADMIN, "read metrics"},
    {"GET", "nodes", node_list, ADMIN, "list nodes"},
    {"GET", "nodes/{id}", node_get, ADMIN, "read the node"},
    {"POST", "nodes/{id}", node_change, ADMIN | BODY_REQUIRED, "change the node"},
    {"GET", "admin/sandboxes/running-counts", admin_counts, ADMIN, "count sandboxes"},
    {"GET", "admin/doctor", admin_doctor, ADMIN, "examine the machine"},
    {"GET", "admin/teams", admin_team_list, ADMIN, "list teams"},
    {"POST", "admin/teams", admin_team_create, ADMIN | BODY_REQUIRED, "create the team"},
    {"GET", "admin/teams/{id}", admin_team_get, ADMIN, "read the team"},
    {"PATCH", "admin/teams/{id}", admin_team_change, ADMIN | BODY_REQUIRED, "change the team"},
    {"POST", "admin/teams/{id}/sandboxes/kill", admin_kill, ADMIN | BODY_IGNORED, "kill the sandboxes of the team"},
    {"POST", "admin/teams/{id}/builds/cancel", build_cancel, ADMIN | BODY_IGNORED, "cancel builds"},
    {"POST", "admin/teams/{id}/api-keys", admin_key_create, ADMIN | BODY_REQUIRED, "create API key"},
    {"DELETE", "admin/teams/{id}/api-keys/{second}", admin_key_delete, ADMIN | BODY_IGNORED, "delete API key"},
    {"POST", "sandboxes", sandbox_create_v1, BODY_REQUIRED, "place sandbox"},
    {"POST", "v2/sandboxes", sandbox_create_v2, BODY_REQUIRED, "place sandbox"},
    {"GET", "sandboxes", sandbox_list_v1, 0, "list sandboxes"},
    {"GET", "v2/sandboxes", sandbox_list_v2, 0, "list sandboxes"},
    {"GET", "sandboxes/metrics", sandbox_metrics_many, 0,
     "read sandbox metrics"}, /* before {id}: the first match wins */
    {"GET", "sandboxes/{id}", sandbox_get, 0, "get sandbox"},
    {"DELETE", "sandboxes/{id}", sandbox_kill, BODY_OPTIONAL, "kill sandbox"},
    {"POST", "sandboxes/{id}/timeout", sandbox_timeout, BODY_REQUIRED, "set the timeout"},
    {"POST", "sandboxes/{id}/refreshes", sandbox_refresh, BODY_OPTIONAL, "extend the timeout"},
    {"POST", "sandboxes/{id}/connect", sandbox_connect_v1, BODY_REQUIRED, "connect to sandbox"},
    {"POST", "v2/sandboxes/{id}/connect", sandbox_connect_v2, BODY_OPTIONAL, "connect to sandbox"},
    {"POST", "sandboxes/{id}/pause", sandbox_pause, BODY_OPTIONAL, "pause sandbox"},
    {"POST", "sandboxes/{id}/resume", sandbox_resume, BODY_OPTIONAL, "resume sandbox"},
    {"PUT", "sandboxes/{id}/network", sandbox_network, BODY_REQUIRED, "update the network settings"},
    {"GET", "sandboxes/{id}/metrics", sandbox_metrics, 0, "read sandbox metrics"},
    {"GET", "sandboxes/{id}/logs", sandbox_logs_v1, 0, "read sandbox logs"},
    {"GET", "v2/sandboxes/{id}/logs", sandbox_logs_v2, 0, "read sandbox logs"},
    {"GET", "sandboxes/{id}/network/log", sandbox_network_log, 0, "read the network log of sandboxes"},
    {"POST", "sandboxes/{id}/fork", sandbox_fork, BODY_OPTIONAL, "fork sandbox"},
    {"POST", "sandboxes/{id}/snapshots", snapshot_create, BODY_OPTIONAL, "create snapshot"},
    {"GET", "snapshots", snapshot_list, 0, "list snapshots"},
    {"GET", "templates", template_list, ACCESS_TOKEN, "list templates"},
    {"GET", "v2/templates", template_list_v2, ACCESS_TOKEN, "list templates"},
    {"GET", "default-templates", template_list_default, ACCESS_TOKEN, "list the default templates"},
    {"GET", "templates/aliases/{id}", template_alias, ACCESS_TOKEN, "look up the alias"},
    {"POST", "templates/tags", template_tag, BODY_REQUIRED, "assign tags"},
    {"DELETE", "templates/tags", template_untag, BODY_REQUIRED, "remove tags"},
    {"GET", "templates/{id}/tags", template_tags, ACCESS_TOKEN, "list tags"},
    {"GET", "templates/{id}/tags/count", tag_count, ACCESS_TOKEN, "count tags"},
    {"GET", "templates/{id}/tags/exists", tag_exists, ACCESS_TOKEN, "look up the tag"},
    {"GET", "templates/{id}/tags/groups", tag_groups, ACCESS_TOKEN, "list tag assignments"},
    {"GET", "templates/{id}/tags/{second}/assignments", tag_assignments, ACCESS_TOKEN, "list tag assignments"},
    {"GET", "templates/{id}", template_get, ACCESS_TOKEN, "get template"},
    {"PATCH", "templates/{id}", template_update, BODY_OPTIONAL | ACCESS_TOKEN, "update template"},
    {"PATCH", "v2/templates/{id}", template_update_v2, BODY_OPTIONAL | ACCESS_TOKEN, "update template"},
    {"DELETE", "templates/{id}", template_delete, BODY_IGNORED | ACCESS_TOKEN, "delete template"},
    {"POST", "v3/templates", build_request, BODY_REQUIRED, "request a build"},
    {"POST", "v2/templates", build_request_v2, BODY_REQUIRED, "request a build"},
    {"POST", "templates", build_request_dockerfile, BODY_REQUIRED | ACCESS_TOKEN, "request a build"},
    {"POST", "templates/{id}", build_again_dockerfile, BODY_REQUIRED | ACCESS_TOKEN, "request a build"},
    {"GET", "templates/{id}/files/{second}", upload_link, 0, "prepare the upload"},
    {"PUT", "uploads/{id}/{second}", upload_put, NO_AUTH | BODY_STREAM, "store the upload"},
    {"POST", "templates/{id}/builds/{second}", build_start_requested, BODY_IGNORED | ACCESS_TOKEN, "start the build"},
    {"POST", "v2/templates/{id}/builds/{second}", build_start, BODY_REQUIRED, "start the build"},
    {"GET", "templates/{id}/builds/{second}/status", build_status, ACCESS_TOKEN, "read the build status"},
    {"GET", "templates/{id}/builds/{second}/logs", build_logs, ACCESS_TOKEN, "read the build log"},
    {"GET", "templates/{id}/builds/{second}/diff", build_compare, 0, "compare the builds"},
    {"GET", "volumes", volume_list, 0, "list volumes"},
    {"POST", "volumes", volume_create, BODY_REQUIRED, "create the volume"},
    {"GET", "volumes/{id}", volume_get, 0, "read the volume"},
    {"DELETE", "volumes/{id}", volume_delete, BODY_IGNORED, "delete the volume"},
    {"GET", ".well-known/jwks.json", identity_keys, NO_AUTH, "read the keys of identity tokens"},
    {"GET", ".well-known/openid-configuration", identity_keys, NO_AUTH, "read the keys of identity tokens"},
    {"GET", "volumecontent/{id}/path", content_stat, NO_AUTH | TEXT_CODE, "look at the path"},
    {"PATCH", "volumecontent/{id}/path", content_change, NO_AUTH | BODY_STREAM | TEXT_CODE, "change the path"},
    {"DELETE", "volumecontent/{id}/path", content_remove, NO_AUTH | BODY_IGNORED | TEXT_CODE, "delete the path"},
    {"GET", "volumecontent/{id}/dir", content_list, NO_AUTH | TEXT_CODE, "list the directory"},
    {"POST", "volumecontent/{id}/dir", content_mkdir, NO_AUTH | BODY_IGNORED | TEXT_CODE, "make the directory"},
    {"GET", "volumecontent/{id}/file", content_read, NO_AUTH | TEXT_CODE, "read the file"},
    {"PUT", "volumecontent/{id}/file", content_write, NO_AUTH | BODY_STREAM | TEXT_CODE, "write the file"},
    {"GET", "secrets", team_secret_list, NO_STORE, "list secrets"},
    {"POST", "secrets", team_secret_create, BODY_REQUIRED | NO_STORE, "create the secret"},
    {"GET", "secrets/{id}", team_secret_get, NO_STORE, "read the secret"},
    {"POST", "secrets/{id}", team_secret_update, BODY_REQUIRED | NO_STORE, "change the secret"},
    {"DELETE", "secrets/{id}", team_secret_delete, BODY_IGNORED | NO_STORE, "delete the secret"},
    {"POST", "access-tokens", access_token_create, BODY_REQUIRED | ACCESS_TOKEN, "create access token"},
    {"DELETE", "access-tokens/{id}", access_token_delete, BODY_IGNORED | ACCESS_TOKEN, "delete access token"},
    {"GET", "events/sandboxes", event_list, 0, "list events"},
    {"GET", "events/sandboxes/{id}", event_list_sandbox, 0, "list the events of the sandbox"},
    {"POST", "events/webhooks", webhook_create, BODY_REQUIRED, "register the webhook"},
    {"GET", "events/webhooks", webhook_list, 0, "list webhooks"},
    {"GET", "events/webhooks/{id}", webhook_get, 0, "read the webhook"},
    {"PATCH", "events/webhooks/{id}", webhook_update, BODY_REQUIRED, "change the webhook"},
    {"DELETE", "events/webhooks/{id}", webhook_delete, BODY_IGNORED, "delete the webhook"},
    {"GET", "events/webhooks/{id}/deliveries", webhook_deliveries, 0, "list deliveries"},
    {"GET", "events/webhooks/{id}/stats", webhook_stats, 0, "read the figures of deliveries"},
    {"POST", "mcp", mcp_request, BODY_STREAM, "talk to the MCP server"},
    {"GET", "mcp", mcp_request, BODY_STREAM, "talk to the MCP server"},
    {"DELETE", "mcp", mcp_request, BODY_STREAM, "talk to the MCP server"},
    {"GET", "teams", team_list, ACCESS_TOKEN, "list teams"},
    {"GET", "teams/{id}/metrics", team_metrics, ACCESS_TOKEN, "read team metrics"},
    {"GET", "teams/{id}/metrics/max", team_metrics_max, ACCESS_TOKEN, "read team metrics"},
    {"POST", "console/session", console_session, NO_AUTH | NO_STORE, "sign in"},
    {"POST", "console-links", console_link, NO_STORE | BODY_IGNORED, "make a sign-in link"},
    {"GET", "api-keys", key_list, ACCESS_TOKEN, "list API keys"},
    {"POST", "api-keys", key_create, BODY_REQUIRED | ACCESS_TOKEN, "create API key"},
    {"PATCH", "api-keys/{id}", key_rename, BODY_REQUIRED | ACCESS_TOKEN, "rename API key"},
    {"DELETE", "api-keys/{id}", key_delete, BODY_OPTIONAL | ACCESS_TOKEN, "delete API key"},
};

/* Splits first, decodes after: a segment may hold %2F. */
int route_split(struct arena *arena, struct str path, struct route_path *out)
{
  struct str part;
  *out = (struct route_path){0};
  while (path.n && path.p[0] == '/')
    path = str_skip(path, 1);
  while (path.n) {
    str_cut(path, '/', &part, &path);
    if (out->n == API_SEGMENTS)
      return -EINVAL;
    cleanup_buf struct buf b = BUF_INIT(4096);
    if (percent_decode(part, false, &b))
      return -EINVAL;
    out->segments[out->n++] = arena_str(arena, buf_str(&b));
  }
  return 0;
}

static struct str first_segment(struct str path)
{
  struct str head, rest;
  while (path.n && path.p[0] == '/')
    path = str_skip(path, 1);
  str_cut(path, '/', &head, &rest);
  return head;
}

bool api_owns(struct str path)
{
  struct str name = first_segment(path);
  for (size_t i = 0; i < ARRAY_LEN(routes); i++)
    if (!(routes[i].flags & (NO_AUTH | ADMIN)) && str_eq(name, first_segment(str_of(routes[i].path))))
      return true;
  return false;
}

static bool path_matches(const struct route_path *path, const char *pattern, struct route_match *m)
{
  struct str rest = str_of(pattern), part;
  size_t i = 0;
  for (; rest.n; i++) {
    str_cut(rest, '/', &part, &rest);
    if (i >= path->n)
      return false;
    if (str_is(part, "{id}"))
      m->id = path->segments[i];
    else if (str_is(part, "{second}"))
      m->second = path->segments[i];
    else if (!str_eq(part, path->segments[i]))
      return false;
  }
  return i == path->n;
}

int route_find(struct str method, const struct route_path *path, struct route_match *out)
{
  int missing = -ENOENT;
  *out = (struct route_match){0};
  for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
    struct route_match m = {.entry = &routes[i]};
    if (!path_matches(path, routes[i].path, &m))
      continue;
    missing = -ENOTSUP;
    if (!str_is(method, routes[i].method))
      continue;
    *out = m;
    return 0;
  }
  return missing;
}
