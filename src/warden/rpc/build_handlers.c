/* desk_build.c - questions about builds of templates and the files they copy. */
#include "warden/build/builder.h"
#include "warden/rpc/request.h"

static void ask_request(struct question *q)
{
  struct err err = ERR_NONE;
  struct job *j;
  struct template *t;
  struct build_request r = {.team = q->team,
                            .ref = wire_get(q->packet, W_REF),
                            .tags = wire_get(q->packet, W_TAG),
                            .build = wire_get(q->packet, W_BUILD),
                            .template_id = wire_get(q->packet, W_TEMPLATE),
                            .cpus = (unsigned)MIN(wire_u64(q->packet, W_CPUS, 2), (uint64_t)UINT32_MAX),
                            .memory_mb = (unsigned)MIN(wire_u64(q->packet, W_MEMORY_MB, 1024), (uint64_t)UINT32_MAX)};
  if (builder_request(q->warden, &r, &j, &t, &err)) {
    desk_refuse_err(q, &err);
    return;
  }
  const struct row_team *team = catalog_team(q->warden->catalog, q->team);
  desk_begin(q, WIRE_REPLY, 0);
  wire_putz(q->out, W_TEMPLATE, t->row.id);
  wire_putz(q->out, W_BUILD, j->row.id);
  wire_putz(q->out, W_ALIAS, t->row.name);
  wire_putz(q->out, W_SLUG, team ? team->slug : "");
  wire_put_u64(q->out, W_PUBLIC, t->row.public);
  wire_putz(q->out, W_TAG, j->row.tags);
  desk_finish(q);
}

static void ask_start(struct question *q)
{
  struct err err = ERR_NONE;
  if (builder_start(q->warden, q->team, wire_get(q->packet, W_REF), wire_get(q->packet, W_BUILD), wire_get(q->packet, W_RECIPE), &err))
    desk_refuse_err(q, &err);
  else
    desk_agree(q);
}

/* A build that was never asked for (it came with the server) has no job and no log, and is ready. */
static bool ready_made(struct question *q)
{
  struct build *b = catalog_build(q->warden->catalog, wire_get(q->packet, W_BUILD));
  if (!b || !str_is(q->team, b->of->row.team) || builder_job(q->warden, wire_get(q->packet, W_BUILD)))
    return false;
  desk_begin(q, WIRE_REPLY, 0);
  wire_putz(q->out, W_TEMPLATE, b->of->row.id);
  wire_put_u64(q->out, W_STATE, JOB_READY);
  desk_finish(q);
  return true;
}

static void ask_get(struct question *q)
{
  struct err err = ERR_NONE;
  struct job *j;
  if (ready_made(q))
    return;
  if (builder_find(q->warden, q->team, wire_get(q->packet, W_REF), wire_get(q->packet, W_BUILD), &j, &err)) {
    desk_refuse_err(q, &err);
    return;
  }
  desk_begin(q, WIRE_REPLY, 0);
  wire_putz(q->out, W_TEMPLATE, j->row.template_id);
  wire_put_u64(q->out, W_STATE, j->row.state);
  wire_putz(q->out, W_STEP, j->row.step);
  wire_putz(q->out, W_MESSAGE, j->row.reason ? j->row.reason : "");
  wire_putz(q->out, W_ID, j->kept_box);
  cleanup_fd int fd = j->row.state == JOB_WAITING ? -1 : builder_log(q->warden, j, &err);
  desk_finish_with(q, fd);
}

static void ask_cancel(struct question *q)
{
  size_t n = builder_cancel(q->warden, q->team, wire_get(q->packet, W_BUILD), "cancelled: by request");
  desk_begin(q, WIRE_REPLY, 0);
  wire_put_u64(q->out, W_COUNT, n);
  desk_finish(q);
}

static void ask_file(struct question *q)
{
  struct template *t = desk_template(q, NULL);
  if (!t)
    return;
  if (!str_is(q->team, t->row.team)) {
    desk_refuse(q, -EPERM, "the template belongs to another team");
    return;
  }
  desk_begin(q, WIRE_REPLY, 0);
  wire_put_u64(q->out, W_COUNT, builder_file(q->warden, q->team, wire_get(q->packet, W_NAME)));
  desk_finish(q);
}

static void ask_file_open(struct question *q)
{
  struct err err = ERR_NONE;
  cleanup_fd int fd = builder_file_open(q->warden, q->team, wire_get(q->packet, W_NAME), wire_get(q->packet, W_ID), &err);
  if (fd < 0) {
    desk_refuse_err(q, &err);
    return;
  }
  desk_begin(q, WIRE_REPLY, 0);
  desk_finish_with(q, fd);
}

static void ask_file_close(struct question *q)
{
  struct err err = ERR_NONE;
  bool keep = wire_get(q->packet, W_COUNT).p != NULL;
  int64_t size = keep ? (int64_t)wire_u64(q->packet, W_COUNT, 0) : -1;
  if (builder_file_close(q->warden, q->team, wire_get(q->packet, W_NAME), wire_get(q->packet, W_ID), size, &err))
    desk_refuse_err(q, &err);
  else
    desk_agree(q);
}

bool desk_build(struct question *q, enum wire_type type)
{
  static const struct {
    enum wire_type type;
    void (*answer)(struct question *q);
  } questions[] = {
      {WIRE_BUILD_REQUEST, ask_request}, {WIRE_BUILD_START, ask_start},   {WIRE_BUILD_GET, ask_get},         {WIRE_BUILD_CANCEL, ask_cancel},
      {WIRE_FILE_LOOK, ask_file},        {WIRE_FILE_OPEN, ask_file_open}, {WIRE_FILE_CLOSE, ask_file_close},
  };
  for (size_t i = 0; i < ARRAY_LEN(questions); i++)
    if (questions[i].type == type) {
      questions[i].answer(q);
      return true;
    }
  return false;
}
