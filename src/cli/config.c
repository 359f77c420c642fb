/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - see config.h. A setting is one row of the table below: its name, where the value lands and as what, the
 * default, the range (of a text: its longest length), and the help. scripts/settings.py makes docs/settings.md of it.
 */
#include "cli/config.h"

#include "cli/cli.h"
#include "cli/config_table.h"
#include "jail/checkpoint/checkpoint.h"
#include "jail/vm/vm_parts.h"
#include <stdio.h>

#define MIB                        1048576

/* Where a value lands. A field of another type than these does not compile. */
#define FIELD(field)               (((struct config *)0)->field)
#define NUMBER_SIZE(field)         _Generic(FIELD(field), bool : 1, unsigned : 4, uint64_t : 8)
#define TEXT_SIZE(field)           _Generic(FIELD(field), const char * : sizeof(char *))
#define A_TEXT(live, field, words) KIND_TEXT, live, offsetof(struct config, field), TEXT_SIZE(field), 0, words
#define A_NUMBER(live, field, factor)                                                                                  \
  KIND_NUMBER, live, offsetof(struct config, field), NUMBER_SIZE(field), factor, NULL
#define A_CHOICE(live, field, words) KIND_CHOICE, live, offsetof(struct config, field), NUMBER_SIZE(field), 1, words
#define TEXT(field)                  A_TEXT(false, field, NULL)
#define WORD(field, words)           A_TEXT(false, field, words)
#define NUMBER(field)                A_NUMBER(false, field, 1)
#define TIMES(field, factor)         A_NUMBER(false, field, factor)
#define CHOICE(field, words)         A_CHOICE(false, field, words) /* its place lands */
/* The same of settings that SIGHUP changes: whoever reads the field reads it each time it is used, or role_changed of
 * its role hands it on. Texts change only where nobody keeps a pointer to them. */
#define LIVE_TEXT(field)             A_TEXT(true, field, NULL)
#define LIVE_WORD(field, words)      A_TEXT(true, field, words)
#define LIVE_NUMBER(field)           A_NUMBER(true, field, 1)
#define LIVE_TIMES(field, factor)    A_NUMBER(true, field, factor)
#define LIVE_CHOICE(field, words)    A_CHOICE(true, field, words)

