/* SPDX-License-Identifier: Apache-2.0 */
/* wire.h - the protocol between gates and the warden. Both sides include this and nothing else of the other.
 *
 * Start here in this folder, which holds everything that crosses a process border: wire.h (gate and warden), ipc.h (the
 * sockets below it), control.h (supervisor and roles), boot_packet.h and exec_packet.h (warden and agent), recipe.h,
 * buildlog.h and logring.h (data that one side writes and another reads), sizes.h (lengths of shared names). The room
 * promises that every packet is whole or refused, that lengths are checked before bytes are touched, and that neither
 * side includes code of the other.
 *
 * One SOCK_SEQPACKET pair per gate; a packet is a struct wire_head and a row of fields (tag, length, bytes). The warden
 * reads only these small fixed shapes: everything a client wrote (metadata, variables, network rules) travels as opaque
 * text that the gate has checked and the warden merely stores. A gate repeats unanswered requests on a new link after
 * the warden was restarted, so every request is idempotent: a box id is chosen by the gate.
 *
 * A gate is not trusted with more than it was shown: it proves a team by the hash of the key that a client presented
 * (W_PROOF), or the administrator by the hash of the token (W_ADMIN), in every request; rpc.c says which request
 * needs which. W_TEAM then only repeats what the key says, or names the team that an administrator means. */
#ifndef CLOCHE_WIRE_WIRE_H
#define CLOCHE_WIRE_WIRE_H

#include "base/base.h"

#define WIRE_MAX (160u * 1024) /* bytes of one packet */

enum wire_type {
  WIRE_REPLY = 1, /* status + fields; answers a request's id */
  WIRE_ITEM,      /* one row of a longer answer; WIRE_REPLY closes it */
  WIRE_HELLO,     /* warden to gate, first on every link: W_DOMAIN, W_ADMIN (1: there is an administrator);
                   * with it the descriptor of an id_filter.h */
  WIRE_BOX_ENDED, /* warden to gates: W_ID, W_RUN: this run is over (ended or paused): cut its streams, forget its
                     routes */
  WIRE_KEYS_CHANGED,
  WIRE_BOX_HOLD, /* warden to gates: W_ID: it is about to sleep; new requests ask again, those under way go on until
                    BOX_ENDED */

