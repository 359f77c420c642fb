/* SPDX-License-Identifier: Apache-2.0 */
/* team.c - `cloche team list|create|limit`. */
#include "cli/cli.h"
#include "cli/admin_client.h"
#include "wire/isolation.h"

#include <stdio.h>

static const char help[] = "cloche team - teams and their limits\n\n"
                           "Usage: cloche team list                       the teams, their limits and running boxes\n"
                           "       cloche team create NAME [LIMIT...]     a new team; prints its id\n"
                           "       cloche team limit ID LIMIT...          changes limits; 0 = the server's own\n\n"
                           "Limits: --boxes N            running boxes at once\n"
                           "        --creates N          creates per second\n"
                           "        --timeout SECONDS    longest life of one run\n"
                           "        --cpus N, --memory MIB, --disk MIB   largest box; not above the server's own\n"
                           "        --total-memory MIB   of all its running boxes together\n"
                           "        --storage MIB        uploads, snapshots and paused boxes together\n"
                           "        --paused N, --snapshots N            how many of each\n"
                           "        --isolation TIER     process, microvm or default: of sandboxes whose create\n"
                           "                             and template name none\n\n"
                           "Options: --data DIR   the server's data directory [/var/lib/cloche]\n"
                           "         --json       list: print JSON for programs\n\n"
                           "A key of a team: cloche key create --team ID";

static const struct {
  const char *flag;
  enum wire_tag tag;
} limits[] = {{"--boxes", W_LIMIT_BOXES},           {"--creates", W_LIMIT_RATE},
              {"--timeout", W_LIMIT_TIMEOUT},       {"--cpus", W_LIMIT_CPUS},
              {"--memory", W_LIMIT_MEMORY_MB},      {"--disk", W_LIMIT_DISK_MB},
              {"--total-memory", W_LIMIT_TOTAL_MB}, {"--storage", W_LIMIT_STORAGE_MB},
              {"--paused", W_LIMIT_PAUSED},         {"--snapshots", W_LIMIT_SNAPSHOTS}};

/* A limit as people read it: - where the server's own holds. */
static const char *shown(uint64_t v, char text[24])
{
  if (!v)
    return "-";
  snprintf(text, 24, "%llu", (unsigned long long)v);
  return text;
}

static void print_team(struct str p, void *arg)
{
  char text[ARRAY_LEN(limits)][24];
  printf("%-36.*s  %-20.*s %7llu", STR_ARG(wire_get(p, W_TEAM)), STR_ARG(wire_get(p, W_NAME)),
         (unsigned long long)wire_u64(p, W_COUNT, 0));
  for (size_t i = 0; i < ARRAY_LEN(limits); i++)
    printf(" %8s", shown(wire_u64(p, limits[i].tag, 0), text[i]));
  printf("  %s\n", isolation_name(wire_u64(p, W_ISOLATION, 0)));
}

static int list(struct line *l, bool json, struct err *err)
{
  static const struct json_field fields[] = {{"teamID", W_TEAM, FIELD_TEXT},
                                             {"name", W_NAME, FIELD_TEXT},
                                             {"runningSandboxes", W_COUNT, FIELD_NUMBER},
                                             {"sandboxes", W_LIMIT_BOXES, FIELD_NUMBER},
                                             {"createsPerSecond", W_LIMIT_RATE, FIELD_NUMBER},
                                             {"timeoutSeconds", W_LIMIT_TIMEOUT, FIELD_NUMBER},
                                             {"cpuCount", W_LIMIT_CPUS, FIELD_NUMBER},
                                             {"memoryMB", W_LIMIT_MEMORY_MB, FIELD_NUMBER},
                                             {"diskSizeMB", W_LIMIT_DISK_MB, FIELD_NUMBER},
                                             {"totalMemoryMB", W_LIMIT_TOTAL_MB, FIELD_NUMBER},
                                             {"storageMB", W_LIMIT_STORAGE_MB, FIELD_NUMBER},
                                             {"pausedSandboxes", W_LIMIT_PAUSED, FIELD_NUMBER},
                                             {"snapshots", W_LIMIT_SNAPSHOTS, FIELD_NUMBER}};
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  if (json) {
    wire_begin(&b, WIRE_TEAM_LIST, 1, 0);
    return admin_print_json(l, &b, fields, ARRAY_LEN(fields), err);
  }
  printf("%-36s  %-20s %7s %8s %8s %8s %8s %8s %8s %8s %8s %8s %9s  %s\n", "ID", "NAME", "RUNNING", "BOXES", "CREATES",
         "TIMEOUT", "CPUS", "MEMORY", "DISK", "TOTAL", "STORAGE", "PAUSED", "SNAPSHOTS", "ISOLATION");
  wire_begin(&b, WIRE_TEAM_LIST, 1, 0);
  return admin_call(l, &b, print_team, NULL, err);
}

static int put_limits(struct buf *b, int argc, char **argv, struct err *err)
{
  for (int i = 0; i < argc; i += 2) {
    uint64_t v;
    size_t k = 0;
    unsigned isolation;
    if (!strcmp(argv[i], "--isolation")) {
      if (i + 1 == argc || isolation_read(str_of(argv[i + 1]), &isolation))
        return err_set(err, -EINVAL, "--isolation needs process, microvm or default");
      wire_put_u64(b, W_ISOLATION, isolation);
      continue;
    }
    while (k < ARRAY_LEN(limits) && strcmp(limits[k].flag, argv[i]))
      k++;
    if (k == ARRAY_LEN(limits))
      return err_set(err, -EINVAL, "'%s' is not a limit; see cloche team --help", argv[i]);
    if (i + 1 == argc || str_u64(str_of(argv[i + 1]), &v) || v > INT32_MAX)
      return err_set(err, -EINVAL, "'%s' needs a whole number", argv[i]);
    wire_put_u64(b, limits[k].tag, v);
  }
  return 0;
}

static int put_team(struct line *l, int argc, char **argv, enum wire_tag named, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_TEAM_PUT, 1, 0);
  wire_putz(&b, named, argv[2]);
  int r = put_limits(&b, argc - 3, argv + 3, err);
  r = r ? r : admin_call(l, &b, NULL, NULL, err);
  if (!r && named == W_NAME)
    printf("%.*s\n", STR_ARG(wire_get(buf_str(&b), W_TEAM)));
  return r;
}

int team_main(int argc, char **argv)
{
  struct line l;
  struct err err = ERR_NONE;
  if (argc < 2 || !strcmp(argv[1], "--help")) {
    puts(help);
    return argc < 2 ? 2 : 0;
  }
  bool json = admin_take_json(&argc, argv);
  int r = admin_open(&l, &argc, argv, &err);
  if (!r && argc == 2 && !strcmp(argv[1], "list"))
    r = list(&l, json, &err);
  else if (!r && argc > 2 && !strcmp(argv[1], "create"))
    r = put_team(&l, argc, argv, W_NAME, &err);
  else if (!r && argc > 3 && !strcmp(argv[1], "limit"))
    r = put_team(&l, argc, argv, W_TEAM, &err);
  else if (!r)
    r = err_set(&err, -EINVAL, "expected list, create NAME or limit ID ...; see cloche team --help");
  admin_close(&l);
  return r ? usage_error("%s", err.msg), 1 : 0;
}
