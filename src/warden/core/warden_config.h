/* SPDX-License-Identifier: Apache-2.0 */
/* warden_config.h - the settings of the warden. The rows of src/cli/config.c write them; the warden only reads. */
#ifndef CLOCHE_WARDEN_CONFIG_H
#define CLOCHE_WARDEN_CONFIG_H

#include "base/base.h"
#include <stdbool.h>
#include <stdint.h>

/* Where templates may begin: see source.h. */
struct source_rules {
  const char *registries; /* hosts that may be asked, by spaces; "*.x" and "*" are patterns */
  const char *insecure;   /* hosts that are asked without TLS */
  const char *dir;        /* of image files clients may name; "" = none */
  const char *aliases;    /* image=template, by spaces */
  const char *ecr;        /* who gives tokens for registries of AWS; "" = AWS */
  const char *debian;     /* program that makes a Debian root as an archive; "" = no such remedy */
  uint32_t uid;           /* the first user of those who fetch */
  unsigned uids;          /* how many there are */
  unsigned size_mb, seconds, cache_mb, debian_days;
  unsigned reserve_mb; /* of the disk, which no fetch takes */
  unsigned layers;     /* of an image that are kept apart; one with more becomes a single one */
};

struct warden_config {
  const char *data;        /* directory of all state */
  const char *templates;   /* store of ready-made templates to take in */
  const char *runtime;     /* directory with usr/lib/cloche/... to stage */
  const char *domain;      /* told to clients as the boxes' domain; "" = none */
  const char *admin_token; /* what an administrator shows; "" = there is none */
  bool clustered;          /* other machines share a store with this one: see cluster.h, and the next five */
  const char *node_name, *node_address, *node_labels;
  unsigned node_lease_s, node_forget_h;
  unsigned store_s;   /* longest wait for an answer of the store */
  uint32_t id_base;   /* first host uid of the boxes' ranges */
  unsigned boxes_max; /* running boxes at once */
  unsigned pids_max, open_files, inotify_instances;
  /* The kernel's limits for all: see host_limits.h. */
  uint64_t host_processes, host_open_files, host_aio_requests;
  bool internet;                      /* boxes may have outbound networking */
  const char *net_pool, *resolver;    /* IPv4 text; resolver "" = the host's own */
  unsigned net_connections;           /* open at a time per box */
  unsigned egress_port, egress_uid;   /* of the egress gateway; port 0 = there is none */
  uint64_t net_rate;                  /* bytes per second each way per box; 0 = no cap */
  unsigned network_log;               /* enum netlog_mode */
  unsigned network_log_kb;            /* of a box */
  unsigned network_log_rate;          /* entries a second of each kind and box */
  unsigned network_log_names;         /* addresses of a box that are remembered with their names */
  unsigned network_log_connections;   /* connections of a box whose ends will be told */
  unsigned pool;                      /* warm boxes per template in use; 0 = none */
  unsigned pool_crowd;                /* beside them at most, for a while after so many were missing at once */
  unsigned ready_pool, ready_pool_mb; /* the same of templates that hold memory, each; and of all of them together */
  unsigned pool_calm_s;               /* that while: half of them go with each */
  unsigned pool_spare;                /* percent of the memory at hand for spare boxes of the build asked for last */
  unsigned nets_ready;                /* jails with their network namespaces created ahead */
  unsigned disks_ready, disks_kept;   /* disks of boxes made ahead per size; with those of ended boxes at most */
  unsigned disk_wipe_files, disk_wipe_mb; /* what one of those may have had on it */
  bool zygotes;                           /* Python is loaded once per template and forked into boxes */
  bool private_zygotes;                   /* also what templates of teams would load, outside all boxes */
  unsigned zygote_keys_max;               /* remembered, of templates that load a Python of their own */
  unsigned warm_pools_max;                /* remembered, of templates without warm boxes, too */
  unsigned zygotes_max;                   /* loaded for private templates at most, the latest used ones */
  unsigned agent_s;                       /* longest wait for an agent's answer */
  unsigned egress_s;           /* the egress gateway has so long to take a policy, and a proxy's name to be resolved */
  unsigned health_s;           /* the same before a pause, where the client wants it healthy */
  unsigned pause_health_s;     /* the same before any other pause with memory: it is marked */
  unsigned idempotency_s;      /* how long the answer to a create with a key is kept */
  unsigned idempotency_wait_s; /* how long one that a dead warden left over may still be answered */
  unsigned team_idempotency_max;               /* keys kept for one team */
  unsigned team_metrics_s;                     /* how long the metrics of teams are kept */
  unsigned keep_ended_s;                       /* how long the cause of an end is remembered */
  unsigned events_days;                        /* how long lifecycle events are kept */
  uint64_t events_max, events_team_max;        /* and how many of them at most, of all teams and of one */
  unsigned store_log_mb, store_read_s;         /* the database's log, and the longest read of it */
  unsigned team_keys_max, token_keys_max;      /* keys of a team, and those of them made for one access token */
  unsigned console_code_s, console_session_h;  /* of the console: a sign-in link, and the key it gives */
  unsigned timeout_max_s;                      /* longest life of one run */
  unsigned team_boxes_max, team_creates_per_s; /* of a team that has no limits of its own; 0 = none */
  unsigned team_memory_mb;                     /* of such a team's boxes in memory together; 0 = no limit */
  unsigned box_cpus_max, box_memory_max_mb;    /* of one box, whoever asks; 0 = what the machine has */
  unsigned box_disk_max_mb;                    /* the same; 0 = no limit */
  unsigned team_storage_mb;                    /* uploads, snapshots and paused boxes of such a team; 0 = no limit */
  unsigned team_paused_max, team_snapshots_max;
  unsigned heaps_mb, team_heaps_mb;         /* of zygotes' memory on disk; 0 = no limit */
  unsigned disk_creates_mb, disk_builds_mb; /* free space below which creates, and builds, are refused */
  unsigned memory_low_mb, memory_kill_mb;   /* available memory below which creates are refused, and boxes go */
  unsigned disk_reserve_mb;                 /* of the disk's free space, for nobody's boxes */
  unsigned disk_stop_mb;                    /* free space below which boxes that write are frozen */
  unsigned log_bytes;                       /* size of a box's log ring; 0 = no logs */
  unsigned log_keep_mb;                     /* all logs of ended boxes together */
  unsigned download_cache_mb;               /* per team, for package managers in builds; 0 = none */
  unsigned cache_days;                      /* how long what no build needs is kept after its last use */
  struct source_rules source;               /* what templates may begin with */
  unsigned builds_max, team_builds_max;     /* templates built at once, on this server and of one team */
  unsigned team_templates_max;              /* templates and snapshots of one team */
  unsigned build_seconds, build_log_mb;     /* longest build, largest log of one */
  unsigned keep_box_s;                      /* life of the box of a failed build, where it was asked for */
  unsigned build_wait_s, build_keep_s;      /* an unstarted build lives so long, a failed one is remembered so long */
  unsigned metrics_boxes_max, metrics_teams_max; /* that have series of their own */
  const char *checkpoint;                        /* auto, or frozen: boxes sleep in memory only */
  const char *criu;                              /* the program */
  bool isolation_microvm, microvm_emulation;     /* the tier of creates that name none; guests without KVM */
  const char *microvm;                           /* parts of that tier, see jail/vm/vm_parts.h */
  unsigned checkpoint_jobs, checkpoint_s;        /* dumps and restores at once; the longest of one */
  unsigned checkpoint_zstd;         /* level at which images of boxes that sleep are packed; 0 = they are not */
  unsigned checkpoint_zstd_after_s; /* how long they have slept by then */
  bool volumes_unmapped;            /* where ids can't be mapped, boxes get volumes as they are */
  bool volumes_directory;           /* volumes are directories, else images; see volume_backing.h */
  const char *volumes_dir;
  unsigned volume_mb, team_volumes_mb;
  uint64_t volume_inodes, team_volumes_inodes;
  unsigned box_volumes_max;
  unsigned volume_timeout_s;     /* of a request about files of a volume */
  unsigned volume_team_requests; /* of a team at once; a descriptor each */
  unsigned volume_scan_s;        /* between two measurements of a directory without quotas */
  uint64_t volume_scan_entries;
  unsigned team_volumes_max;
  unsigned team_webhooks_max;
  unsigned webhook_attempts, webhook_retry_s; /* to deliver one event, and the time between them */
  unsigned webhook_connections, webhook_team_connections, webhook_host_connections; /* deliveries under way */
  unsigned webhook_team_queue, webhook_team_queue_mb;           /* deliveries of a team that wait, and their bytes */
  unsigned webhook_team_deliveries, webhook_team_deliveries_mb; /* that are remembered */
  const char *secrets_key_file;                                 /* of the master key; "" = <data>/secrets.key */
  unsigned team_secrets_max;
  const char *identity_issuer, *identity_trust_domain; /* of identity tokens; "" = none; "" = the domain */
  unsigned identity_tokens_per_s;                      /* of one box, before tokens are used again for a second */
  bool otlp_logs, otlp_traces;                         /* told to the exporter, where there is one */
  unsigned otlp_sample_percent;
  bool audit_reads;                             /* the audit log has also what root only reads */
  unsigned identity_token_s, identity_key_days; /* life of a token, and of the key that signs; 0 = for ever */
};

#endif
