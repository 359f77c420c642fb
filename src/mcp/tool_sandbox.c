/* SPDX-License-Identifier: Apache-2.0 */
/* tool_sandbox.c - making, listing, pausing, resuming, copying and ending sandboxes; templates. */
#include "mcp/session.h"

#define LIFE_S  900
#define BUILD_S 900

static void put_id(struct mcp_call *c, const char *id)
{
  result_put(&c->out, "sandbox", str_of(id));
}

/* ---- create ---- */

static void created(struct mcp_call *c)
{
  struct mcp_session *s = c->session;
  struct mcp_box *b = session_keep_box(s, steal(&c->arriving));
  const char *id = cloche_box_id(b->handle);
  if (c->flag)
    session_use_box(s, b);
  result_note(&c->out, "created sandbox %s%s", id, c->flag ? ", which is this session's own now" : "");
  put_id(c, id);
  result_put(&c->out, "template", str_of(cloche_box_template(b->handle)));
  call_tool_done(c);
}

static bool may_make(struct mcp_call *c, unsigned n)
{
  struct mcp_session *s = c->session;
  if (s->made + n <= s->options.limits.boxes) {
    s->made += n;
    return true;
  }
  call_tool_failed(c, "this session has made %u sandboxes, and may make %u; work in one of them (list_sandboxes)",
                   s->made, s->options.limits.boxes);
  return false;
}

/* A sandbox that becomes the session's own is found again as such: the newest is. */
static bool mark_own(struct mcp_call *c, struct cloche_pair **metadata, size_t *n)
{
  struct cloche_pair *all = arena_alloc(&c->arena, (*n + 2) * sizeof(*all));
  if (!all) {
    call_tool_failed(c, "the argument 'metadata' is too long");
    return false;
  }
  if (*n)
    memcpy(all, *metadata, *n * sizeof(*all));
  *metadata = all;
  *n += session_marks(c->session, all + *n);
  return true;
}

void tool_create(struct mcp_call *c)
{
  const char *template;
  struct cloche_pair *envs, *metadata;
  size_t nenvs, nmetadata;
  bool internet, pause;
  int64_t timeout;
  if (!arg_text(c, "template", false, &template) || !arg_pairs(c, "envs", &envs, &nenvs) ||
      !arg_pairs(c, "metadata", &metadata, &nmetadata) || !arg_bool(c, "internet", true, &internet) ||
      !arg_bool(c, "pause", false, &pause) || !arg_bool(c, "use", true, &c->flag) ||
      !arg_int(c, "timeout", 1, 86400, LIFE_S, &timeout) || !may_make(c, 1))
    return;
  if (c->flag && !mark_own(c, &metadata, &nmetadata))
    return;
  const char *own = c->session->template_id;
  struct cloche_error e = {0};
  struct cloche_call call = call_begin(c, created);
  call_go(c,
          cloche_create(c->session->client,
                        CLOCHE_WITH(cloche_create,
                                    .template_id = template ? template
                                                   : own[0] ? own
                                                            : NULL,
                                    .timeout_s = (int)timeout, .envs = envs, .env_count = nenvs, .metadata = metadata,
                                    .metadata_count = nmetadata, .pause_on_timeout = pause, .resume_on_traffic = pause,
                                    .network = internet ? NULL : CLOCHE_WITH(cloche_network, .no_internet = true)),
                        &c->arriving, &call, &e),
          &e);
}

/* ---- list ---- */

