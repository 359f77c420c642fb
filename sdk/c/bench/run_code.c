/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_code [ROUNDS] - how long run_code("1+1") takes through libcloche, and the same request written to a socket by
 * hand: in turns, on one box, each on one kept connection. Prints {"sdk": [ms, ...], "raw": [ms, ...]}. Needs plain
 * http.
 */
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cloche.h>

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int connected(const char *url)
{
  char host[256], *colon;
  snprintf(host, sizeof host, "%s", url + strlen("http://"));
  host[strcspn(host, "/")] = 0;
  if (strncmp(url, "http://", 7) != 0 || !(colon = strchr(host, ':')))
    return -1;
  *colon = 0;
  struct addrinfo *found, want = {.ai_socktype = SOCK_STREAM};
  if (getaddrinfo(host, colon + 1, &want, &found) != 0)
    return -1;
  int fd = socket(found->ai_family, SOCK_STREAM, 0);
  if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) < 0) {
    close(fd);
    fd = -1;
  }
  freeaddrinfo(found);
  if (fd >= 0)
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  return fd;
}

/* One run; true when the whole answer came and says 2. */
static bool raw_run(int fd, const char *request)
{
  static char answer[1 << 16];
  size_t len = 0, size = strlen(request);
  if (write(fd, request, size) != (ssize_t)size)
    return false;
  do {
    ssize_t n = read(fd, answer + len, sizeof answer - 1 - len);
    if (n <= 0)
      return false;
    len += (size_t)n;
    answer[len] = 0;
  } while (len < 5 || strcmp(answer + len - 5, "0\r\n\r\n") != 0);
  return strstr(answer, "\"2\"") != NULL;
}

static void print_list(const char *name, const double *ms, int count)
{
  printf("\"%s\": [", name);
  for (int i = 0; i < count; i++)
    printf("%s%.4f", i ? ", " : "", ms[i]);
  printf("]");
}

int main(int argc, char **argv)
{
  int rounds = argc > 1 ? atoi(argv[1]) : 300;
  const char *url = getenv("E2B_SANDBOX_URL");
  struct cloche *client;
  struct cloche_box *box;
  struct cloche_execution *run;
  struct cloche_error error = {0};
  double *sdk = calloc((size_t)rounds, sizeof *sdk), *raw = calloc((size_t)rounds, sizeof *raw);
  int fd = url ? connected(url) : -1;
  if (!sdk || !raw || rounds < 1 || fd < 0 || cloche_open(NULL, &client, &error) ||
      cloche_create(client, NULL, &box, NULL, &error)) {
    fprintf(stderr, "no box to measure on: %s\n", error.message ? error.message : "E2B_SANDBOX_URL is no http URL");
    return 1;
  }
  char request[1024];
  static const char body[] = "{\"code\":\"1+1\"}";
  snprintf(request, sizeof request,
           "POST /execute HTTP/1.1\r\nHost: localhost\r\nE2b-Sandbox-Id: %s\r\nE2b-Sandbox-Port: 49999\r\n"
           "X-Access-Token: %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
           cloche_box_id(box), cloche_box_token(box) ? cloche_box_token(box) : "", sizeof body - 1, body);
  for (int i = -20; i < rounds; i++) { /* the first twenty warm both up */
    double began = now();
    bool ok = raw_run(fd, request);
    double between = now();
    ok = ok && cloche_run_code(box, "1+1", NULL, &run, NULL, &error) == CLOCHE_OK && strcmp(run->text, "2") == 0;
    double ended = now();
    if (!ok) {
      fprintf(stderr, "a run failed: %s\n", error.message ? error.message : "the raw one");
      return 1;
    }
    cloche_free(run);
    if (i >= 0) {
      raw[i] = between - began;
      sdk[i] = ended - between;
    }
  }
  printf("{");
  print_list("sdk", sdk, rounds);
  printf(", ");
  print_list("raw", raw, rounds);
  printf("}\n");
  cloche_kill(client, cloche_box_id(box), NULL, NULL, NULL);
  cloche_box_free(box);
  cloche_close(client);
  free(sdk);
  free(raw);
  close(fd);
  return 0;
}
