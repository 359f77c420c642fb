/* SPDX-License-Identifier: Apache-2.0 */
/* sdk_cell COUNT: 1+1 through libcloche and through libcurl alone, one after the other in turns, on kept connections to
 * one box. Prints {"c_ms": [...], "raw_ms": [...]}. */
#include <cloche.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WARM 50
#define MOST 5000

struct answer {
  char text[4096];
  size_t n;
};

static double now_ms(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void die(const char *what, const char *why)
{
  fprintf(stderr, "sdk_cell: %s: %s\n", what, why ? why : "failed");
  exit(1);
}

static size_t on_data(char *data, size_t size, size_t n, void *arg)
{
  struct answer *a = arg;
  size_t room = sizeof(a->text) - 1 - a->n, take = size * n < room ? size * n : room;
  memcpy(a->text + a->n, data, take);
  a->n += take;
  a->text[a->n] = 0;
  return size * n;
}

static CURL *raw_open(const struct cloche_box *box, struct answer *a)
{
  const char *base = getenv("E2B_SANDBOX_URL");
  char text[512];
  struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
  CURL *curl = curl_easy_init();
  if (!curl || !base)
    die("libcurl", "no handle, or E2B_SANDBOX_URL is not set");
  snprintf(text, sizeof(text), "E2b-Sandbox-Id: %s", cloche_box_id(box));
  headers = curl_slist_append(headers, text);
  headers = curl_slist_append(headers, "E2b-Sandbox-Port: 49999");
  snprintf(text, sizeof(text), "X-Access-Token: %s", cloche_box_token(box));
  headers = curl_slist_append(headers, text);
  snprintf(text, sizeof(text), "%s/execute", base);
  curl_easy_setopt(curl, CURLOPT_URL, text);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "{\"code\":\"1+1\"}");
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, a);
  return curl;
}

static double raw_cell(CURL *curl, struct answer *a)
{
  double began = now_ms();
  a->n = 0;
  CURLcode code = curl_easy_perform(curl);
  if (code != CURLE_OK)
    die("raw", curl_easy_strerror(code));
  if (!strstr(a->text, "\"text\":\"2\""))
    die("raw", a->text);
  return now_ms() - began;
}

static double sdk_cell(struct cloche_box *box)
{
  struct cloche_execution *run = NULL;
  struct cloche_error error = {0};
  double began = now_ms();
  if (cloche_run_code(box, "1+1", NULL, &run, NULL, &error))
    die("libcloche", error.message);
  double took = now_ms() - began;
  if (!run->text || strcmp(run->text, "2") != 0)
    die("libcloche", run->text);
  cloche_free(run);
  return took;
}

static void print_series(const char *name, const double *values, int n, const char *end)
{
  printf("\"%s\": [", name);
  for (int i = 0; i < n; i++)
    printf("%s%.4f", i ? ", " : "", values[i]);
  printf("]%s", end);
}

int main(int argc, char **argv)
{
  static double raw[MOST], sdk[MOST];
  static struct answer answer;
  struct cloche *client;
  struct cloche_box *box;
  struct cloche_error error = {0};
  long count = argc > 1 ? strtol(argv[1], NULL, 10) : 300;
  if (count < 1 || count > MOST)
    die("COUNT", "1 to 5000");
  if (cloche_open(NULL, &client, &error) || cloche_create(client, NULL, &box, NULL, &error))
    die("create", error.message);
  CURL *curl = raw_open(box, &answer);
  for (int i = 0; i < WARM; i++) {
    raw_cell(curl, &answer);
    sdk_cell(box);
  }
  for (long i = 0; i < count; i++) {
    raw[i] = raw_cell(curl, &answer);
    sdk[i] = sdk_cell(box);
  }
  cloche_kill(client, cloche_box_id(box), NULL, NULL, NULL);
  putchar('{');
  print_series("c_ms", sdk, (int)count, ", ");
  print_series("raw_ms", raw, (int)count, "}\n");
  return 0;
}