  WIRE_AUTH = 32, /* W_PROOF -> W_TEAM, W_NAME, W_SLUG; or W_ADMIN; -EACCES */
  /* W_ID W_TEAM W_REF W_TIMEOUT W_FLAGS W_CONFIG W_INIT [W_EGRESS W_RULES] [W_IDEMPOTENCY_KEY W_FINGERPRINT] -> box,
   * W_TOKEN, W_TRAFFIC; with a key also -EKEYREJECTED: used for another request, -EINPROGRESS, -EOWNERDEAD: nobody
   * knows what came of it */
  WIRE_BOX_CREATE,
  /* W_ID [W_TEAM] [W_PORT] -> box, W_TOKEN, W_TRAFFIC [descriptor, as BOX_DOOR]; -ENOENT with W_CAUSE when it ended. A
   * gate without a proof gets what routing needs: no tokens but their hashes. */
  WIRE_BOX_GET,
  WIRE_BOX_LIST,     /* [W_TEAM] -> items, no order */
  WIRE_BOX_KILL,     /* W_ID W_TEAM */
  WIRE_BOX_TIMEOUT,  /* W_ID W_TEAM W_TIMEOUT W_MODE -> box; a paused one: -ENOENT */
  WIRE_BOX_PAUSE,    /* W_ID W_TEAM [W_COLD] [W_HEALTHY] -> box; -EALREADY when it is paused */
  WIRE_BOX_CONNECT,  /* W_ID W_TEAM W_TIMEOUT W_MODE (enum connect_mode) [W_COLD] [W_FLAGS: BOX_AUTO_PAUSE or 0] -> box,
                        W_RESUMED */
  WIRE_BOX_CONFIG,   /* W_ID W_TEAM W_CONFIG W_FLAGS W_ALLOW W_DENY [W_EGRESS W_RULES]: replaces all; running boxes only
                      */
  WIRE_BOX_LOG,      /* W_ID W_TEAM -> descriptor of its log ring; also for a while after its end */
  WIRE_BOX_NET_LOG,  /* W_ID W_TEAM -> descriptor of the ring of its network log; also for a while after its end */
  WIRE_BOX_DIAL,     /* W_ID W_PORT -> descriptor, W_RUN */
  WIRE_BOX_USAGE,    /* W_ID W_TEAM W_FROM W_TO -> items of W_SAMPLE */
  WIRE_USAGE_LATEST, /* W_TEAM W_REF (ids joined by commas) -> items of W_ID W_SAMPLE */
  WIRE_TEMPLATE_LIST, /* W_TEAM, or W_PUBLIC 1 = the server's own -> items */
  WIRE_TEMPLATE_FIND, /* W_TEAM W_REF -> template */
  WIRE_TEMPLATE_TAGS, /* W_TEAM W_REF -> items of W_TAG W_BUILD W_CREATED, then the template */
  WIRE_TAG_HISTORY,   /* W_TEAM W_REF (its own) -> items of W_ID W_TAG W_BUILD W_CREATED W_STARTED W_END (of the build)
                       */
  WIRE_TEMPLATE_BUILDS, /* W_TEAM W_REF -> items of builds, then the template */
  WIRE_TEMPLATE_CHANGE, /* W_TEAM W_REF [W_PUBLIC] -> template; -EPERM: another team's */
  WIRE_TEMPLATE_DELETE, /* W_TEAM W_REF; -EPERM, -EINVAL while boxes use it */
  WIRE_TAG_PUT,         /* W_TEAM W_REF W_TAG (joined by commas) -> W_BUILD: the named build gets the tags */
  WIRE_TAG_DELETE,      /* W_TEAM W_REF W_TAG (joined by commas) */
  WIRE_TEAM_LIST,       /* -> items */
  WIRE_TEAM_PUT,        /* W_NAME [W_TEAM] [limits] -> team: a new one, or a change */
  /* W_TEAM W_FROM W_TO W_MODE (enum usage_mode) W_COUNT (of a joined interval, us) -> items of W_CREATED W_TO (its
   * length, us) W_COUNT (running) W_SPAWNS */
  WIRE_TEAM_USAGE,
  WIRE_TEAM_KILL,  /* W_TEAM -> W_COUNT: every box of the team ends */
  WIRE_KEY_CREATE, /* W_TEAM W_NAME W_KEYHASH W_MASK [W_MODE 2: for the access token that asks, goes with it] -> key */
  WIRE_KEY_LIST,   /* W_TEAM -> items; root's with access tokens */
  WIRE_KEY_RENAME, /* W_TEAM W_ID W_NAME */
  WIRE_KEY_DELETE, /* W_TEAM W_ID [W_MODE 1: an access token; root needs not say] */
  WIRE_STATUS,     /* -> struct wire_status in W_STATUS */
  WIRE_SNAPSHOT,   /* W_ID W_TEAM W_REF (a name, may be empty) W_BUILD (a new id) [W_COLD] -> W_TEMPLATE W_SLUG W_ALIAS
                      W_TAG W_COLD */
  WIRE_SNAPSHOT_LIST, /* W_TEAM -> items of W_TEMPLATE W_SLUG W_ALIAS W_TAG W_BUILD W_CREATED W_ID (its source) */
  WIRE_BOX_FORK, /* W_ID W_TEAM W_TIMEOUT W_BUILD (a new id) W_REF (ids of the new boxes, joined by commas) -> items:
                    box or W_MESSAGE */
  WIRE_BUILD_REQUEST, /* W_TEAM W_REF W_TAG (joined by commas) W_BUILD W_TEMPLATE (ids the gate drew) W_CPUS W_MEMORY_MB
                         [W_DISK_MB: free space wanted] [W_RECIPE: kept for its start] [W_MODE 1: W_REF is a template
                         that is there; W_ALIAS its name, may be empty] -> template, W_BUILD */
  WIRE_BUILD_START,   /* W_TEAM W_REF W_BUILD [W_RECIPE: else the kept one]; -EPERM, -ENOENT, -EINVAL when it is not
                         waiting */
  WIRE_BUILD_GET,     /* W_TEAM W_REF W_BUILD -> W_STATE (enum job_state) [W_MESSAGE W_STEP], descriptor of its log */
  WIRE_BUILD_CANCEL,  /* W_TEAM [W_BUILD] -> W_COUNT */
  WIRE_FILE_LOOK,  /* W_TEAM W_REF W_NAME (hash) -> W_COUNT 1: it was uploaded; W_TO and W_SIGNATURE of a link to upload
                      it */
  WIRE_FILE_OPEN,  /* W_TEAM W_NAME W_ID (drawn by the gate) W_TO W_SIGNATURE (of the link)
                    * W_COUNT (bytes, 0 = unknown: up to W_MOST) -> descriptor, W_COUNT */
  WIRE_FILE_CLOSE, /* W_TEAM W_NAME W_ID W_TO W_SIGNATURE W_COUNT (bytes): keep it; without W_COUNT: drop it */
  WIRE_SIGNED_FIND, /* W_NAME ("path:operation:user:") W_REF (":expiry" or "") W_SIGNATURE, or W_TOKEN_HASH -> W_ID of
                     * the box whose token made it, or has that hash */
  /* W_TEAM [W_ID] W_COUNT (at most) W_OFFSET W_MODE (1: oldest first) W_FLAGS (EVENT_BITs, 0 = all)
   * [W_AFTER: only later ones, in the order of insertion] -> items of W_EVENT, then W_AFTER; -ENOENT: no such box */
  WIRE_EVENT_LIST,
  WIRE_BOX_VOUCH, /* W_ID W_CLIENT [W_TOKEN]: with the box's token the client is remembered; without: was it? -EACCES */