static const struct setting settings[] = {
    {"listen", TEXT(listen), "127.0.0.1:3000", 0, 127,
     "address and port of the API and the edge; port 0 = any free one"},
    {"tls_listen", TEXT(tls_listen), "", 0, 127, "address and port of the same over https (HTTP/2); empty = none"},
    {"tls_cert", TEXT(tls_cert), "", 0, 511,
     "PEM file with its certificate, the chain behind it [<data>/tls/cert.pem]; read again when it changes"},
    {"tls_key", TEXT(tls_key), "", 0, 511, "PEM file with its private key [<data>/tls/key.pem]"},
    {"tls_plain", CHOICE(gate.tls_plain, "refuse loopback serve"), "loopback", 0, 2,
     "who may speak plain http on the https port: clients on this machine (loopback), everybody (serve), nobody "
     "(refuse); "
     "keys and tokens then cross the network in the clear"},
    {"data", TEXT(warden.data), DATA_DEFAULT, 0, 511, "directory of everything that must survive"},
    {"templates", TEXT(warden.templates), "/var/cache/cloche", 0, 511,
     "store of ready-made templates to take in at start"},
    {"runtime", TEXT(warden.runtime), "", 0, 511,
     "directory with the agent and the kernels (default: beside the program)"},
    {"domain", TEXT(warden.domain), "", 0, 255,
     "domain told to clients for reaching boxes by host name; empty = localhost to those who ask there, else none"},
    {"log_level", LIVE_WORD(log_level, "debug info warn error"), "info", 0, 15, "debug, info, warn or error"},
    {"admin_token", TEXT(warden.admin_token), "", 0, 127,
     "opens /nodes and /admin (header X-Admin-Token); empty = closed; better in the file or environment than on the "
     "command line"},
    {"auth_failures_per_minute", LIVE_NUMBER(gate.auth_failures_per_minute), "60", 0, 1000000,
     "wrong keys, tokens and signatures of one client address (behind a proxy: of all) before 429 is the answer; per "
     "gate; 0 = no limit"},
    {"unknown_boxes_per_minute", LIVE_NUMBER(gate.unknown_boxes_per_minute), "6000", 0, 100000000,
     "requests of one client address (behind a proxy: of all) for sandboxes that do not exist before 429 is the "
     "answer to further ones; sandboxes that exist are reached all the same; per gate; 0 = no limit"},
    {"interpreter_token", LIVE_CHOICE(gate.interpreter_compatible, "required compatible"), "required", 0, 1,
     "required = port 49999 of secure boxes asks for the access token; compatible = not of those made by POST "
     "/sandboxes (all 1.x, older 2.x)"},
    {"metrics_listen", TEXT(metrics_listen), "", 0, 127,
     "address and port for /metrics and health without a key; empty = none (/metrics is at `listen` with the "
     "administrator's token)"},
    {"metrics_teams_max", NUMBER(warden.metrics_teams_max), "20", 0, 256,
     "teams that have metrics of their own (running, creates, cells, errors, storage), first come, first served; the "
     "others are told together as the team `other`; 0 = none"},
    {"metrics_boxes_max", NUMBER(warden.metrics_boxes_max), "0", 0, 10000,
     "sandboxes that have metrics of their own (processor, memory, disk, network, state) for as long as they live; the "
     "others are told together as the box `other`; 0 = none"},
    {"console", TEXT(console), "", 0, 511,
     "directory of the web console that is served at / (default: beside the program); off = none"},
    {"console_code_seconds", LIVE_NUMBER(warden.console_code_s), "300", 10, 86400,
     "how long a sign-in link for the console works, once"},
    {"console_session_hours", LIVE_NUMBER(warden.console_session_h), "12", 1, 8760,
     "how long the API key works that such a link gives to a browser"},
    {"access_log_every", LIVE_NUMBER(gate.access_log_every), "0", 0, 1000000000,
     "one log line per so many requests; 1 = every one, 0 = none"},
    {"audit", CHOICE(gate.audit, "off changes all"), "changes", 0, 2,
     "which API calls are written down, with who, what, when and from where (docs/audit.md): changes = those that may "
     "change something, and those refused with 401 or 403; all = every one"},
    {"audit_to", CHOICE(audit.to_log, "files log"), "files", 0, 1,
     "files = <data>/audit/log, read by `cloche audit`; log = the server's log, which is the journal under systemd"},
    {"audit_file_mb", TIMES(audit.file_max, MIB), "16", 1, 65536, "MiB of one file of the audit log"},
    {"audit_files", NUMBER(audit.files_max), "8", 2, 10000, "such files at most; the oldest goes first"},
    {"audit_refused_files", NUMBER(audit.refused_files), "2", 2, 10000,
     "the same of requests without a key that is known, which have files of their own"},
    {"audit_refused_rate", LIVE_NUMBER(gate.audit_refused_rate), "10", 1, 1000000,
     "records a second of requests without a key that is known, per gate, and ten times as many at once; more are "
     "counted, and the count is recorded once a minute"},
    {"audit_team_rate", LIVE_NUMBER(gate.audit_team_rate), "200", 1, 1000000, "the same of one team"},
    {"audit_uid", NUMBER(audit.uid), "64995", 0, 4294967294,
     "user id of the process that writes the audit log; 0 = do not change it"},
    {"otlp_endpoint", TEXT(exporter.endpoint), "", 0, 511,
     "URL of an OpenTelemetry collector for OTLP over HTTP (http://127.0.0.1:4318), without /v1/traces; empty = "
     "nothing "
     "is exported (docs/telemetry.md)"},
    {"otlp_headers_file", TEXT(exporter.headers_file), "", 0, 511,
     "file of headers for it, a `Name: value` a line: what it is authorised with; empty = none"},
    {"otlp_ca", TEXT(exporter.ca), "", 0, 511,
     "PEM file of authorities that its certificate may be of, beside the system's; empty = none"},
    {"otlp_traces", NUMBER(gate.otlp_traces), "1", 0, 1, "1 = spans of creates, cells, pauses and the like are sent"},
    {"otlp_metrics", NUMBER(gate.otlp_metrics), "1", 0, 1, "1 = all metrics that /metrics has are sent"},
    {"otlp_logs", NUMBER(exporter.logs), "0", 0, 1,
     "1 = what sandboxes print is sent, too, as GET /sandboxes/{id}/logs has it: the words of users"},
    {"otlp_sample_percent", LIVE_NUMBER(gate.otlp_sample_percent), "100", 0, 100,
     "of requests without a `traceparent` so many are traced; one with it says itself whether it is"},
    {"otlp_metrics_seconds", NUMBER(gate.otlp_metrics_s), "30", 1, 3600, "between two tellings of all metrics"},
    {"otlp_batch_ms", LIVE_NUMBER(exporter.batch_ms), "1000", 1, 60000, "how long spans are gathered"},
    {"otlp_seconds", LIVE_NUMBER(exporter.seconds), "10", 1, 300, "longest wait for the collector's answer"},
    {"otlp_uid", NUMBER(exporter.uid), "64996", 0, 4294967294,
     "user id of the process that talks to it; 0 = do not change it"},
    {"store", TEXT(store.url), "", 0, 1023,
     "URL of a PostgreSQL that several machines share (postgres://USER@HOST:PORT/DATABASE, docs/cluster.md), without a "
     "password: one with it belongs into `store_file`; empty = this machine stands alone"},
    {"store_file", TEXT(store.file), "", 0, 511,
     "file that holds that URL instead, password included; only root should read it; empty = none"},
    {"store_uid", NUMBER(store.uid), "64997", 0, 4294967294,
     "user id of the process that talks to it; 0 = do not change it"},
    {"store_seconds", LIVE_NUMBER(warden.store_s), "5", 1, 60,
     "longest wait for its answer; then the client gets 503 with Retry-After"},
    {"node_name", TEXT(warden.node_name), "", 0, 63,
     "with `store`: this machine's name among them, letters, digits and . _ - [the host's name]"},
    {"node_address", TEXT(warden.node_address), "", 0, 127,
     "with `store`: host and port by which the other machines reach this one [tls_listen, else listen]"},
    {"node_labels", TEXT(warden.node_labels), "", 0, 511,
     "with `store`: what is told about this machine, name=value by spaces (zone=a disk=ssd)"},
    {"node_lease_seconds", NUMBER(warden.node_lease_s), "10", 2, 3600,
     "with `store`: a machine that was not heard of for so long counts as lost, and starts nothing by itself; it is "
     "heard of three times as often"},
    {"node_forget_hours", NUMBER(warden.node_forget_h), "168", 1, 87600,
     "with `store`: how long a machine stays in the list after its lease has ended"},
    {"gates", NUMBER(gates), "0", 0, 256, "gate processes; 0 = one per core"},
    {"gate_uid", NUMBER(gate.uid), "64990", 0, 4294967294, "user id the gates run as; 0 = do not change it"},
    {"id_base", NUMBER(warden.id_base), "536870912", 65536, 2147483648, "first host user id of the boxes' ranges"},
    {"boxes_max", LIVE_NUMBER(warden.boxes_max), "2000", 1, 30000, "boxes alive at once"},
    {"team_boxes_max", LIVE_NUMBER(warden.team_boxes_max), "1000", 0, 30000,
     "running boxes of a team that has no limit of its own; 0 = no limit"},
    {"team_creates_per_second", LIVE_NUMBER(warden.team_creates_per_s), "1000", 0, 100000,
     "creates per second of such a team (bursts of two seconds); 0 = no limit"},
    {"team_memory_mb", LIVE_NUMBER(warden.team_memory_mb), "0", 0, 2147483647,
     "MiB of memory of the running and frozen boxes of such a team together; 0 = no limit"},
    {"box_cpus_max", LIVE_NUMBER(warden.box_cpus_max), "0", 0, 1024,
     "processors of one box at most, whoever asks; 0 = those of the machine, and two at least"},
    {"box_memory_max_mb", LIVE_NUMBER(warden.box_memory_max_mb), "0", 0, 2147483647,
     "MiB of memory of one box at most; 0 = the machine's, and 1024 at least"},
    {"box_disk_max_mb", LIVE_NUMBER(warden.box_disk_max_mb), "65536", 0, 2147483647,
     "MiB of disk of one box at most; 0 = no limit"},
    {"team_storage_mb", LIVE_NUMBER(warden.team_storage_mb), "102400", 0, 1073741824,
     "MiB that such a team may keep of uploads, templates, snapshots, forks and paused boxes, their disks included; 0 "
     "= no limit"},
    {"team_paused_max", LIVE_NUMBER(warden.team_paused_max), "1000", 0, 1000000,
     "paused boxes of such a team; 0 = no limit"},
    {"team_snapshots_max", LIVE_NUMBER(warden.team_snapshots_max), "1000", 0, 1000000,
     "snapshots of such a team; 0 = no limit"},
    {"heaps_mb", LIVE_NUMBER(warden.heaps_mb), "8192", 0, 1073741824,
     "MiB of Pythons' loaded memory kept for paused boxes, snapshots and forks, of all zygotes together; 0 = no limit"},
    {"team_heaps_mb", LIVE_NUMBER(warden.team_heaps_mb), "2048", 0, 1073741824,
     "the same of the zygotes of one team's templates (private_zygotes); 0 = no limit"},
    {"disk_creates_mb", LIVE_NUMBER(warden.disk_creates_mb), "4096", 0, 1073741824,
     "MiB of the data directory's disk that must be free for creates and forks, a tenth of the disk at most; below it "
     "they are refused with 507, and all else goes on"},
    {"disk_builds_mb", LIVE_NUMBER(warden.disk_builds_mb), "3072", 0, 1073741824,
     "the same for builds, uploads and snapshots, 3/40 of the disk at most"},
    {"disk_reserve_mb", LIVE_NUMBER(warden.disk_reserve_mb), "2048", 0, 1073741824,
     "MiB of the data directory's disk that everything leaves free, pauses too, a twentieth of the disk at most"},
    {"disk_stop_mb", LIVE_NUMBER(warden.disk_stop_mb), "1024", 0, 1073741824,
     "below it, a fortieth of the disk at most, builds end and boxes that write are frozen until there is room, those "
     "of the team that takes the most first; below a quarter of it that team's largest box is ended, and its end says "
     "so; 0 = never"},
    {"memory_low_mb", LIVE_NUMBER(warden.memory_low_mb), "256", 0, 1073741824,
     "MiB of the machine's memory that must be available for creates, forks and resumes; below it those of teams that "
     "use their share of what sandboxes use are refused with 503, below memory_kill_mb (where that is 0: half of this) "
     "everyone's; 0 = no limit"},
    {"memory_kill_mb", LIVE_NUMBER(warden.memory_kill_mb), "128", 0, 1073741824,
     "below it boxes of the team that uses the most go, one every 5 s: one made to be paused at its timeout is paused, "
     "and ended where that frees nothing in 30 s; otherwise its largest is ended, and its end says so; 0 = the kernel "
     "decides"},
    {"pool", LIVE_NUMBER(warden.pool), "4", 0, 1000, "warm boxes per template in use; 0 = none"},
    {"pool_crowd", LIVE_NUMBER(warden.pool_crowd), "100", 0, 1000,
     "warm boxes beside those, as many as creates at once found none; half of them go with each calm minute; about 3 "
     "MB each"},
    {"pool_calm_seconds", LIVE_NUMBER(warden.pool_calm_s), "60", 1, 86400, "length of such a calm minute"},
    {"pool_spare_percent", LIVE_NUMBER(warden.pool_spare), "2", 0, 50,
     "percent of the available memory for more warm boxes, pool_crowd at most, of the template requested last; created "
     "while the server is idle; 0 = none"},
    {"ready_pool", LIVE_NUMBER(warden.ready_pool), "2", 0, 100,
     "boxes kept ready per template in use whose start command runs (restored and frozen) or whose Python differs from "
     "the ready-made templates' (loaded in each); 0 = none"},
    {"ready_pool_mb", LIVE_NUMBER(warden.ready_pool_mb), "1024", 1, 1000000,
     "memory of those boxes of all templates together, in equal shares for the teams that use some; a template in use "
     "gets room from a team over its share, or from the least recently used one of its own team"},
    {"nets_ready", LIVE_NUMBER(warden.nets_ready), "4", 0, 64,
     "namespaces with veth, ids and control groups created ahead for boxes that no warm box serves; 0 = none"},
    {"disks_ready", LIVE_NUMBER(warden.disks_ready), "8", 0, 64, "empty disks created ahead, per size in use"},
    {"disks_kept", LIVE_NUMBER(warden.disks_kept), "32", 0, 64,
     "such disks at most, with those of ended boxes that were wiped for others; 0 = none is used again"},
    {"disk_wipe_files", LIVE_NUMBER(warden.disk_wipe_files), "2000", 0, 1000000,
     "files an ended box may have on its disk for it to be wiped and used again"},
    {"disk_wipe_mb", LIVE_NUMBER(warden.disk_wipe_mb), "64", 0, 65536, "MiB of them"},
    {"zygotes", NUMBER(warden.zygotes), "1", 0, 1, "1 = Python is loaded once per template and forked into new boxes"},
    {"zygotes_max", LIVE_NUMBER(warden.zygotes_max), "8", 1, 1000,
     "Pythons kept loaded for private templates, the latest used ones; about 100 MB each"},
    {"zygote_keys_max", LIVE_NUMBER(warden.zygote_keys_max), "1024", 16, 1000000,
     "templates with a Python of their own that are remembered by what it would load; those used longest ago are "
     "looked "
     "at again when they are needed"},
    {"warm_pools_max", LIVE_NUMBER(warden.warm_pools_max), "1024", 16, 1000000,
     "templates whose use is remembered for the warm pool, those without warm boxes included"},
    {"private_zygotes", NUMBER(warden.private_zygotes), "0", 0, 1,
     "1 = Python of templates that teams built is loaded outside their boxes, too: only where all teams are trusted "
     "(docs/security/entering.md)"},
    {"internet", NUMBER(warden.internet), "1", 0, 1,
     "1 = boxes may have outbound networking (needs nftables and IPv4 forwarding); 0 = loopback only"},
    {"net_pool", TEXT(warden.net_pool), "", 0, 31,
     "first address of the /16 the boxes' links use, nobody else's; empty = one of 10.128.0.0 to 10.227.0.0"},
    {"resolver", TEXT(warden.resolver), "", 0, 31, "name server for boxes; empty = the host's own"},
    {"net_connections", LIVE_NUMBER(warden.net_connections), "1024", 1, 1000000,
     "outbound connections a box may have open"},
    {"net_rate", LIVE_NUMBER(warden.net_rate), "0", 0, 100000000000, "bytes per second each way per box; 0 = no cap"},
    {"network_log", CHOICE(warden.network_log, "off names full"), "names", 0, 2,
     "what is written down of boxes' connections (docs/network-log.md): names = names, addresses, ports and verdicts; "
     "full = also bytes, and method, path and status of requests that the egress gateway inspects"},
    {"network_log_kb", NUMBER(warden.network_log_kb), "256", 16, 4096,
     "size of the network log of a box; the oldest entries go first"},
    {"pids_max", LIVE_NUMBER(warden.pids_max), "4096", 16, 4194304, "processes per box"},
    {"open_files", LIVE_NUMBER(warden.open_files), "65536", 64, 1048576, "open files per process of a box"},
    {"inotify_instances", NUMBER(warden.inotify_instances), "65536", 128, 1000000000,
     "inotify instances of all boxes of a zygote, 128 of them a box's; the host's limit is raised to it while the "
     "server runs"},
    {"host_processes", NUMBER(warden.host_processes), "4194304", 0, 4194304,
     "processes of the whole host: kernel.pid_max and kernel.threads-max are raised to it, until the machine restarts; "
     "0 = they stay"},
    {"host_open_files", NUMBER(warden.host_open_files), "1000000000", 0, 9000000000000000000,
     "open files of the whole host: fs.file-max is raised to it, until the machine restarts; 0 = it stays"},
    {"host_aio_requests", NUMBER(warden.host_aio_requests), "1073741824", 0, 9000000000000000000,
     "AIO requests of the whole host: fs.aio-max-nr is raised to it, until the machine restarts; 0 = it stays"},
    {"timeout_max_hours", LIVE_TIMES(warden.timeout_max_s, 3600), "24", 1, 8760, "longest life of one run of a box"},
    {"network_log_names", NUMBER(warden.network_log_names), "128", 1, 65536,
     "addresses of each box that the network log remembers with the names that they were told for, to name connections "
     "by; the newest"},
    {"network_log_connections", NUMBER(warden.network_log_connections), "128", 1, 65536,
     "connections of each box whose ends and bytes the network log will tell (network_log = full); the newest"},
    {"network_log_rate", NUMBER(warden.network_log_rate), "50", 1, 100000,
     "entries a second of each kind and box in the network log, with bursts of four times as many; more are counted as "
     "lost"},
    {"egress_seconds", LIVE_NUMBER(warden.egress_s), "10", 1, 120,
     "seconds the egress gateway has to take the rules of a sandbox, and the name of a proxy to be resolved; a create "
     "or an update fails then"},
    {"health_seconds", LIVE_NUMBER(warden.health_s), "2", 1, 60,
     "longest wait for the agent's answer before a pause with requireHealthyGuest; a silent one is answered with 503"},
    {"pause_health_seconds", LIVE_NUMBER(warden.pause_health_s), "5", 1, 60,
     "longest wait for the agent's answer before any other pause with memory; a box whose agent is silent is paused "
     "and "
     "marked: it resumes without memory only"},
    {"agent_seconds", LIVE_NUMBER(warden.agent_s), "10", 1, 600,
     "longest wait for the agent of a new or restored box; a box whose agent is silent is killed; 10 s more where its "
     "template waits "
     "for a command"},
    {"team_metrics_hours", LIVE_TIMES(warden.team_metrics_s, 3600), "168", 1, 87600,
     "how long is kept how many boxes each team had running and started (a row per 30 s in which it had any)"},
    {"keep_ended_hours", LIVE_TIMES(warden.keep_ended_s, 3600), "168", 0, 87600,
     "how long the cause of a box's end is remembered"},
    {"idempotency_seconds", LIVE_NUMBER(warden.idempotency_s), "86400", 1, 31536000,
     "how long the answer to a create with an Idempotency-Key is kept, from the first request on"},
    {"idempotency_wait_seconds", NUMBER(warden.idempotency_wait_s), "30", 1, 3600,
     "how long such a create that a killed server left without an answer counts as in progress (409); from then on its "
     "outcome is unknown (422)"},
    {"team_idempotency_keys_max", LIVE_NUMBER(warden.team_idempotency_max), "10000", 1, 1000000,
     "Idempotency-Keys kept for one team; one more is refused with 503"},
    {"events_keep_days", LIVE_NUMBER(warden.events_days), "7", 1, 365,
     "days for which lifecycle events (GET /events/sandboxes, cloche events) are kept"},
    {"events_max", LIVE_NUMBER(warden.events_max), "1000000", 1000, 100000000,
     "lifecycle events kept at most, the latest ones; each takes about 600 bytes of the database, and one with large "
     "metadata counts once more per KiB"},
    {"events_team_max", LIVE_NUMBER(warden.events_team_max), "500000", 100, 100000000,
     "the same of one team; over either, the oldest events of the team that has the most go"},
    {"store_log_mb", LIVE_NUMBER(warden.store_log_mb), "64", 1, 65536,
     "MiB of the database's log (cloche.db-wal) over which readers wait while it is emptied"},
    {"store_read_seconds", LIVE_NUMBER(warden.store_read_s), "3", 1, 60,
     "longest time that one request for events, deliveries or metrics reads in the database; over it the answer is "
     "503"},
    {"team_keys_max", LIVE_NUMBER(warden.team_keys_max), "1000", 1, 100000, "API keys and access tokens of one team"},
    {"access_token_keys_max", LIVE_NUMBER(warden.token_keys_max), "10", 1, 1000,
     "API keys that GET /teams made for one access token; one more replaces the least recently used one"},
    {"log_bytes", NUMBER(warden.log_bytes), "1048576", 0, 67108864,
     "bytes of output kept per box for its logs; 0 = none"},
    {"builds_max", LIVE_NUMBER(warden.builds_max), "4", 1, 64,
     "templates built at once, all but one of them of the same team; more wait for their turn, teams by turns"},
    {"team_templates_max", LIVE_NUMBER(warden.team_templates_max), "5000", 1, 1000000,
     "templates and snapshots of one team; more templates are refused"},
    {"team_builds_max", LIVE_NUMBER(warden.team_builds_max), "20", 1, 10000,
     "template builds of one team at once, waiting ones included; more are refused"},
    {"build_seconds", LIVE_NUMBER(warden.build_seconds), "3600", 1, 86400, "longest a template's build may take"},
    {"build_wait_seconds", LIVE_NUMBER(warden.build_wait_s), "86400", 1, 31536000,
     "how long a build that was requested may wait for its start"},
    {"keep_box_seconds", LIVE_NUMBER(warden.keep_box_s), "3600", 10, 86400,
     "life of the box in which a build failed, where the build was told to keep it"},
    {"build_keep_days", LIVE_TIMES(warden.build_keep_s, 86400), "30", 1, 3650,
     "days that failed builds are remembered, with their logs"},
    {"build_log_mb", LIVE_NUMBER(warden.build_log_mb), "4", 1, 1024,
     "MiB of one build's log; what comes after is left out"},
    {"upload_max_mb", LIVE_TIMES(gate.upload_max, MIB), "4096", 1, 1048576,
     "MiB of one archive uploaded for a COPY step"},
    {"upload_threads", NUMBER(gate.upload_threads), "4", 1, 64,
     "threads per gate that write such archives to the disk, and as many for files of volumes; half of them, rounded "
     "up, for one team at once"},
    {"lists_max", LIVE_NUMBER(gate.lists_max), "4", 1, 1000,
     "listings of sandboxes, templates and snapshots at once per gate; half of them, rounded up, for one team; others "
     "wait"},
    {"log_reads_max", LIVE_NUMBER(gate.log_reads_max), "8", 1, 1000,
     "logs of builds read at once per gate, and as many of sandboxes; half of them, rounded up, for one team"},
    {"log_keep_mb", LIVE_NUMBER(warden.log_keep_mb), "256", 0, 1048576,
     "MiB of logs of ended boxes kept at most, for keep_ended_hours"},
    {"image_registries", TEXT(warden.source.registries), "docker.io", 0, 511,
     "registries that templates may begin with images of, by spaces; *.NAME and * are patterns, and * lets clients "
     "make this machine ask any host"},
    {"image_insecure", TEXT(warden.source.insecure), "", 0, 255,
     "registries (HOST:PORT, by spaces) that are asked without TLS"},
    {"image_dir", TEXT(warden.source.dir), "", 0, 511,
     "directory of image files that templates may begin with (oci:PATH, docker-archive:PATH); empty = none"},
    {"image_aliases", TEXT(warden.source.aliases), "e2bdev/base=base e2bdev/code-interpreter=code-interpreter-v1", 0,
     511, "IMAGE=TEMPLATE by spaces: a template of this server stands for the image, which is not fetched"},
    {"image_ecr_url", TEXT(warden.source.ecr), "", 0, 255,
     "address that is asked for tokens of AWS registries, where credentials of the type aws are given; empty = AWS's "
     "own of the region"},
    {"image_uid", NUMBER(warden.source.uid), "64700", 1, 4294960000, "first user id of the programs that fetch images"},
    {"image_uids", NUMBER(warden.source.uids), "64", 1, 1024,
     "how many there are from that one on: each team that fetches at the same time has one to itself"},
    {"image_size_mb", NUMBER(warden.source.size_mb), "20480", 1, 1048576, "MiB of an unpacked image at most"},
    {"image_seconds", NUMBER(warden.source.seconds), "1800", 1, 86400, "time to fetch an image, and to unpack it"},
    {"image_layers", NUMBER(warden.source.layers), "40", 0, 80,
     "layers of an image that are kept apart and shared; an image with more becomes one layer"},
    {"image_cache_mb", NUMBER(warden.source.cache_mb), "8192", 0, 1048576, "MiB of fetched blobs kept per team"},
    {"cache_days", LIVE_NUMBER(warden.cache_days), "7", 0, 3650,
     "days that steps of builds, uploads and fetched blobs nobody needs are kept after their last use"},
    {"download_cache_mb", LIVE_NUMBER(warden.download_cache_mb), "4096", 0, 1048576,
     "MiB of downloads of pip, npm, uv and apt kept for a team's builds; 0 = none"},
    {"debian", NUMBER(debian), "1", 0, 1, "1 = Debian images that can't be fetched are made from packages"},
    {"debian_days", NUMBER(warden.source.debian_days), "7", 0, 3650, "how long a Debian root made so is used again"},
    {"debian_program", TEXT(warden.source.debian), "", 0, 511,
     "program that makes one: SUITE FILE.tar (default: beside the program)"},
    {"checkpoint", WORD(warden.checkpoint, "auto frozen"), "auto", 0, 15,
     "how boxes are paused: auto = on disk where this host can (criu), else in memory; frozen = in memory"},
    {"criu", TEXT(warden.criu), "", 0, 511,
     "the program that writes boxes to disk (default: of the package cloche-criu where that is installed, else "
     "/var/cache/cloche/criu/criu, which scripts/criu makes)"},
    {"isolation", CHOICE(warden.isolation_microvm, "process microvm"), "process", 0, 1,
     "what sandboxes are that ask for neither: processes in namespaces, or guests with a kernel of their own "
     "(docs/microvm.md)"},
    {"microvm_emulation", CHOICE(warden.microvm_emulation, "off on"), "off", 0, 1,
     "on = guests run without KVM, ten times slower and without a promise of isolation: for tests"},
    {"microvm", TEXT(warden.microvm), VM_PARTS_DEFAULT, 0, 511,
     "directory with QEMU and the guest's kernel for isolation = microvm (scripts/microvm makes it)"},
    {"checkpoint_jobs", NUMBER(warden.checkpoint_jobs), "4", 1, 64,
     "boxes of one team written to disk or read back at once; twice as many of all teams together"},
    {"checkpoint_seconds", LIVE_NUMBER(warden.checkpoint_s), "45", 5, 3600, "longest time for one of them"},
    {"checkpoint_zstd", LIVE_NUMBER(warden.checkpoint_zstd), "0", 0, 19,
     "zstd level at which memory of boxes paused on disk is compressed; 0 = off"},
    {"checkpoint_zstd_after", LIVE_NUMBER(warden.checkpoint_zstd_after_s), "60", 0, 31536000,
     "seconds a box has been paused before its memory is compressed"},
    {"box_connections_max", LIVE_NUMBER(gate.box_connections_max), "4096", 0, 1000000,
     "requests and streams at once into one box, per gate; 0 = no limit"},
    {"team_connections_max", LIVE_NUMBER(gate.team_connections_max), "5000", 0, 1000000,
     "requests, uploads and streams at once of one team, per gate, an eighth of them for the API alone; at most half "
     "of connections_max, which the default follows; 0 = no limit"},
    {"address_connections_max", LIVE_NUMBER(gate.address_connections_max), "1000", 0, 1000000,
     "connections per gate from one address (IPv6: one /64) without an accepted request yet; 0 = no limit, for a "
     "server behind a proxy"},
    {"buffers_mb", LIVE_TIMES(gate.buffers_max, MIB), "1024", 0, 1048576,
     "MiB per gate that wait for clients and boxes that do not read; over it those that stand still longest are cut; 0 "
     "= no limit"},
    {"connections_max", LIVE_NUMBER(gate.connections_max), "10000", 16, 1000000,
     "open client connections per gate; over it the longest idle one goes"},
    {"client_head_seconds", LIVE_NUMBER(gate.client_head_s), "30", 1, 3600, "time a client has for a request's head"},
    {"client_idle_seconds", LIVE_NUMBER(gate.client_idle_s), "640", 1, 86400,
     "time a connection may wait for its next request"},
    {"client_body_seconds", LIVE_NUMBER(gate.client_body_s), "300", 1, 86400,
     "longest silence inside a request's body"},
    {"client_stall_seconds", LIVE_NUMBER(gate.client_stall_s), "900", 0, 86400,
     "longest time a client may take no byte of an answer; 0 = no limit"},
    {"volumes_backing", CHOICE(warden.volumes_directory, "image directory"), "image", 0, 1,
     "image = each volume is an ext4 image of a fixed size; directory = a directory tree on the filesystem of "
     "volumes_dir, which several machines may share"},
    {"volumes_dir", TEXT(warden.volumes_dir), "", 0, 511, "where the files of volumes are [<data>/volumes]"},
    {"volumes_unmapped", NUMBER(warden.volumes_unmapped), "0", 0, 1,
     "1 = volumes on a filesystem without idmapped mounts (NFS, most of FUSE) are mounted as they are, and files "
     "belong "
     "to nobody in sandboxes; 0 = such a mount is refused"},
    {"volume_mb", LIVE_NUMBER(warden.volume_mb), "10240", 16, 1073741824, "MiB of one volume"},
    {"volume_inodes", LIVE_NUMBER(warden.volume_inodes), "655360", 16, 4000000000,
     "files and directories of one volume"},
    {"team_volumes_mb", LIVE_NUMBER(warden.team_volumes_mb), "102400", 0, 1073741824,
     "MiB that the volumes of a team may have together, each counted as volume_mb; 0 = no limit"},
    {"team_volumes_inodes", LIVE_NUMBER(warden.team_volumes_inodes), "0", 0, 4000000000,
     "files and directories of them, each volume counted as volume_inodes; 0 = no limit"},
    {"box_volumes_max", LIVE_NUMBER(warden.box_volumes_max), "10", 0, 64, "volumes that one box mounts; 0 = none"},
    {"volume_scan_seconds", LIVE_NUMBER(warden.volume_scan_s), "60", 5, 86400,
     "between two measurements of a volume that is a directory without project quotas"},
    {"volume_scan_entries", LIVE_NUMBER(warden.volume_scan_entries), "1000000", 1000, 1000000000,
     "files that such a measurement looks at; a volume with more counts as full"},
    {"secrets_key_file", TEXT(warden.secrets_key_file), "", 0, 511,
     "file of the master key of secrets [<data>/secrets.key]; made at the first start; the variable CLOCHE_SECRETS_KEY "
     "and the systemd credential cloche-secrets-key come before it"},
    {"team_secrets_max", LIVE_NUMBER(warden.team_secrets_max), "100", 1, 10000, "secrets of one team"},
    {"secret_value_max", LIVE_NUMBER(gate.secret_value_max), "16384", 1, 65536,
     "bytes of a secret's value; it is filled into a header, and few servers take longer ones"},
    {"identity_issuer", TEXT(warden.identity_issuer), "", 0, 255,
     "URL of this server as those who verify identity tokens of sandboxes reach it; empty = tokens name no issuer"},
    {"identity_trust_domain", TEXT(warden.identity_trust_domain), "", 0, 255,
     "SPIFFE trust domain in the subject of identity tokens; empty = the domain, or `cloche` without one"},
    {"identity_token_seconds", LIVE_NUMBER(warden.identity_token_s), "300", 30, 86400, "life of an identity token"},
    {"identity_tokens_per_second", LIVE_NUMBER(warden.identity_tokens_per_s), "100", 1, 100000,
     "identity tokens signed for one sandbox; one that asks more often has its tokens used again for a second"},
    {"identity_key_days", LIVE_NUMBER(warden.identity_key_days), "90", 0, 3650,
     "days after which another key signs identity tokens; 0 = never by itself"},
    {"team_webhooks_max", LIVE_NUMBER(warden.team_webhooks_max), "20", 1, 1000,
     "webhooks of one team; each of its events is recorded once per webhook"},
    {"volume_listing_max", LIVE_NUMBER(content.listing_max), "100000", 1, 10000000,
     "entries of one listing of a volume's directory"},
    {"volume_listing_seconds", LIVE_NUMBER(content.listing_s), "20", 1, 3600,
     "seconds after which a listing of a volume's directory is given up; it has one of the threads meanwhile"},
    {"volume_listing_mb", LIVE_NUMBER(content.listing_mb), "32", 1, 1024, "MiB of such a listing"},
    {"volume_team_listings", LIVE_NUMBER(gate.volume_team_listings), "8", 1, 10000,
     "listings of one team that wait in memory for their clients, per gate; more are answered with 429"},
    {"volume_removal_seconds", LIVE_NUMBER(content.removal_s), "20", 1, 3600,
     "seconds after which the removal of a tree by the content API is answered with 409; the same again goes on"},
    {"volume_threads", NUMBER(content.threads), "64", 1, 1024, "threads that work with the files of volumes"},
    {"volume_team_threads", NUMBER(content.team_threads), "16", 1, 1024, "of them for one team at once"},
    {"volume_own_threads", NUMBER(content.own_threads), "8", 1, 1024, "of them for one volume at once"},
    {"volume_uploads", LIVE_NUMBER(content.uploads), "4096", 1, 16384, "uploads into volumes under way at once"},
    {"volume_team_uploads", LIVE_NUMBER(content.team_uploads), "1024", 1, 16384, "the same of one team"},
    {"volume_own_uploads", LIVE_NUMBER(content.own_uploads), "512", 1, 16384, "the same into one volume"},
    {"volume_team_requests", LIVE_NUMBER(warden.volume_team_requests), "512", 1, 16384,
     "requests of one team about files of volumes under way at once; more are answered with 503"},
    {"volume_upload_idle_seconds", LIVE_NUMBER(content.upload_idle_s), "900", 60, 86400,
     "an upload into a volume that nothing was written to for so long is given up"},
    {"volume_timeout_seconds", LIVE_NUMBER(warden.volume_timeout_s), "60", 1, 86400,
     "a request about files of a volume that takes longer is answered with 503; with volume_sync = 1 give it as long "
     "as "
     "the disk needs for the largest upload"},
    {"volume_sync", LIVE_NUMBER(content.sync), "0", 0, 1,
     "1 = an upload into a volume is on the disk before it is answered, which then takes as long as the disk does; 0 = "
     "it is some seconds later"},
    {"team_volumes_max", LIVE_NUMBER(warden.team_volumes_max), "100", 0, 100000, "volumes of one team"},
    {"egress_port", NUMBER(warden.egress_port), "4980", 0, 65535,
     "port of the egress gateway at the boxes' gateway address, which boxes alone reach; 0 = no gateway: network.rules "
     "and egressProxy are refused"},
    {"egress_uid", NUMBER(egress.uid), "64993", 0, 4294967294,
     "user id of the egress gateway, also what the firewall knows it by; 0 = do not change it"},
    {"egress_roots", TEXT(egress.roots), "", 0, 511,
     "PEM file of authorities that servers behind network.rules may have certificates of, beside the system's; empty = "
     "none"},
    {"egress_connections", NUMBER(egress.connections), "16384", 1, 1000000,
     "connections through the egress gateway at once, of all boxes; fewer where the limit of open files is low"},
    {"egress_team_connections", LIVE_NUMBER(egress.team_connections), "4096", 1, 1000000, "the same of one team"},
    {"egress_box_connections", LIVE_NUMBER(egress.box_connections), "512", 1, 65535, "the same of one box"},
    {"egress_connect_seconds", LIVE_NUMBER(egress.connect_seconds), "10", 1, 300,
     "for the egress gateway to reach a server, by way of a proxy too"},
    {"egress_hello_seconds", LIVE_NUMBER(egress.hello_seconds), "10", 1, 300,
     "for a box to finish the hello or handshake of a connection through the egress gateway, or a request's head"},
    {"egress_idle_seconds", LIVE_NUMBER(egress.idle_seconds), "600", 1, 86400,
     "silence on such a connection, between requests or before an answer, until it is closed"},
    {"egress_head_kb", NUMBER(egress.head_kb), "128", 8, 1024, "KiB of a request's or answer's headers there"},
    {"egress_certificates", LIVE_NUMBER(egress.leaves), "64", 1, 10000,
     "certificates that it keeps per box; the one unused longest goes first"},
    {"egress_held_mb", NUMBER(egress.held_mb), "512", 16, 1000000,
     "MiB that wait for slow peers on all its connections; beyond it those that stand still longest are cut"},
    {"egress_token_requests", LIVE_NUMBER(egress.token_asks), "16", 1, 10000,
     "identity tokens that it asks for at once for one box; a request that needs one more is answered 502"},
    {"egress_idle_upstreams", LIVE_NUMBER(egress.idle_upstreams), "32", 0, 10000,
     "connections to servers that it keeps per box for the next request"},
    {"egress_streams", NUMBER(egress.streams), "32", 1, 256,
     "requests of one box at once on one HTTP/2 connection to a server"},
    {"egress_keep_seconds", LIVE_NUMBER(egress.keep_seconds), "30", 1, 3600, "seconds that it keeps them"},
    {"egress_replay_kb", NUMBER(egress.replay_kb), "64", 0, 16384,
     "KiB of a request's body that it keeps until the answer begins, to send the request again where a server of "
     "HTTP/2 "
     "asks for HTTP/1.1"},
    {"egress_value_kb", NUMBER(egress.value_kb), "128", 1, 1024,
     "KiB of a header's value with its placeholders filled"},
    {"egress_quiet_ms", LIVE_NUMBER(egress.quiet_ms), "1000", 50, 60000,
     "milliseconds after which a box that has said nothing on a new connection is taken to wait for the server's word"},
    {"egress_token_seconds", LIVE_NUMBER(egress.token_seconds), "5", 1, 60,
     "seconds for an identity token to be minted; the request is answered 502 then"},
    {"egress_certificates_per_second", LIVE_NUMBER(egress.leaves_rate), "20", 1, 10000,
     "certificates for new names that it signs for one box, with bursts of twice as many; connections beyond it are "
     "reset"},
    {"egress_lookups", NUMBER(egress.lookups), "8", 1, 128,
     "names of proxies that it resolves at once for one team; more wait"},
    {"egress_buffer_kb", NUMBER(egress.buffer_kb), "256", 16, 65536,
     "KiB that wait in each direction of a connection until the sender is held back"},
    {"egress_memory_mb", NUMBER(egress.memory_mb), "16384", 256, 4194304, "MiB of addresses that the process may have"},
    {"webhook_private_addresses", CHOICE(sender.private_allowed, "refuse allow"), "refuse", 0, 1,
     "allow = webhooks may reach private networks, loopback and this machine's own addresses; link-local and metadata "
     "addresses, boxes and this server's API never"},
    {"webhook_ca", TEXT(sender.ca), "", 0, 511,
     "PEM file of authorities that webhooks' certificates may be of, beside the system's; empty = none"},
    {"webhook_uid", NUMBER(sender.uid), "64992", 0, 4294967294,
     "user id of the process that sends events to webhooks; 0 = do not change it"},
    {"webhook_seconds", LIVE_NUMBER(sender.seconds), "10", 1, 60,
     "longest wait for the answer of a webhook's receiver"},
    {"webhook_attempts", LIVE_NUMBER(warden.webhook_attempts), "4", 1, 10,
     "attempts to deliver one event to one webhook"},
    {"webhook_retry_seconds", LIVE_NUMBER(warden.webhook_retry_s), "10", 1, 3600, "time between two of them"},
    {"webhook_connections", LIVE_NUMBER(warden.webhook_connections), "128", 1, 128,
     "deliveries under way at once, of all teams together"},
    {"webhook_team_connections", LIVE_NUMBER(warden.webhook_team_connections), "16", 1, 128, "the same of one team"},
    {"webhook_host_connections", LIVE_NUMBER(warden.webhook_host_connections), "8", 1, 128,
     "the same of one team to one scheme, host and port"},
    {"webhook_team_lookups", NUMBER(sender.team_lookups), "4", 1, 128,
     "names of one team's receivers that are looked up at once, of 128 threads: those whose name servers do not answer "
     "hold their places for some seconds, which further names of that team wait for"},
    {"webhook_team_queue", LIVE_NUMBER(warden.webhook_team_queue), "10000", 1, 1000000,
     "deliveries of one team that wait; over it the oldest one is recorded as failed. Also events that are not yet a "
     "delivery per webhook; over that an event is not sent"},
    {"webhook_team_queue_mb", LIVE_NUMBER(warden.webhook_team_queue_mb), "64", 1, 65536, "MiB of their events"},
    {"webhook_team_deliveries", LIVE_NUMBER(warden.webhook_team_deliveries), "100000", 1, 100000000,
     "deliveries of one team that are remembered, as long as events are; over it the oldest ones go"},
    {"webhook_team_deliveries_mb", LIVE_NUMBER(warden.webhook_team_deliveries_mb), "128", 1, 65536,
     "MiB of them, with events that wait; a delivery counts for 2 KiB and its texts"},
    {"mcp", LIVE_CHOICE(gate.mcp, "off on"), "on", 0, 1,
     "on = sandboxes as tools of the Model Context Protocol at /mcp; its process starts when it is first asked for"},
    {"mcp_uid", NUMBER(mcp.uid), "64994", 0, 4294967294, "user id of that process; 0 = do not change it"},
    {"mcp_sessions", LIVE_NUMBER(mcp.sessions), "512", 1, 100000, "sessions at /mcp at once, of all teams"},
    {"mcp_team_sessions", LIVE_NUMBER(mcp.team_sessions), "128", 1, 100000, "the same of one team"},
    {"mcp_team_mb", LIVE_NUMBER(mcp.team_mb), "512", 64, 65536,
     "MiB for messages and calls of one team under way; a message counts for five times its bytes, a call for 16 MiB"},
    {"mcp_session_boxes", LIVE_NUMBER(mcp.session_boxes), "8", 1, 1000, "sandboxes that one session may make"},
    {"mcp_session_calls", LIVE_NUMBER(mcp.session_calls), "8", 1, 1000, "calls of one session at once"},
    {"mcp_idle_seconds", LIVE_NUMBER(mcp.idle_s), "900", 30, 86400,
     "how long a session's sandbox waits for the next call, unless the client's URL says another time"},
    {"mcp_text_kb", LIVE_NUMBER(mcp.text_kb), "64", 1, 65536,
     "KiB of each text in a result; what is longer loses its middle"},
    {"mcp_result_kb", LIVE_NUMBER(mcp.result_kb), "640", 1, 32768,
     "KiB of pictures and data in a result; some clients read at most 1 MiB in one message"},
    {"mcp_call_seconds", LIVE_NUMBER(mcp.timeout_s), "3600", 1, 86400, "longest run of one call"},
    {"api_body_max", LIVE_NUMBER(gate.api_body_max), "16777216", 65536, 1073741824, "bytes of an API request body"},
};