static void told(struct mcp_call *c)
{
  const struct cloche_box_list *l = c->result;
  struct jw *w = &c->out.data;
  cleanup_buf struct buf b = BUF_INIT((size_t)4 << 20);
  const struct mcp_box *own = c->session->box;
  jw_key(w, "sandboxes");
  jw_open(w, '[');
  for (size_t i = 0; i < l->count; i++) {
    const struct cloche_box_info *box = &l->items[i];
    bool mine = own && !strcmp(cloche_box_id(own->handle), box->id);
    buf_addf(&b, "%s  %s  %s  until %s%s\n", box->id, box->state, box->alias ? box->alias : box->template_id,
             box->end_at, mine ? "  (this session's own)" : "");
    jw_open(w, '{');
    jw_key(w, "sandbox");
    jw_z(w, box->id);
    jw_key(w, "state");
    jw_z(w, box->state);
    jw_key(w, "template");
    jw_z(w, box->alias ? box->alias : box->template_id);
    jw_key(w, "endAt");
    jw_z(w, box->end_at);
    jw_close(w, '}');
  }
  jw_close(w, ']');
  if (l->count)
    result_text(&c->out, buf_str(&b));
  else
    result_note(&c->out, "there are no sandboxes");
  if (l->next)
    result_note(&c->out, "[there are more; these are the newest %zu]", l->count);
  call_tool_done(c);
}

void tool_list(struct mcp_call *c)
{
  const char *state;
  if (!arg_text(c, "state", false, &state))
    return;
  struct cloche_error e = {0};
  struct cloche_call call = call_begin(c, told);
  call_go(c,
          cloche_list(c->session->client, CLOCHE_WITH(cloche_list, .state = state, .limit = 100),
                      (struct cloche_box_list **)&c->result, &call, &e),
          &e);
}

/* ---- pause, resume, fork, kill ---- */

/* The sandbox that a tool acts on without connecting to it: a paused one must not wake for it. */
static const char *target(struct mcp_call *c)
{
  const char *id;
  if (!arg_text(c, "sandbox", false, &id))
    return NULL;
  if (!id && !c->session->box)
    call_tool_failed(c, "this session has no sandbox yet; name one as 'sandbox' (list_sandboxes)");
  else if (!id)
    id = cloche_box_id(c->session->box->handle);
  if (id)
    c->box_id = xstrdup(id);
  return id ? c->box_id : NULL;
}

static void paused(struct mcp_call *c)
{
  result_note(&c->out, c->flag ? "paused sandbox %s" : "sandbox %s was paused already", c->box_id);
  put_id(c, c->box_id);
  session_drop_box(c->session, c->box_id); /* to be connected to again */
  c->session->looked = false;
  call_tool_done(c);
}

void tool_pause(struct mcp_call *c)
{
  const char *id = target(c);
  if (!id)
    return;
  struct cloche_error e = {0};
  struct cloche_call call = call_begin(c, paused);
  call_go(c, cloche_pause(c->session->client, id, NULL, &c->flag, &call, &e), &e);
}

static void resumed(struct mcp_call *c)
{
  bool use;
  if (!arg_bool(c, "use", false, &use))
    return;
  if (use || c->flag)
    session_use_box(c->session, c->box);
  result_note(&c->out, "sandbox %s runs%s", c->box_id, use ? " and is this session's own now" : "");
  put_id(c, c->box_id);
  call_tool_done(c);
}

void tool_resume(struct mcp_call *c)
{
  const char *id;
  bool use;
  if (!arg_text(c, "sandbox", true, &id) || !arg_bool(c, "use", false, &use))
    return;
  const struct mcp_box *own = c->session->box;
  c->flag = own && !strcmp(cloche_box_id(own->handle), id);
  session_drop_box(c->session, id); /* a handle of before says nothing of its state */
  call_with_box(c, resumed);
}

static void forked(struct mcp_call *c)
{
  const struct cloche_fork_list *l = c->result;
  struct jw *w = &c->out.data;
  jw_key(w, "sandboxes");
  jw_open(w, '[');
  for (size_t i = 0; i < l->count; i++) {
    if (!l->items[i].box) {
      result_note(&c->out, "a copy failed: %s", l->items[i].error ? l->items[i].error : "?");
      c->out.failed = true;
      continue;
    }
    const char *id = cloche_box_id(l->items[i].box);
    result_note(&c->out, "copy of %s: sandbox %s", c->box_id, id);
    jw_z(w, id);
    cloche_box_free(l->items[i].box); /* connected to when it is used */
  }
  jw_close(w, ']');
  call_tool_done(c);
}

