/* SPDX-License-Identifier: Apache-2.0 */
/* probe.c - fetches one source as the builder does and tells the outcome as JSON, one line. Needs root.
 *
 *   probe DATA RUNTIME IMAGE [NAME=VALUE...]
 *
 * Names: registries, insecure, dir, debian, ecr, size_mb, layers, seconds, team, registry (JSON), cancel_ms, any_file.
 */
#include "jail/jail.h"
#include "warden/build/registry_auth.h"
#include "warden/build/runtime_layer.h"
#include "warden/build/source.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

static atomic_bool cancelled;

static void hear(void *arg, enum log_level level, const char *line)
{
  fprintf(stderr, "%d %s\n", level, line);
}

static void *cancel_later(void *arg)
{
  long ms = *(const long *)arg;
  nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
  atomic_store(&cancelled, true);
  return NULL;
}

static unsigned number(const char *text)
{
  uint64_t v = 0;
  str_u64(str_of(text), &v);
  return (unsigned)v;
}

static void take(struct source_spec *s, struct source_rules *rules, long *cancel_ms, const char *word)
{
  struct str name, value;
  str_cut(str_of(word), '=', &name, &value);
  const struct {
    const char *name;
    const char **at;
  } texts[] = {{"registries", &rules->registries}, {"insecure", &rules->insecure}, {"dir", &rules->dir},
               {"debian", &rules->debian},         {"ecr", &rules->ecr},           {"team", &s->team}};
  for (size_t i = 0; i < ARRAY_LEN(texts); i++)
    if (str_is(name, texts[i].name))
      *texts[i].at = value.p;
  if (str_is(name, "size_mb"))
    rules->size_mb = number(value.p);
  if (str_is(name, "layers"))
    rules->layers = number(value.p);
  if (str_is(name, "seconds"))
    rules->seconds = number(value.p);
  if (str_is(name, "cancel_ms"))
    *cancel_ms = number(value.p);
  if (str_is(name, "registry"))
    s->registry = value;
  s->any_file |= str_is(name, "any_file");
}

static void tell(int r, const struct source_base *b, const struct err *err)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  struct jw w = JW(&out);
  jw_open(&w, '{');
  jw_key(&w, "code");
  jw_int(&w, r);
  jw_key(&w, "error");
  jw_z(&w, err->msg);
  jw_key(&w, "key");
  jw_z(&w, b->key);
  jw_key(&w, "layers");
  jw_open(&w, '[');
  for (struct str rest = buf_str(&b->layers), line; rest.n;) {
    str_cut(rest, '\n', &line, &rest);
    jw_str(&w, line);
  }
  jw_close(&w, ']');
  jw_key(&w, "config");
  jw_raw(&w, b->config.n && !r ? buf_str(&b->config) : STR("null"));
  jw_close(&w, '}');
  puts(buf_z(&out));
}

int main(int argc, char **argv)
{
  struct source_rules rules = {.registries = "",
                               .insecure = "",
                               .dir = "",
                               .aliases = "",
                               .debian = "",
                               .uid = 64991,
                               .uids = 2,
                               .size_mb = 4096,
                               .seconds = 300,
                               .cache_mb = 1024,
                               .debian_days = 7};
  char runtime[80], boxes[600];
  struct err err = ERR_NONE;
  long cancel_ms = 0;
  if (argc > 1 && !strcmp(argv[1], REGISTRY_AUTH_COMMAND))
    return registry_auth_main(argc - 1, argv + 1);
  if (argc < 4)
    return 2;
  struct source_spec s = {.rules = &rules,
                          .data = argv[1],
                          .instance = "probe",
                          .runtime = runtime,
                          .team = "team-a",
                          .id_base = 1879048192,
                          .image = str_of(argv[3]),
                          .cancelled = &cancelled,
                          .say = hear};
  for (int i = 4; i < argc; i++)
    take(&s, &rules, &cancel_ms, argv[i]);
  snprintf(boxes, sizeof(boxes), "%s/boxes", argv[1]);
  path_mkdirs(boxes, 0711);
  if (runtime_stage(argv[2], argv[1], runtime, &err) || jail_instance_open(s.instance, &err)) {
    fprintf(stderr, "probe: %s\n", err.msg);
    return 2;
  }
  pthread_t thread;
  if (cancel_ms && pthread_create(&thread, NULL, cancel_later, &cancel_ms))
    return 2;
  struct source_base base;
  int r = source_fetch(&s, &base, &err);
  tell(r, &base, &err);
  source_base_free(&base);
  jail_instance_close(s.instance);
  return 0;
}