  /* W_REF (ids of teams, joined by commas) -> items of W_TEAM W_NAME W_SAMPLE (struct wire_team_metrics): of those,
   * then of others that have boxes, metrics_teams_max in all, the rest under no W_TEAM; items of W_ID W_TEAM W_ALIAS
   * W_SAMPLE (struct wire_box_metrics), metrics_boxes_max of them, the rest under no W_ID; then W_STATUS */
  WIRE_METRICS,

  WIRE_LOGIN, /* W_SECRET (hash of a one-time code) W_KEYHASH W_MASK -> W_ID W_TEAM W_NAME W_END: a key of the code's
                 team that ends then; -EACCES */
  WIRE_BUILD_DIFF,  /* W_TEAM W_REF W_ID (the first build) W_BUILD (the second, of that template) -> W_COUNT, descriptor
                       of the differences, JSON; -ENOENT, -EDQUOT */
  WIRE_DOCTOR,      /* -> W_COUNT, descriptor of what `cloche doctor --json` prints; -EDQUOT */
  WIRE_NODE_CHANGE, /* W_STATE: enum node_status [W_ID: of that node; else of this one]; -ENOENT */
  WIRE_NODE_LIST,   /* [W_ID: that one alone] -> items of nodes (node_record.h), of all machines; -ENOENT, -ESHUTDOWN */

  /* of the host's root user (cloche template ...) */
  WIRE_BUILD_SHOW = 96, /* W_TEAM W_REF -> template, W_LAYERS, W_CONFIG of the build */
  WIRE_GC,        /* W_MODE (1: only say what would go) W_TIMEOUT (seconds unused at least) -> items of W_NAME: paths */
  WIRE_BOX_TOKEN, /* W_ID -> W_SECRET: what the agent of a box of this id asks callers for */
  WIRE_TEMPLATE_IMPORT, /* W_TEAM W_REF (a name) W_NAME (an image, any file) [W_CPUS W_MEMORY_MB W_DISK_MB] -> template,
                           W_BUILD */
  WIRE_TEMPLATE_STORE,  /* [W_REF]: take in what is new in the store of built templates; W_BUILD of this one -> W_NAME:
                           its path */
  WIRE_LOGIN_CODE,      /* [W_TEAM] -> W_SECRET: a one-time code for the console, W_TIMEOUT (seconds) */