/* ---- values ---- */

static void put_number(char *at, size_t size, uint64_t v)
{
  if (size == 1)
    *(bool *)at = v != 0;
  else if (size == 4)
    memcpy(at, &(uint32_t){(uint32_t)v}, 4);
  else
    memcpy(at, &v, 8);
}

static uint64_t get_number(const char *at, size_t size)
{
  uint32_t half;
  uint64_t v;
  if (size == 1)
    return *(const bool *)at;
  if (size == 8) {
    memcpy(&v, at, 8);
    return v;
  }
  memcpy(&half, at, 4);
  return half;
}

const char *setting_text(const struct config *c, const struct setting *s)
{
  const char *text;
  memcpy(&text, (const char *)c + s->at, sizeof(text));
  return text;
}

/* A text that is replaced may have been the administrator's token. */
void setting_put_text(struct config *c, const struct setting *s, const char *value)
{
  char *old = (char *)setting_text(c, s), *copy = xmalloc(strlen(value) + 1);
  memcpy(copy, value, strlen(value) + 1);
  memcpy((char *)c + s->at, &copy, sizeof(copy));
  if (old)
    explicit_bzero(old, strlen(old));
  free(old);
}

/* The place of a word among the choices, or -1. */
static int choice_of(const char *choices, const char *value)
{
  struct str rest = str_of(choices), word;
  for (int i = 0; rest.n; i++) {
    str_cut(rest, ' ', &word, &rest);
    if (str_is(word, value))
      return i;
  }
  return -1;
}

