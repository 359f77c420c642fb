/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "driver.h"

struct driver d;
static struct kept shared[8]; /* a box per template, for scenarios that share one */
static size_t shared_count;

static struct kept *kept_by(const char *name, size_t len)
{
  for (size_t i = d.kept_count; i > 0; i--)
    if (strlen(d.kept[i - 1].name) == len && strncmp(d.kept[i - 1].name, name, len) == 0)
      return &d.kept[i - 1];
  return NULL;
}

void keep(const char *name, struct kept what)
{
  if (!name || d.kept_count == sizeof d.kept / sizeof d.kept[0])
    return;
  what.name = name;
  if (what.text)
    what.text = arena_text(&d.memory, what.text, strlen(what.text));
  d.kept[d.kept_count++] = what;
}

struct kept *arg_kept(const char *name)
{
  const char *text = json_text(d.step, name);
  return text && *text == '$' ? kept_by(text + 1, strcspn(text + 1, ".")) : NULL;
}

static const char *resolved(const char *text)
{
  struct buf b = {0};
  struct kept *k = *text == '$' ? kept_by(text + 1, strcspn(text + 1, ".")) : NULL;
  if (k && k->box) {
    buf_puts(&b, cloche_box_id(k->box));
  } else if (k && k->process) {
    buf_printf(&b, "%u", cloche_process_pid(k->process));
  } else if (k && k->volume) {
    buf_puts(&b, k->volume->id);
  } else if (k) {
    buf_puts(&b, k->text ? k->text : "");
  } else {
    for (const char *p = text; *p;) {
      bool here = strncmp(p, "{unique}", 8) == 0;
      buf_add(&b, here ? d.unique : p, here ? strlen(d.unique) : 1);
      p += here ? 8 : 1;
    }
  }
  const char *out = arena_text(&d.memory, b.data ? b.data : "", b.len);
  buf_free(&b);
  return out;
}

const char *arg(const char *name)
{
  const char *text = json_text(d.step, name);
  return text ? resolved(text) : NULL;
}

long arg_number(const char *name, long otherwise)
{
  const char *text = arg(name);
  return text ? strtol(text, NULL, 10) : (long)json_int(json_get(d.step, name), otherwise);
}

bool arg_true(const char *name)
{
  const struct json *j = json_get(d.step, name);
  return j && j->type == JSON_TRUE;
}

struct cloche_pair *arg_pairs(const char *name, size_t *count)
{
  const struct json *j = json_get(d.step, name);
  size_t n = j && j->type == JSON_OBJECT ? j->len : 0;
  struct cloche_pair *pairs = arena_array(&d.memory, n, sizeof *pairs);
  *count = 0;
  for (const struct json *m = n ? j->child : NULL; m; m = m->next)
    pairs[(*count)++] = (struct cloche_pair){m->key, resolved(m->text)};
  return pairs;
}

const char *const *text_list(const struct json *j)
{
  size_t n = 0;
  const char **texts = arena_array(&d.memory, (j ? j->len : 0) + 1, sizeof *texts);
  for (const struct json *e = j ? j->child : NULL; e; e = e->next)
    texts[n++] = resolved(e->text);
  return j ? texts : NULL;
}

struct kept *step_kept(void)
{
  const char *on = json_text(d.step, "on");
  return kept_by(on ? on : "box", strlen(on ? on : "box"));
}

struct cloche_box *step_box(void)
{
  struct kept *k = step_kept();
  return k ? k->box : NULL;
}

static play_fn *find(const char *name)
{
  const struct play *all[] = {box_plays, code_plays, file_plays, command_plays, keep_plays};
  for (size_t i = 0; i < 5; i++)
    for (const struct play *p = all[i]; p->name; p++)
      if (strcmp(p->name, name) == 0)
        return p->run;
  return NULL;
}