  /* webhooks (docs/events.md); "webhook" in an answer: W_ID W_TEAM W_NAME W_URL W_EVENTS W_ENABLED W_CREATED */
  WIRE_WEBHOOK_CREATE = 160, /* W_TEAM W_ID (drawn by the gate) W_NAME W_URL W_ORIGIN W_EVENTS W_SECRET W_ENABLED ->
                                webhook */
  WIRE_WEBHOOK_LIST,         /* W_TEAM -> items of webhooks */
  WIRE_WEBHOOK_GET,          /* W_TEAM W_ID -> webhook */
  WIRE_WEBHOOK_CHANGE,       /* as CREATE, each but the ids optional -> webhook */
  WIRE_WEBHOOK_DELETE,       /* W_TEAM W_ID */
  WIRE_WEBHOOK_DELIVERIES,   /* W_TEAM W_ID W_COUNT (groups) W_MODE (1 = oldest first) [W_CURSOR W_FROM W_TO W_STATE
                                (bits: 1 success, 2 failed) W_EVENTS] -> items, one per attempt, groups together;
                                W_CURSOR where there are more */
  WIRE_WEBHOOK_STATS,        /* W_TEAM W_ID W_FROM W_TO W_COUNT (width of a bucket, microseconds) -> items of
                                struct wire_webhook_bucket in W_SAMPLE */

  /* volumes (docs/volumes.md); "volume" in an answer: W_ID W_TEAM W_NAME W_CREATED */
  WIRE_VOLUME_CREATE = 240, /* W_TEAM W_ID (drawn by the gate) W_NAME -> volume, W_TOKEN; -EINVAL: the name is taken */
  WIRE_VOLUME_LIST,         /* W_TEAM -> items of volumes; root without W_TEAM: of all teams */
  WIRE_VOLUME_GET,          /* W_TEAM W_ID -> volume, W_TOKEN */
  WIRE_VOLUME_DELETE,       /* W_TEAM W_ID; -EBUSY while sandboxes mount it */
  /* About files of a volume: W_ID W_TOKEN (root: W_TEAM instead) W_OP (enum content_op) W_PATH (volume_path.h) and what
   * the operation says -> W_TEAM and W_BODY (a file, JSON), or a descriptor and W_COUNT (its bytes). -EACCES: the token
   * is wrong; -EPERM: another volume's. The warden passes it on to the content role, without the token, with a
   * descriptor of the volume's root, and the answer back. */
  WIRE_CONTENT,
  WIRE_VOLUME_USAGE,   /* root's: W_TEAM W_ID -> W_SAMPLE: struct wire_volume_usage */
  WIRE_CONTENT_FORGET, /* warden to content, no answer: W_ID was deleted, its uploads are given up */
  WIRE_CONTENT_CANCEL, /* warden to content, no answer: nobody waits for the request of this id any more */
  WIRE_VOLUME_ATTACH,  /* root's: W_TEAM W_ID W_NAME: one whose files another server made in the shared volumes_dir */
  WIRE_VOLUME_OPEN,    /* root's: W_TEAM W_ID -> descriptor of the root of its tree, for `cloche backup` */
  WIRE_CONTENT_PING,   /* warden to content, and back at once: the content role's loop works */

  /* between warden and sender */
  WIRE_SENDER_HELLO = 176, /* to the sender, first: W_FROM (first address of the boxes' /16, 0 = none) */
  WIRE_SEND,               /* to the sender: W_ID (of the attempt) W_URL W_HEADERS ("name: value" lines) W_BODY */
  WIRE_SENT, /* from the sender: W_ID W_CLASS (enum delivery_class) W_DURATION (ms) [W_HTTP_STATUS W_HEADERS (JSON)
                W_BODY W_MESSAGE] */

