/* SPDX-License-Identifier: Apache-2.0 */
/* key_command.c - `cloche key create|list|delete`: API keys and access tokens. */
#include "wire/api_key.h"
#include "cli/cli.h"
#include "cli/admin_client.h"

#include <stdio.h>

static const char help[] = "cloche key - API keys\n\n"
                           "Usage: cloche key create [NAME]    make a key and print it, this once\n"
                           "       cloche key create --token [NAME]   the same for an access token (E2B_ACCESS_TOKEN)\n"
                           "       cloche key list             the keys there are, masked\n"
                           "       cloche key delete ID        a key stops working at once\n\n"
                           "Options: --data DIR   the server's data directory [/var/lib/cloche]\n"
                           "         --team ID    another team than the first one\n"
                           "         --json       list and create: print JSON for programs";

static void first_team(struct str packet, void *arg)
{
  char *team = arg;
  if (!team[0])
    wire_copyz(packet, W_TEAM, team, UUID_SIZE);
}

static void begin(struct buf *b, enum wire_type type, const char *team)
{
  wire_begin(b, type, 1, 0);
  wire_putz(b, W_TEAM, team);
}

static int create(struct line *l, const char *team, bool token, bool json, const char *name, struct err *err)
{
  char text[KEY_TEXT], mask[KEY_MASK_SIZE];
  uint8_t hash[SHA256_LEN];
  if (token)
    access_token_make(text, hash, mask);
  else
    key_make(text, hash, mask);
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  begin(&b, WIRE_KEY_CREATE, team);
  wire_putz(&b, W_NAME, name);
  wire_put(&b, W_KEYHASH, str_make(hash, sizeof(hash)));
  wire_putz(&b, W_MASK, mask);
  int r = admin_call(l, &b, NULL, NULL, err);
  if (!r)
    printf(json ? "{\"key\":\"%s\"}\n" : "%s\n", text);
  return r;
}

static void print_key(struct str p, void *arg)
{
  char when[CLOCK_TEXT];
  struct str prefix, length, head, tail, mask = wire_get(p, W_MASK);
  str_cut(mask, ':', &prefix, &mask);
  str_cut(mask, ':', &length, &mask);
  str_cut(mask, ':', &head, &tail);
  clock_text((int64_t)wire_u64(p, W_CREATED, 0), when);
  printf("%.*s  %.*s%.*s...%.*s  %.19s  %.*s\n", STR_ARG(wire_get(p, W_ID)), STR_ARG(prefix), STR_ARG(head),
         STR_ARG(tail), when, STR_ARG(wire_get(p, W_NAME)));
}

static int run(struct line *l, int argc, char **argv, char *team, bool json, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  const char *verb = argc > 1 ? argv[1] : "";
  if (!team[0]) {
    wire_begin(&b, WIRE_TEAM_LIST, 1, 0);
    int r = admin_call(l, &b, first_team, team, err);
    if (r)
      return r;
  }
  if (!strcmp(verb, "create")) {
    bool token = argc > 2 && !strcmp(argv[2], "--token");
    const char *name = argc > 2 + token ? argv[2 + token] : "made by cloche key create";
    return create(l, team, token, json, name, err);
  }
  if (!strcmp(verb, "list")) {
    static const struct json_field fields[] = {{"id", W_ID, FIELD_TEXT},         {"name", W_NAME, FIELD_TEXT},
                                               {"mask", W_MASK, FIELD_TEXT},     {"createdAt", W_CREATED, FIELD_TIME},
                                               {"lastUsed", W_LAST, FIELD_TIME}, {"expiresAt", W_END, FIELD_TIME}};
    begin(&b, WIRE_KEY_LIST, team);
    if (json)
      return admin_print_json(l, &b, fields, ARRAY_LEN(fields), err);
    return admin_call(l, &b, print_key, NULL, err);
  }
  if (!strcmp(verb, "delete") && argc > 2) {
    begin(&b, WIRE_KEY_DELETE, team);
    wire_putz(&b, W_ID, argv[2]);
    return admin_call(l, &b, NULL, NULL, err);
  }
  return err_set(err, -EINVAL, "expected create, list or delete ID; see cloche key --help");
}

int key_main(int argc, char **argv)
{
  struct line l;
  struct err err = ERR_NONE;
  char team[UUID_SIZE] = "";
  if (argc < 2 || !strcmp(argv[1], "--help")) {
    puts(help);
    return argc < 2 ? 2 : 0;
  }
  admin_take_team(&argc, argv, team);
  bool json = admin_take_json(&argc, argv);
  int r = admin_open(&l, &argc, argv, &err);
  r = r ? r : run(&l, argc, argv, team, json, &err);
  admin_close(&l);
  return r ? usage_error("%s", err.msg), 1 : 0;
}
