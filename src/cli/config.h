/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - every setting of the server: its name, default and meaning in one table. A flag beats the environment
 * (CLOCHE_<NAME>), which beats the file, which beats the default. */
#ifndef CLOCHE_CONFIG_H
#define CLOCHE_CONFIG_H

#include "gate/gate.h"
#include "warden/warden.h"

struct config {
  char net_pool[32], resolver[32], listen[128], data[512], templates[512], runtime[512], domain[256], log_level[16],
      admin_token[128], interpreter_token[16], tls_listen[128], tls_cert[512], tls_key[512], metrics_listen[128],
      checkpoint[16], criu[512];
  uint64_t auth_failures_per_minute, gates, gate_uid, id_base, boxes_max, pids_max, open_files, inotify_instances, pool,
      pool_crowd, disks_ready, disks_kept, disk_wipe_files, disk_wipe_mb, zygotes, zygotes_max, internet,
      net_connections, net_rate, timeout_max_hours, box_cpus_max, box_memory_max_mb, box_disk_max_mb, team_memory_mb,
      agent_seconds, keep_ended_hours, api_body_max;
  uint64_t pool_calm_seconds, pool_spare_percent, nets_ready;
  uint64_t team_boxes_max, team_creates_per_second, team_storage_mb, team_paused_max, team_snapshots_max,
      disk_reserve_mb;
  uint64_t log_bytes, log_keep_mb, box_connections_max, checkpoint_jobs, checkpoint_seconds;
  uint64_t checkpoint_zstd, checkpoint_zstd_after, ready_pool, ready_pool_mb, keep_box_seconds;
  uint64_t builds_max, team_builds_max, team_templates_max, build_seconds, build_wait_seconds, build_keep_days,
      build_log_mb, upload_max_mb;
  uint64_t client_head_seconds, client_idle_seconds, client_body_seconds, client_stall_seconds, connections_max,
      access_log_every;
  uint64_t team_connections_max, address_connections_max, buffers_mb;
  char image_registries[512], image_insecure[256], image_dir[512], image_aliases[512], image_ecr_url[256],
      debian_program[512];
  uint64_t image_uid, image_size_mb, image_seconds, image_cache_mb, image_layers, debian, debian_days, cache_days,
      download_cache_mb;
  /* flags only */
  char config_file[512], ready_file[512], role[16];
  int64_t exit_with;
  bool print, help;
};

/* Reads flags, environment and file. err names the key, the value and the remedy. */
int config_read(struct config *c, int argc, char **argv, struct err *err);
void config_print(const struct config *c);
void config_help(void);

#endif
