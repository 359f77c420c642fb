/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_tell.c - all metrics of a server, told to a sink (metric_sink.h): what the gates counted (metrics_shm.h) and
 * what the warden says of itself, of teams and of boxes. docs/telemetry.md lists them. */
#include "gate/edge/edge_error.h"
#include "gate/metrics_shm.h"
#include "wire/wire.h"

static const char *const class_names[CLASSES] = {
    [CLASS_CREATE] = "create",     [CLASS_SANDBOX] = "sandbox",         [CLASS_LIST] = "list",
    [CLASS_TEMPLATE] = "template", [CLASS_ACCOUNT] = "account",         [CLASS_OTHER] = "other",
    [CLASS_AGENT] = "agent",       [CLASS_INTERPRETER] = "interpreter", [CLASS_PORT] = "port",
};

static const char *const refusal_names[METRICS_REFUSALS] = {
    [EDGE_BAD_TARGET] = "bad_target",
    [EDGE_NOT_FOUND] = "not_found",
    [EDGE_PORT_CLOSED] = "port_closed",
    [EDGE_TOKEN_MISSING] = "token_missing",
    [EDGE_TOKEN_WRONG] = "token_wrong",
    [EDGE_INTERNAL] = "internal_route",
    [EDGE_BROKEN] = "broken",
    [EDGE_RESUME_REFUSED] = "resume_refused",
    [EDGE_TRANSITION] = "transition",
    [EDGE_TEAM_LIMIT] = "team_limit",
    [EDGE_DRAINING] = "draining",
    [EDGE_NO_MEMORY] = "no_memory",
    [EDGE_TOO_MANY] = "too_many",
    [EDGE_UNSIGNED] = "unsigned",
    [EDGE_TEAM_BUSY] = "team_busy",
    [EDGE_ACCESS_MISSING] = "access_missing",
    [EDGE_ACCESS_WRONG] = "access_wrong",
    [EDGE_PAUSED] = "paused",
    [EDGE_UNKNOWN_MANY] = "unknown_many",
    [EDGE_THROTTLED] = "throttled",
};

/* ---- what the warden says ---- */

struct told_box {
  char id[BOX_ID_SIZE], team[UUID_SIZE], template[TEMPLATE_REF_SIZE];
  struct wire_box_metrics m;
};
struct told_team {
  char id[UUID_SIZE], name[DISPLAY_NAME_SIZE];
  struct wire_team_metrics m;
  struct metrics_team_counts counts; /* of the gates */
};
struct metrics_told {
  struct wire_status status;
  VEC(struct told_box) boxes; /* one without an id: all others together */
  VEC(struct told_team) teams;
};

struct metrics_told *metrics_told_new(void)
{
  return xcalloc(1, sizeof(struct metrics_told));
}

void metrics_told_free(struct metrics_told *t)
{
  if (!t)
    return;
  vec_free(&t->boxes);
  vec_free(&t->teams);
  free(t);
}

void metrics_told_item(struct metrics_told *t, struct str packet)
{
  struct str sample = wire_get(packet, W_SAMPLE);
  if (sample.n == sizeof(struct wire_box_metrics)) {
    struct told_box b = {0};
    memcpy(&b.m, sample.p, sizeof(b.m));
    wire_copyz(packet, W_ID, b.id, sizeof(b.id));
    wire_copyz(packet, W_TEAM, b.team, sizeof(b.team));
    wire_copyz(packet, W_ALIAS, b.template, sizeof(b.template));
    vec_push(&t->boxes, b);
  } else if (sample.n == sizeof(struct wire_team_metrics)) {
    struct told_team row = {0};
    memcpy(&row.m, sample.p, sizeof(row.m));
    wire_copyz(packet, W_TEAM, row.id, sizeof(row.id));
    wire_copyz(packet, W_NAME, row.name, sizeof(row.name));
    vec_push(&t->teams, row);
  }
}