static struct str choice_at(const char *choices, uint64_t n)
{
  struct str rest = str_of(choices), word = STR_NONE;
  for (uint64_t i = 0; i <= n; i++)
    str_cut(rest, ' ', &word, &rest);
  return word;
}

const struct setting *settings_table(size_t *n)
{
  *n = ARRAY_LEN(settings);
  return settings;
}

size_t setting_place(const struct setting *s)
{
  return (size_t)(s - settings);
}

bool setting_secret(const struct setting *s)
{
  return !strcmp(s->name, "admin_token");
}

static void put_from(struct config *c, const struct setting *s, const char *from)
{
  char **at = c->from ? &c->from[setting_place(s)] : NULL;
  if (!at)
    return;
  free(*at);
  *at = xstrndup(from, strlen(from));
}

static int no_number(const struct setting *s, const char *value, const char *from, struct err *err)
{
  return err_set(err, -EINVAL, "%s: '%s' must be a whole number from %llu to %llu, not '%s'", from, s->name,
                 (unsigned long long)s->least, (unsigned long long)s->most, value);
}

int setting_put(struct config *c, const struct setting *s, const char *value, const char *from, struct err *err)
{
  char *at = (char *)c + s->at;
  uint64_t v = 0;
  if (s->choices) {
    int place = choice_of(s->choices, value);
    if (place < 0)
      return err_set(err, -EINVAL, "%s: '%s' must be one of: %s; not '%s'", from, s->name, s->choices, value);
    v = (uint64_t)place;
  }
  if (s->kind == KIND_TEXT && strlen(value) > s->most)
    return err_set(err, -EINVAL, "%s: '%s' is longer than %llu bytes", from, s->name, (unsigned long long)s->most);
  if (s->kind == KIND_NUMBER && (str_u64(str_of(value), &v) || v < s->least || v > s->most))
    return no_number(s, value, from, err);
  if (s->kind == KIND_TEXT)
    setting_put_text(c, s, value);
  else
    put_number(at, s->size, v * s->factor);
  put_from(c, s, from);
  return 0;
}