  /* from the warden to the store process, which answers each (docs/cluster.md); -ENOTCONN: PostgreSQL is away */
  WIRE_STORE_NODE = 256, /* a node (node_record.h) W_TIMEOUT (its lease, seconds) W_LAST (hours that others
                          * stay in the list after theirs ended) W_MODE (1: it has just begun) ->
                          * W_RUN (its epoch) W_STATE (what it was told to become, 0 = nothing); -EEXIST: the name is
                          * another machine's, -ESTALE: another one has taken its place */
  WIRE_STORE_NODE_LIST,  /* [W_ID] -> items of nodes */
  WIRE_STORE_NODE_ORDER, /* W_ID W_STATE; -ENOENT */

  WIRE_AUDIT = 190,  /* gate to the audit role, no answer: see audit_record.h */
  WIRE_SPAN,         /* gate to the exporter, no answer: see span.h */
  WIRE_OTLP_METRICS, /* the same: W_BODY (a part of a request's JSON) W_LAST (1: the last one) */
  WIRE_OTLP_LOG,     /* warden to the exporter, no answer: W_ID W_TEAM W_FROM (wall us: of lines from then on), with the
                        descriptor of the box's log ring; without one: that box is over */

  /* secrets (docs/secrets.md); "secret" in an answer: W_ID W_TEAM W_NAME W_VERSION W_METADATA W_CREATED W_UPDATED;
   * never a value. W_REF names one: an id or a name. */
  WIRE_SECRET_CREATE = 208, /* W_TEAM W_ID (drawn by the gate) W_NAME W_SECRET [W_METADATA] -> secret; -EEXIST, -E2BIG,
                               -ENOKEY */
  WIRE_SECRET_LIST,     /* W_TEAM W_COUNT [W_FROM W_REF: behind the secret of that time and id] -> items of secrets */
  WIRE_SECRET_GET,      /* W_TEAM W_REF -> secret */
  WIRE_SECRET_CHANGE,   /* W_TEAM W_REF W_BUILD (drawn by the gate) W_SECRET [W_METADATA] -> secret */
  WIRE_SECRET_DELETE,   /* W_TEAM W_REF */
  WIRE_SECRET_ROTATE,   /* a new master key -> W_COUNT: values that are sealed by it */
  WIRE_IDENTITY_KEYS,   /* -> W_BODY: what verifies identity tokens, a JSON Web Key Set; W_URL: the issuer, may be empty
                         */
  WIRE_IDENTITY_ROTATE, /* another key signs */
  WIRE_IDENTITY_TOKEN,  /* W_ID W_NAME -> W_TOKEN: an identity token of a box */
  WIRE_SECRET_CHECK,    /* -> W_COUNT (values that open) W_LAST (that do not) W_KEY_ID W_KEYS (how many) W_NAME (where
                           they are from) [W_MESSAGE] */
};

enum content_op {
  CONTENT_STAT = 1,
  CONTENT_CHANGE, /* [W_UID W_GID W_PERMISSIONS W_UPDATED] */
  CONTENT_REMOVE,
  CONTENT_LIST,   /* W_DEPTH -> descriptor of a JSON array */
  CONTENT_MKDIR,  /* W_UID W_GID W_PERMISSIONS W_FORCE */
  CONTENT_READ,   /* -> descriptor */
  CONTENT_UPLOAD, /* W_UPLOAD (drawn by the gate) W_FORCE [W_COUNT: bytes to come] -> descriptor to write to */
  CONTENT_COMMIT, /* W_UPLOAD W_COUNT W_UID W_GID W_PERMISSIONS W_FORCE [W_UPDATED]: it appears under its path */
  CONTENT_DROP,   /* W_UPLOAD: it is given up */
  CONTENT_LINK,   /* W_TARGET W_UID W_GID: a symbolic link, in the place of what is there */
};

/* Of a machine: one that drains takes no new boxes; one that was stopped stands by. The last two are found out by the
 * lease and never set. */
enum node_status { NODE_READY = 1, NODE_DRAINING, NODE_STANDBY, NODE_UNHEALTHY };

/* Of a template's build. */
enum job_state { JOB_WAITING = 1, JOB_BUILDING, JOB_ERROR, JOB_READY };