/* Of one step: {"value": ...}, {"raised": ...} or {"skipped": ...} at the end of what is told already. */
static void play(const struct json *step, struct buf *results)
{
  struct buf before = d.out, told = d.told;
  const struct json *outer = d.step;
  d.out = d.told = (struct buf){0};
  d.step = step;
  const char *name = json_text(step, "do");
  d.area = name;
  play_fn *run = find(name);
  cloche_error_clear(&d.error);
  bool needs_box = (name[0] < 'A' || name[0] > 'Z') && strcmp(name, "fetch") != 0 && strcmp(name, "build") != 0 &&
                   strcmp(name, "recipe") != 0;
  enum cloche_code code = run && (step_kept() || !needs_box) ? run() : NOT_PLAYED;
  if (code == NOT_PLAYED) {
    buf_puts(results, "{\"skipped\":\"libcloche's driver does not play this\"}");
  } else {
    if (code != CLOCHE_OK && code != TOLD_ERROR) {
      buf_free(&d.out);
      tell_raised(code);
    }
    bool raised = code != CLOCHE_OK, streamed = !raised && json_get(step, "streamed");
    buf_puts(results, raised ? "{\"raised\":" : streamed ? "{\"value\":{\"value\":" : "{\"value\":");
    buf_puts(results, d.out.data ? d.out.data : "null");
    if (streamed) {
      buf_puts(results, ",\"told\":[");
      buf_puts(results, d.told.data ? d.told.data : "");
      buf_puts(results, "]}");
    }
    buf_puts(results, "}");
  }
  buf_free(&d.out);
  buf_free(&d.told);
  d.out = before;
  d.told = told;
  d.step = outer;
}

void play_steps(const struct json *steps)
{
  for (const struct json *s = steps ? steps->child : NULL; s; s = s->next) {
    struct buf ignored = {0};
    play(s, &ignored);
    buf_free(&ignored);
  }
}

static struct cloche_box *shared_box(const char *template_id)
{
  for (size_t i = 0; i < shared_count; i++)
    if (strcmp(shared[i].text, template_id) == 0)
      return shared[i].box;
  struct kept k = {.text = strdup(template_id)};
  const struct cloche_create options = {.size = sizeof options, .template_id = template_id, .timeout_s = 300};
  if (cloche_create(d.client, &options, &k.box, NULL, &d.error) != CLOCHE_OK)
    fprintf(stderr, "no box: %s\n", d.error.message);
  shared[shared_count++] = k;
  return k.box;
}

/* The text with what is unique in it as {unique}. */
static void print_plain(const char *text)
{
  size_t n = strlen(d.unique);
  while (*text) {
    bool here = n && strncmp(text, d.unique, n) == 0;
    if (here)
      fputs("{unique}", stdout);
    else
      putchar(*text);
    text += here ? n : 1;
  }
}

static void scenario(const struct json *s)
{
  struct buf results = {0};
  int64_t began = now_ms();
  const char *template_id = json_text(s, "box");
  if (template_id)
    keep("box", (struct kept){.box = shared_box(template_id)});
  const struct json *steps = json_get(s, "steps");
  for (const struct json *step = steps ? steps->child : NULL; step; step = step->next) {
    buf_puts(&results, results.len ? "," : "");
    play(step, &results);
  }
  struct buf name = {0};
  buf_json(&name, json_text(s, "name"));
  printf("{\"name\":%s,\"seconds\":%lld,\"results\":[", name.data, (long long)(now_ms() - began) / 1000);
  print_plain(results.data ? results.data : "");
  printf("]}\n");
  fflush(stdout);
  buf_free(&name);
  buf_free(&results);
  for (size_t i = 0; i < d.kept_count; i++) {
    cloche_process_free(d.kept[i].process);
    cloche_free(d.kept[i].volume);
    if (d.kept[i].box && (!template_id || strcmp(d.kept[i].name, "box") != 0)) {
      cloche_kill(d.client, cloche_box_id(d.kept[i].box), NULL, NULL, NULL);
      cloche_box_free(d.kept[i].box);
    }
  }
  d.kept_count = 0;
  arena_free(&d.memory);
}

int main(void)
{
  struct buf in = {0};
  char chunk[65536];
  ssize_t n;
  while ((n = read(0, chunk, sizeof chunk)) > 0)
    buf_add(&in, chunk, (size_t)n);
  struct arena a = {0};
  bool no_memory;
  struct json *all = json_read(&a, in.data, in.len, &no_memory);
  d.unique = getenv("UNIQUE") ? getenv("UNIQUE") : "";
  if (!all || cloche_open(NULL, &d.client, &d.error) != CLOCHE_OK) {
    fprintf(stderr, "driver: %s\n", all ? d.error.message : "standard input is no JSON");
    return 2;
  }
  for (const struct json *s = all->child; s; s = s->next)
    scenario(s);
  for (size_t i = 0; i < shared_count; i++) {
    if (shared[i].box)
      cloche_kill(d.client, cloche_box_id(shared[i].box), NULL, NULL, NULL);
    cloche_box_free(shared[i].box);
    free((char *)shared[i].text);
  }
  cloche_error_clear(&d.error);
  cloche_close(d.client);
  arena_free(&a);
  buf_free(&in);
  return 0;
}