void setting_show(const struct config *c, const struct setting *s, struct buf *out)
{
  const char *at = (const char *)c + s->at;
  if (s->kind == KIND_NUMBER)
    buf_addf(out, "%llu", (unsigned long long)(get_number(at, s->size) / s->factor));
  else if (s->kind == KIND_CHOICE)
    buf_adds(out, choice_at(s->choices, get_number(at, s->size)));
  else
    buf_adds(out, str_of(setting_text(c, s)));
}

/* ---- names ---- */

const struct setting *setting_find(struct str name)
{
  for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
    const char *have = settings[i].name;
    bool same = strlen(have) == name.n;
    for (size_t k = 0; same && k < name.n; k++)
      same = have[k] == name.p[k] || (have[k] == '_' && name.p[k] == '-');
    if (same)
      return &settings[i];
  }
  return NULL;
}

int setting_unknown(const char *from, struct str name, struct err *err)
{
  const char *names[ARRAY_LEN(settings)];
  char word[64] = "";
  for (size_t i = 0; i < ARRAY_LEN(settings); i++)
    names[i] = settings[i].name;
  str_copyz(str_sub(name, 0, sizeof(word) - 1), word, sizeof(word));
  char meant[sizeof(word)];
  for (size_t i = 0; i < sizeof(word); i++)
    meant[i] = word[i] == '-' ? '_' : word[i];
  const char *near = did_you_mean(meant, names, ARRAY_LEN(names));
  return near ? err_set(err, -EINVAL, "%s: no setting '%s'; did you mean '%s'?", from, word, near)
              : err_set(err, -EINVAL, "%s: no setting '%s'; 'cloche serve --help' lists them", from, word);
}