enum wire_tag {
  W_ID = 1,
  W_TEAM,
  W_NAME,
  W_SLUG,
  W_REF,
  W_TEMPLATE,
  W_ALIAS,
  W_BUILD,
  W_STARTED, /* wall microseconds */
  W_END,     /* wall microseconds */
  W_STATE,   /* enum box_state */
  W_CPUS,
  W_MEMORY_MB,
  W_DISK_MB,
  W_FLAGS,   /* BOX_* */
  W_CONFIG,  /* JSON, the gate's own */
  W_INIT,    /* JSON, for the agent */
  W_RUN,     /* counts the lives of a box: a resumed box has a new one */
  W_TIMEOUT, /* seconds */
  W_MODE,    /* enum timeout_mode */
  W_PORT,
  W_KEYHASH, /* 32 bytes */
  W_MASK,
  W_SECRET,
  W_DOMAIN,
  W_CAUSE,
  W_MESSAGE,
  W_FROM,
  W_TO,
  W_SAMPLE,
  W_COUNT,
  W_CREATED,
  W_PUBLIC,
  W_SPAWNS,
  W_LAST,
  W_TAG,
  W_RESUMED,       /* 1: the box was asleep and this question woke it */
  W_RETRY,         /* seconds after which a refused create may be tried again */
  W_BUILDS,        /* number of builds of a template */
  W_STATUS,        /* struct wire_status */
  W_LIMIT_BOXES,   /* a team's limits; 0 = the server's */
  W_LIMIT_RATE,    /* creates per second */
  W_LIMIT_TIMEOUT, /* seconds of one run */
  W_LIMIT_CPUS,
  W_LIMIT_MEMORY_MB,
  W_LIMIT_DISK_MB,
  W_LIMIT_STORAGE_MB, /* of uploads, snapshots and paused boxes */
  W_LIMIT_PAUSED,
  W_LIMIT_SNAPSHOTS,
  W_ALLOW,      /* lines of addresses, prefixes and names a box may reach */
  W_DENY,       /* lines of addresses and prefixes it may not */
  W_TRACE,      /* struct wire_trace, in the answer to a create, a pause or a resume */
  W_COLD,       /* 1: without memory */
  W_TIER,       /* enum box_tier, of a paused box */
  W_RECIPE,     /* see recipe.h */
  W_STEP,       /* where a build failed: "base", "finalize" or a number from 1 */
  W_PROOF,      /* SHA-256 of the API key that a client showed */
  W_ADMIN,      /* SHA-256 of the administrator's token that a client showed */
  W_CLIENT,     /* 16 bytes: the client's IPv6 address or its network, IPv4 mapped */
  W_TOKEN,      /* a box's access token */
  W_TRAFFIC,    /* a box's traffic token */
  W_TOKEN_HASH, /* SHA-256 of them */
  W_TRAFFIC_HASH,
  W_SIGNATURE,
  W_MOST,                 /* bytes of an upload of unknown length */
  W_LIMIT_TOTAL_MB = 95,  /* memory of a team's running boxes together */
  W_LAYERS = 96,          /* paths, top first, one per line */
  W_HEALTHY = 97,         /* 1: only if the box's agent answers */
  W_IDEMPOTENCY_KEY = 98, /* of a create: the client's name for it */
  W_FINGERPRINT = 99,     /* SHA-256 of all that has an effect in such a create */
  W_EGRESS = 100,       /* what the egress gateway does for the box, as egress_policy_pack writes it; empty = nothing */
  W_RULES = 101,        /* header rules as they are told back, JSON: kept sealed beside W_EGRESS, apart from W_CONFIG */
  W_MOUNTS = 110,       /* lines "name TAB path": volumes of a box */
  W_MOUNT_FAULTS = 111, /* what is wrong with others of a create, as text */
  W_ISOLATION = 112,    /* enum isolation, of a team or a build; 0 = no wish */
  W_EVENT = 120,        /* a lifecycle event as the REST API tells it, JSON */
  W_AFTER = 121,        /* the number of an event in the order of insertion */
  W_OFFSET = 122,
  W_TRACE_ID = 130, /* 16 bytes */
  W_SPAN_ID,        /* 8 bytes */
  W_PARENT_ID,      /* 8 bytes, zeros: none */
  W_MACHINE = 140,  /* of a node: what tells its data directory from all others */
  W_LABELS,         /* of a node: name=value, by spaces */
  W_TIERS,          /* of a node: kinds of boxes that it runs, by spaces */
  W_HARDWARE,       /* of a node: family, model, name and architecture of its processors, a line each */
  W_TEMPLATES,      /* of a node: names of templates that everyone may use and it has at hand, by spaces */
  W_URL = 160,
  W_ORIGIN,  /* scheme, host and port of a URL */
  W_EVENTS,  /* types of events, joined by commas */
  W_ENABLED, /* 0 or 1 */
  W_CURSOR,  /* of deliveries: the number of a group */
  W_HEADERS,
  W_BODY,
  W_CLASS,       /* enum delivery_class */
  W_HTTP_STATUS, /* of the receiver's answer; 0 = none */
  W_DURATION,    /* milliseconds */
  W_EVENT_ID,
  W_TYPE,    /* its type */
  W_REQUEST, /* headers of a request as JSON, secrets redacted */
  W_SENT,    /* body of a request */
  W_VERSION = 208,
  W_METADATA, /* JSON, an object of strings */
  W_UPDATED,  /* wall microseconds */
  W_KEY_ID,   /* of a master key */
  W_KEYS,
  W_TOKENS,   /* identity tokens of a box: lines of name, tab, audience */
  W_OP = 240, /* enum content_op */
  W_PATH,
  W_DEPTH,
  W_UID,
  W_GID,
  W_PERMISSIONS, /* of a file */
  W_FORCE,       /* 1: what is there is replaced */
  W_TARGET,      /* of a symbolic link */
  W_UPLOAD,      /* the name of an upload, drawn by the gate */
};