int metrics_told_end(struct metrics_told *t, struct str packet)
{
  struct str raw = wire_get(packet, W_STATUS);
  if (raw.n != sizeof(t->status))
    return -EINVAL;
  memcpy(&t->status, raw.p, sizeof(t->status));
  return 0;
}

void metrics_ask(struct buf *b, struct metrics_team *teams, size_t teams_max)
{
  cleanup_buf struct buf ids = BUF_INIT(METRICS_TEAMS * (UUID_SIZE + 1));
  for (size_t i = 0; teams && i < MIN(teams_max, (size_t)METRICS_TEAMS); i++)
    if (atomic_load_explicit(&teams[i].state, memory_order_acquire) == TEAM_SET)
      buf_addf(&ids, "%s%.*s", ids.n ? "," : "", UUID_SIZE, teams[i].id);
  wire_begin(b, WIRE_METRICS, 0, 0);
  wire_put(b, W_REF, buf_str(&ids));
}

/* ---- the server ---- */

static void put_one(struct metric_sink *s, const char *name, enum metric_kind kind, const char *unit, const char *help,
                    uint64_t v)
{
  s->family(s, name, kind, unit, help);
  s->value(s, NULL, 0, (double)v);
}

static void put_by(struct metric_sink *s, const char *label, const char *word, uint64_t v)
{
  s->value(s, &(struct metric_label){label, str_of(word)}, 1, (double)v);
}

static void put_warden(struct metric_sink *s, const struct wire_status *w)
{
  const struct {
    const char *name;
    enum metric_kind kind;
    const char *unit, *help;
    uint64_t value;
  } rows[] = {
      {"launches", METRIC_COUNTER, "", "Sandboxes made.", w->launches_total},
      {"launches_failed", METRIC_COUNTER, "", "Sandboxes that could not be made.", w->launches_failed},
      {"pauses", METRIC_COUNTER, "", "Sandboxes paused.", w->pauses_total},
      {"resumes", METRIC_COUNTER, "", "Sandboxes resumed.", w->resumes_total},
      {"ends", METRIC_COUNTER, "", "Sandboxes that ended.", w->ends_total},
      {"events", METRIC_COUNTER, "", "Lifecycle events recorded.", w->events_total},
      {"removals", METRIC_GAUGE, "", "Ended sandboxes being reclaimed.", w->removals},
      {"launches_pending", METRIC_GAUGE, "", "Sandboxes being made.", w->launches},
      {"transitions_pending", METRIC_GAUGE, "", "Sandboxes being paused, resumed or copied.", w->transitions},
      {"checkpoint_ready", METRIC_GAUGE, "", "1: paused sandboxes go to disk; 0: they stay in memory (tier frozen).",
       w->checkpoint_ready},
      {"checkpoints", METRIC_GAUGE, "", "Paused sandboxes whose memory is on disk.", w->checkpoints},
      {"checkpoint_bytes", METRIC_GAUGE, "By", "Bytes of their memory on disk.", w->checkpoint_bytes},
      {"webhook_waiting", METRIC_GAUGE, "", "Deliveries to webhooks that wait or are under way.", w->webhooks_waiting},
      {"warm_boxes", METRIC_GAUGE, "", "Warm sandboxes in the pool.", w->warm_boxes},
      {"allocated_cpus", METRIC_GAUGE, "", "Processors promised to running sandboxes.", w->cpus},
      {"allocated_memory_bytes", METRIC_GAUGE, "By", "Memory promised to running sandboxes.", w->memory},
      {"disk_free_bytes", METRIC_GAUGE, "By", "Free space of the data directory's disk.", w->disk_free},
      {"disk_size_bytes", METRIC_GAUGE, "By", "Size of the data directory's disk.", w->disk_total},
      {"start_time_seconds", METRIC_GAUGE, "s", "When the warden started.", (uint64_t)(w->started_us / 1000000)},
  };
  s->family(s, "boxes", METRIC_GAUGE, "", "Sandboxes by state.");
  put_by(s, "state", "running", w->running);
  put_by(s, "state", "paused", w->paused);
  put_by(s, "state", "starting", w->starting);
  s->family(s, "webhook_attempts", METRIC_COUNTER, "", "Attempts to deliver an event to a webhook, by result.");
  put_by(s, "result", "success", w->webhooks_delivered);
  put_by(s, "result", "failed", w->webhooks_failed);
  for (size_t i = 0; i < ARRAY_LEN(rows); i++)
    put_one(s, rows[i].name, rows[i].kind, rows[i].unit, rows[i].help, rows[i].value);
}