/* ---- all of it ---- */

void config_free(struct config *c)
{
  for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
    char *text = settings[i].kind == KIND_TEXT ? (char *)setting_text(c, &settings[i]) : NULL;
    if (text)
      explicit_bzero(text, strlen(text));
    free(text);
    if (c->from)
      free(c->from[i]);
  }
  free(c->from);
  *c = (struct config){0};
}

void config_drop_admin_token(struct config *c)
{
  setting_put_text(c, setting_find(STR("admin_token")), "");
}

static const char *source_word(const char *from)
{
  return str_starts(str_of(from), STR("CLOCHE_")) ? "environment " : str_starts(str_of(from), STR("--")) ? "flag " : "";
}

void config_print(const struct config *c, bool changed)
{
  for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
    const struct setting *s = &settings[i];
    const char *from = c->from && c->from[i] ? c->from[i] : "default", *quote = s->kind == KIND_NUMBER ? "" : "\"";
    cleanup_buf struct buf b = BUF_INIT(4096);
    if (changed && !strcmp(from, "default"))
      continue;
    setting_show(c, s, &b);
    bool hide = setting_secret(s) && b.n;
    int n = printf("%s = %s" STR_FMT "%s", s->name, quote, STR_ARG(hide ? STR("(set)") : buf_str(&b)), quote);
    printf("%*s # %s%s\n", MAX(0, 44 - n), "", source_word(from), from);
    explicit_bzero(b.p, b.n);
  }
}