/* Only running and paused are written down; the others last for moments. */
enum box_state { BOX_STARTING = 1, BOX_RUNNING, BOX_PAUSED, BOX_ENDED, BOX_PAUSING, BOX_RESUMING, BOX_COPYING };
enum {
  BOX_SECURE = 1,
  BOX_INTERNET = 2,
  BOX_AUTO_PAUSE = 4,
  BOX_AUTO_RESUME = 8,
  BOX_PRIVATE = 16,
  BOX_LINKED = 32,     /* the warden's: it has outbound networking */
  BOX_AUTO_COLD = 64,  /* at its timeout only its files are kept */
  BOX_FIRST_API = 128, /* made by POST /sandboxes: by clients of all ages, among them those that send the interpreter no
                          access token */
  BOX_MICROVM = 512,   /* a guest with a kernel of its own; of a create: asked for */
  BOX_PROCESS = 1024,  /* of a create: processes in namespaces, asked for */
  BOX_AGENT_SILENT = 256, /* of a paused box: its agent did not answer when its memory was kept */
};
/* How deep a paused box sleeps: its processes stopped in memory; everything on disk; its files only. */
enum box_tier { TIER_FROZEN, TIER_CHECKPOINT, TIER_FILES };
enum timeout_mode { TIMEOUT_SET, TIMEOUT_EXTEND };
enum usage_mode { USAGE_JOINED, USAGE_MOST_RUNNING, USAGE_MOST_RATE };
/* CONNECT extends a running box and wakes a paused one; RESUME refuses a running one (-EALREADY); WAKE is traffic that
 * may wake a box made for it; JOIN only waits for a wake-up under way. */
enum connect_mode { CONNECT_CONNECT, CONNECT_RESUME, CONNECT_TRAFFIC, CONNECT_JOIN };

static inline bool box_state_paused(unsigned state)
{
  return state == BOX_PAUSED || state == BOX_PAUSING;
}

/* One measurement of a box, as W_SAMPLE carries it. */
struct wire_sample {
  int64_t wall_us;
  double cpu_pct;
  uint64_t mem_used, mem_cache, mem_total, disk_used, disk_total;
  uint32_t cpus;
};