/* ---- the gates ---- */

static void add_slot(struct metrics_slot *sum, const struct metrics_slot *f)
{
  _Static_assert(offsetof(struct metrics_slot, exemplars) % sizeof(uint64_t) == 0, "counters only");
  const uint64_t *from = (const uint64_t *)f;
  uint64_t *to = (uint64_t *)sum;
  for (size_t i = 0; i < offsetof(struct metrics_slot, exemplars) / sizeof(uint64_t); i++)
    to[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
  for (size_t c = 0; c < CLASSES; c++)
    for (size_t i = 0; i <= METRICS_BUCKETS; i++) {
      struct exemplar got;
      if (exemplar_get(&f->exemplars[c][i], &got) && got.wall_us > sum->exemplars[c][i].wall_us)
        sum->exemplars[c][i] = got;
    }
}

static void put_requests(struct metric_sink *s, const struct metrics_slot *sum)
{
  static const char *const hundreds[] = {"1xx", "2xx", "3xx", "4xx", "5xx"};
  s->family(s, "requests", METRIC_COUNTER, "", "Requests answered, by class and status.");
  for (int c = 0; c < CLASSES; c++)
    for (int k = 0; k < 5; k++) {
      const struct metric_label labels[] = {{"class", str_of(class_names[c])}, {"status", str_of(hundreds[k])}};
      if (sum->requests[c][k])
        s->value(s, labels, ARRAY_LEN(labels), (double)sum->requests[c][k]);
    }
  s->family(s, "request_seconds", METRIC_HISTOGRAM, "s", "Time to the head of the answer, by class.");
  for (int c = 0; c < CLASSES; c++)
    if (sum->latency[c].count)
      s->histogram(s, &(struct metric_label){"class", str_of(class_names[c])}, 1, &sum->latency[c], sum->exemplars[c]);
}

static void put_gates(struct metric_sink *s, const struct metrics_slot *sum)
{
  put_requests(s, sum);
  s->family(s, "edge_bytes", METRIC_COUNTER, "By", "Body bytes into and out of sandboxes.");
  put_by(s, "direction", "in", sum->edge_in);
  put_by(s, "direction", "out", sum->edge_out);
  s->family(s, "edge_refused", METRIC_COUNTER, "", "Requests for sandboxes that were refused, by reason.");
  for (int i = 0; i < METRICS_REFUSALS; i++)
    if (refusal_names[i])
      put_by(s, "reason", refusal_names[i], sum->refused[i]);
  put_one(s, "edge_open", METRIC_GAUGE, "", "Exchanges with sandboxes under way.", sum->open);
  put_one(s, "connections", METRIC_GAUGE, "", "Client connections.", sum->connections);
  put_one(s, "warden_requests", METRIC_GAUGE, "", "Requests to the warden without a reply yet.", sum->calls);
}

/* ---- teams ---- */

static struct told_team *team_row(struct told_team *rows, size_t n, const char *id)
{
  for (size_t i = 0; i < n; i++)
    if (!strcmp(rows[i].id, id))
      return &rows[i];
  return NULL;
}

static void add_counts(struct metrics_team_counts *to, const struct metrics_team_counts *from)
{
  to->requests += from->requests;
  to->creates += from->creates;
  to->creates_failed += from->creates_failed;
  to->cells += from->cells;
  to->client_errors += from->client_errors;
  to->server_errors += from->server_errors;
}

/* What the gates counted, beside what the warden told; rows of teams that it no longer knows go to the others. */
static void join_teams(struct told_team *rows, size_t n, struct metrics_team *teams, size_t most,
                       const struct metrics_slot *sum)
{
  struct told_team *others = team_row(rows, n, "");
  for (size_t i = 0; teams && i < MIN(most, (size_t)METRICS_TEAMS); i++) {
    char id[UUID_SIZE];
    if (atomic_load_explicit(&teams[i].state, memory_order_acquire) != TEAM_SET)
      continue;
    memcpy(id, teams[i].id, sizeof(id));
    id[sizeof(id) - 1] = '\0';
    struct told_team *row = id[0] ? team_row(rows, n, id) : NULL;
    row = row ? row : others;
    if (row)
      add_counts(&row->counts, &sum->teams[i]);
  }
  if (others)
    add_counts(&others->counts, &sum->teams[METRICS_OTHER]);
}

static struct str team_label(const struct told_team *t)
{
  return t->id[0] ? str_of(t->id) : STR("other");
}

static void put_team_counts(struct metric_sink *s, const struct told_team *rows, size_t n)
{
  static const struct {
    const char *name, *help;
    size_t at;
  } counts[] = {
      {"team_requests", "Requests answered, by team.", offsetof(struct metrics_team_counts, requests)},
      {"team_creates", "Sandboxes created, by team.", offsetof(struct metrics_team_counts, creates)},
      {"team_creates_failed", "Creates that were refused or failed, by team.",
       offsetof(struct metrics_team_counts, creates_failed)},
      {"team_cells", "Cells run, by team.", offsetof(struct metrics_team_counts, cells)},
  };
  for (size_t k = 0; k < ARRAY_LEN(counts); k++) {
    s->family(s, counts[k].name, METRIC_COUNTER, "", counts[k].help);
    for (size_t i = 0; i < n; i++)
      s->value(s, &(struct metric_label){"team", team_label(&rows[i])}, 1,
               (double)*(const uint64_t *)((const char *)&rows[i].counts + counts[k].at));
  }
  s->family(s, "team_errors", METRIC_COUNTER, "", "Requests answered with an error, by team and whose it is.");
  for (size_t i = 0; i < n; i++) {
    struct metric_label labels[] = {{"team", team_label(&rows[i])}, {"side", STR("client")}};
    s->value(s, labels, 2, (double)rows[i].counts.client_errors);
    labels[1].value = STR("server");
    s->value(s, labels, 2, (double)rows[i].counts.server_errors);
  }
}

static void put_teams(struct metric_sink *s, const struct told_team *rows, size_t n)
{
  if (!n)
    return;
  s->family(s, "team_info", METRIC_GAUGE, "", "The names of teams.");
  for (size_t i = 0; i < n; i++) {
    const struct metric_label labels[] = {{"team", team_label(&rows[i])}, {"name", str_of(rows[i].name)}};
    if (rows[i].id[0])
      s->value(s, labels, 2, 1);
  }
  s->family(s, "team_boxes", METRIC_GAUGE, "", "Sandboxes by team and state.");
  for (size_t i = 0; i < n; i++) {
    struct metric_label labels[] = {{"team", team_label(&rows[i])}, {"state", STR("running")}};
    s->value(s, labels, 2, (double)rows[i].m.running);
    labels[1].value = STR("paused");
    s->value(s, labels, 2, (double)rows[i].m.paused);
  }
  s->family(s, "team_storage_bytes", METRIC_GAUGE, "By", "What a team keeps on the disk: see team_storage_mb.");
  for (size_t i = 0; i < n; i++)
    if (rows[i].m.storage_known)
      s->value(s, &(struct metric_label){"team", team_label(&rows[i])}, 1, (double)rows[i].m.storage);
  s->family(s, "team_snapshots", METRIC_GAUGE, "", "Snapshots by team.");
  for (size_t i = 0; i < n; i++)
    if (rows[i].m.storage_known)
      s->value(s, &(struct metric_label){"team", team_label(&rows[i])}, 1, (double)rows[i].m.snapshots);
  put_team_counts(s, rows, n);
}

/* ---- boxes ---- */

static const char *state_word(uint64_t state)
{
  return box_state_paused((unsigned)state) ? "paused" : state == BOX_RUNNING ? "running" : "changing";
}

#define BOX_LABELS 3
static void box_labels(const struct told_box *b, struct metric_label labels[BOX_LABELS])
{
  labels[0] = (struct metric_label){"box", b->id[0] ? str_of(b->id) : STR("other")};
  labels[1] = (struct metric_label){"team", str_of(b->team)};
  labels[2] = (struct metric_label){"template", str_of(b->template)};
}

static void put_boxes(struct metric_sink *s, const struct told_box *rows, size_t n)
{
  static const struct {
    const char *name;
    enum metric_kind kind;
    const char *unit, *help;
    size_t at;
    double factor;
  } values[] = {
      {"box_cpu_seconds", METRIC_COUNTER, "s", "Processor time of a sandbox.",
       offsetof(struct wire_box_metrics, cpu_usec), 1e-6},
      {"box_memory_bytes", METRIC_GAUGE, "By", "Memory of a sandbox in use.",
       offsetof(struct wire_box_metrics, mem_used), 1},
      {"box_memory_limit_bytes", METRIC_GAUGE, "By", "Memory a sandbox may use.",
       offsetof(struct wire_box_metrics, mem_total), 1},
      {"box_disk_bytes", METRIC_GAUGE, "By", "Disk of a sandbox in use.", offsetof(struct wire_box_metrics, disk_used),
       1},
      {"box_disk_limit_bytes", METRIC_GAUGE, "By", "Disk a sandbox may use.",
       offsetof(struct wire_box_metrics, disk_total), 1},
      {"box_network_receive_bytes", METRIC_COUNTER, "By", "Bytes that came to a sandbox from outside.",
       offsetof(struct wire_box_metrics, net_in), 1},
      {"box_network_transmit_bytes", METRIC_COUNTER, "By", "Bytes that a sandbox sent outside.",
       offsetof(struct wire_box_metrics, net_out), 1},
  };
  struct metric_label labels[BOX_LABELS + 1];
  if (!n)
    return;
  for (size_t k = 0; k < ARRAY_LEN(values); k++) {
    s->family(s, values[k].name, values[k].kind, values[k].unit, values[k].help);
    for (size_t i = 0; i < n; i++) {
      uint64_t v = *(const uint64_t *)((const char *)&rows[i].m + values[k].at);
      box_labels(&rows[i], labels);
      s->value(s, labels, BOX_LABELS, (double)v * values[k].factor);
    }
  }
  s->family(s, "box_state", METRIC_GAUGE, "", "1: the state that a sandbox is in.");
  for (size_t i = 0; i < n; i++) {
    box_labels(&rows[i], labels);
    labels[BOX_LABELS] = (struct metric_label){"state", str_of(state_word(rows[i].m.state))};
    if (rows[i].id[0])
      s->value(s, labels, BOX_LABELS + 1, 1);
  }
}

void metrics_tell(struct metric_sink *s, const struct metrics_slot *slots, size_t n, struct metrics_team *teams,
                  size_t teams_max, const struct metrics_told *told)
{
  struct metrics_slot *sum = xcalloc(1, sizeof(*sum));
  for (size_t i = 0; i < n; i++)
    add_slot(sum, &slots[i]);
  put_gates(s, sum);
  put_warden(s, &told->status);
  join_teams(told->teams.p, told->teams.n, teams, teams_max, sum);
  put_teams(s, told->teams.p, told->teams.n);
  put_boxes(s, told->boxes.p, told->boxes.n);
  free(sum);
}