/* ---- for roles, and from a reading to the next ---- */

void config_pack(const struct config *c, bool live, bool secret, struct buf *out)
{
  for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
    const struct setting *s = &settings[i];
    if ((live && !s->live) || (!secret && setting_secret(s)))
      continue;
    buf_adds(out, str_of(s->name));
    buf_addc(out, 0);
    setting_show(c, s, out);
    buf_addc(out, 0);
  }
}

int config_unpack(struct config *c, struct str pack, bool live, struct err *err)
{
  struct str name, value;
  while (pack.n) {
    if (!str_cut(pack, 0, &name, &pack) || !str_cut(pack, 0, &value, &pack))
      return err_set(err, -EBADMSG, "settings of the supervisor are cut off");
    const struct setting *s = setting_find(name);
    int r = !s ? setting_unknown("supervisor", name, err) : live && !s->live ? 0 : setting_put(c, s, value.p, "", err);
    if (r)
      return r;
  }
  return 0;
}

size_t config_adopt(struct config *c, const struct config *fresh, config_change_fn changed, void *arg)
{
  size_t taken = 0;
  for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
    const struct setting *s = &settings[i];
    cleanup_buf struct buf old = BUF_INIT(4096), new = BUF_INIT(4096);
    setting_show(c, s, &old);
    setting_show(fresh, s, &new);
    bool same = str_eq(buf_str(&old), buf_str(&new));
    buf_addc(&old, 0);
    buf_addc(&new, 0);
    if (same)
      continue;
    const char *from = fresh->from[i], *hidden = "(not shown)";
    changed(s->name, setting_secret(s) ? hidden : old.p, setting_secret(s) ? hidden : new.p, from, s->live, arg);
    if (s->live && !setting_put(c, s, new.p, from, NULL))
      taken++;
    explicit_bzero(new.p, new.n);
    explicit_bzero(old.p, old.n);
  }
  config_derive(c);
  return taken;
}