/* How the warden is, as W_STATUS carries it. */
struct wire_status {
  int64_t started_us;
  uint64_t warm_boxes, cpus, memory; /* warm boxes; cores and bytes promised to running boxes */
  uint64_t running, paused, starting, removals, launches_total, launches_failed, resumes_total, pauses_total,
      ends_total;
  uint64_t checkpoints, checkpoint_bytes, checkpoint_ready; /* images on disk; whether boxes can be written to it */
  uint64_t events_total;                                    /* lifecycle events recorded */
  uint64_t webhooks_delivered, webhooks_failed, webhooks_waiting; /* attempts since the start; waiting or under way */
  uint64_t launches, transitions;                                 /* under way */
  uint64_t disk_free, disk_total;                                 /* of the data directory, bytes */
  uint64_t node;                                                  /* enum node_status */
  int64_t node_since_us;
};

/* What one box uses, and all those together that have no series of their own. */
struct wire_box_metrics {
  uint64_t state; /* enum box_state */
  uint64_t cpu_usec, mem_used, mem_total, disk_used, disk_total, net_in, net_out;
};
struct wire_team_metrics {
  uint64_t running, paused, snapshots, storage, storage_known; /* bytes; 0: not counted */
};

/* How full a volume is, as W_SAMPLE carries it; the limits 0 = none, whole 0: the numbers are a minimum. */
struct wire_volume_usage {
  uint64_t bytes, inodes, bytes_max, inodes_max, whole;
};

/* What became of an attempt to deliver an event. */
enum delivery_class {
  DELIVERY_OK,
  DELIVERY_HTTP,      /* an answer other than 2xx */
  DELIVERY_DNS,       /* the name did not resolve */
  DELIVERY_TIMEOUT,   /* no answer in time */
  DELIVERY_TRANSPORT, /* connect, TLS, a broken connection */
  DELIVERY_REQUEST,   /* it could not be made: a refused address */
  DELIVERY_SIGNATURE, /* it could not be signed */
  DELIVERY_CANCELED,  /* the webhook was disabled, or the server stopped */
  DELIVERY_CLASSES
};
#define DELIVERY_KEPT 4096u /* bytes kept of an answer's body, and of its headers */

/* Attempts of one webhook that began in a span of time, as W_SAMPLE carries them. */
struct wire_webhook_bucket {
  int64_t from_us;
  uint64_t total, failed, least_ms, most_ms, sum_ms;
};

/* When a create, a pause or a resume passed each mark, in microseconds of the monotonic clock, which all processes
 * share; 0 = it did not. */
struct wire_trace {
  int64_t came_us;  /* the question was read; of a pause or resume: it began */
  int64_t boot_us;  /* the namespaces are set up and the agent has its packet; it had waited its turn */
  int64_t ready_us; /* the agent's reply arrived; memory is dumped, frozen, restored or thawed */
  int64_t kept_us;  /* the box is in the store */
};

#define WIRE_AGAIN 1 /* this was asked before, of a warden that died since */

struct wire_head {
  uint32_t type;
  int32_t status; /* replies: 0 or negative errno; requests: 0 or WIRE_AGAIN */
  uint64_t id;
};

/* Building: wire_begin, wire_put..., then send b->p, b->n. */
void wire_begin(struct buf *b, enum wire_type type, uint64_t id, int status);
void wire_put(struct buf *b, enum wire_tag tag, struct str value);
void wire_putz(struct buf *b, enum wire_tag tag, const char *value);
void wire_put_u64(struct buf *b, enum wire_tag tag, uint64_t value);

/* Reading: wire_check says whether the packet is well formed; the getters need that. */
int wire_check(struct str packet);
const struct wire_head *wire_head(struct str packet);
struct str wire_get(struct str packet, enum wire_tag tag); /* p NULL when absent */
uint64_t wire_u64(struct str packet, enum wire_tag tag, uint64_t otherwise);
/* All fields in turn, *at from 0; false: no more. */
bool wire_next(struct str packet, size_t *at, enum wire_tag *tag, struct str *value);
int wire_copyz(struct str packet, enum wire_tag tag, char *dst, size_t size); /* -EINVAL absent, -ENAMETOOLONG */

#endif