void tool_fork(struct mcp_call *c)
{
  int64_t count, timeout;
  if (!arg_int(c, "count", 1, 20, 1, &count) || !arg_int(c, "timeout", 1, 86400, LIFE_S, &timeout))
    return;
  const char *id = target(c);
  if (!id || !may_make(c, (unsigned)count))
    return;
  struct cloche_error e = {0};
  struct cloche_call call = call_begin(c, forked);
  call_go(
      c,
      cloche_fork(c->session->client, id, (int)count, (int)timeout, (struct cloche_fork_list **)&c->result, &call, &e),
      &e);
}

static void killed(struct mcp_call *c)
{
  result_note(&c->out, c->flag ? "sandbox %s is ended" : "there is no sandbox %s", c->box_id);
  put_id(c, c->box_id);
  jw_key(&c->out.data, "existed");
  jw_bool(&c->out.data, c->flag);
  session_drop_box(c->session, c->box_id);
  call_tool_done(c);
}

void tool_kill(struct mcp_call *c)
{
  const char *id = target(c);
  if (!id)
    return;
  struct cloche_error e = {0};
  struct cloche_call call = call_begin(c, killed);
  call_go(c, cloche_kill(c->session->client, id, &c->flag, &call, &e), &e);
}

/* ---- templates ---- */

static void built(struct mcp_call *c)
{
  const struct cloche_build_info *info = c->result;
  const char *name;
  if (!arg_text(c, "name", true, &name))
    return;
  result_note(&c->out, "built template %s (%s); create_sandbox takes it", name, info->template_id);
  result_put(&c->out, "template", str_of(info->template_id));
  result_put(&c->out, "build", str_of(info->build_id));
  result_put(&c->out, "status", str_of(info->status));
  call_tool_done(c);
}

static int on_log(const struct cloche_build_entry *entry, void *user)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  buf_addf(&b, "%.8000s\n", entry->message ? entry->message : "");
  call_progress(user, buf_str(&b));
  return 0;
}

#define NO_CONTEXT "/nonexistent" /* whatever a Dockerfile copies, it is not of this machine */

/* A model's COPY would read this machine's files, not the model's. This is the friendly answer; NO_CONTEXT is what
 * keeps them out. */
static bool copies(struct str text)
{
  struct str line;
  while (text.n) {
    str_cut(text, '\n', &line, &text);
    line = str_trim(line);
    if (str_istarts(line, STR("copy ")) || str_istarts(line, STR("add ")) || str_istarts(line, STR("copy\t")) ||
        str_istarts(line, STR("add\t")))
      return true;
  }
  return false;
}

void tool_build_template(struct mcp_call *c)
{
  const char *name, *text;
  int64_t cpus, memory, timeout;
  struct cloche_error e = {0};
  if (!arg_text(c, "name", true, &name) || !arg_text(c, "dockerfile", true, &text) ||
      !arg_int(c, "cpus", 1, 64, 0, &cpus) || !arg_int(c, "memory", 128, 1 << 20, 0, &memory) ||
      !arg_int(c, "timeout", 1, c->session->options.limits.timeout_s, BUILD_S, &timeout))
    return;
  if (copies(str_of(text))) {
    call_tool_failed(c, "COPY and ADD need local files, which there are none of here; write files with RUN");
    return;
  }
  c->recipe = cloche_recipe_new();
  if (!c->recipe || cloche_recipe_context(c->recipe, NO_CONTEXT) || cloche_recipe_dockerfile(c->recipe, text, &e)) {
    call_tool_failed(c, "%s", e.message ? e.message : "the Dockerfile can't be read");
    cloche_error_clear(&e);
    return;
  }
  struct cloche_call call = call_begin_for(c, built, (unsigned)timeout);
  call_go(c,
          cloche_build(
              c->session->client, c->recipe, name,
              CLOCHE_WITH(cloche_build, .cpu_count = (int)cpus, .memory_mb = (int)memory, .on_log = on_log, .user = c),
              (struct cloche_build_info **)&c->result, &call, &e),
          &e);
}