void config_help(void)
{
  puts("cloche serve - run the server\n\n"
       "Usage: cloche serve [--config FILE] [--SETTING VALUE...]\n\n"
       "Runs in the foreground. SIGINT (Ctrl-C) ends all boxes and stops; SIGTERM stops the daemon and leaves the "
       "boxes\n"
       "running for the next start. A first API key is made at the first start and printed once.\n\n"
       "SIGHUP reads the config files again (docs/configuration.md).\n\n"
       "Settings (flag --name, environment CLOCHE_NAME, or `name = value` in " CONFIG_FILE "; flags win):");
  for (size_t i = 0; i < ARRAY_LEN(settings); i++)
    printf("  %-18s %s%s%s%s\n", settings[i].name, settings[i].meaning, settings[i].fallback[0] ? " [" : "",
           settings[i].fallback, settings[i].fallback[0] ? "]" : "");
  puts("\nOther flags:\n"
       "  --config FILE       read settings from FILE and FILE.d/*.conf [" CONFIG_FILE "]; none = from no file\n"
       "  --print-config      print the settings in force and where each comes from, and exit\n"
       "  --ready-file FILE   write {\"url\",\"apiKey\",\"pid\"} there when requests are answered\n"
       "  --exit-with PID     stop, boxes and all, when that process is gone");
}
