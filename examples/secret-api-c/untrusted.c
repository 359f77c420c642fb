/* SPDX-License-Identifier: Apache-2.0 */
/* Untrusted code without a network but for one host, and with a key for that host that it never sees; in C. */
#include <stdio.h>
#include <stdlib.h>
#include <cloche.h>

#define SECRET "example-api-key-c"

/* What somebody else wrote. It wants the key, and to send things elsewhere. */
static const char untrusted[] =
    "import os, urllib.request\n"
    "def status(url):\n"
    "    try:\n"
    "        with urllib.request.urlopen(url, timeout=20) as answer:\n"
    "            return answer.status\n"
    "    except Exception as error:\n"
    "        return f'refused, {type(error).__name__}'\n"
    "print('the API:', status('https://' + os.environ['API_HOST'] + os.environ['API_PATH']))\n"
    "print('another host:', status('https://example.com/'))\n"
    "print('an address:', status('http://198.51.100.7/'))\n"
    "print('the key:', os.environ.get('API_KEY'))\n";

/* All ways out are shut but one, and requests on that one get the header on their way, in the server. */
static enum cloche_code create(struct cloche *client, const char *host, const char *path, struct cloche_box **box,
                               struct cloche_error *error)
{
  char rules[512];
  int length = snprintf(rules, sizeof rules,
                        "{\"%s\": [{\"transform\": {\"headers\": {\"Authorization\": \"Bearer ${e2b.secrets.%s}\"}}}]}",
                        host, SECRET);
  if (length < 0 || (size_t)length >= sizeof rules)
    return CLOCHE_EINVAL;
  const struct cloche_network network = {.size = sizeof network,
                                         .deny_out = (const char *const[]){"0.0.0.0/0", NULL},
                                         .allow_out = (const char *const[]){host, NULL},
                                         .rules_json = rules};
  const struct cloche_pair envs[] = {{"API_HOST", host}, {"API_PATH", path}};
  const struct cloche_create options = {.size = sizeof options, .network = &network, .envs = envs, .env_count = 2};
  return cloche_create(client, &options, box, NULL, error);
}

static int print_text(const struct cloche_text *text, void *user)
{
  return fwrite(text->data, 1, text->len, user) != text->len;
}

static int complain(struct cloche_error *error)
{
  fprintf(stderr, "%s: %s\n", cloche_code_name(error->code), error->message ? error->message : "no message");
  cloche_error_clear(error);
  return 1;
}

/* Runs the code in a sandbox that ends with this call. */
static int run(struct cloche *client, const char *host, const char *path)
{
  struct cloche_error error = {0};
  struct cloche_box *box;
  if (create(client, host, path, &box, &error))
    return complain(&error);
  const struct cloche_run options = {.size = sizeof options, .on_stdout = print_text, .user = stdout};
  int failed = cloche_run_code(box, untrusted, &options, NULL, NULL, &error) ? complain(&error) : 0;
  cloche_kill(client, cloche_box_id(box), NULL, NULL, NULL);
  cloche_box_free(box);
  return failed;
}

int main(void)
{
  const char *host = getenv("API_HOST"), *path = getenv("API_PATH"), *key = getenv("API_KEY");
  struct cloche_error error = {0};
  struct cloche *client;
  if (!key)
    return fputs("API_KEY is not set\n", stderr), 1;
  if (cloche_open(NULL, &client, &error))
    return complain(&error);
  /* The key goes to the server, once. A sandbox only ever has the name of it. */
  int failed = cloche_secret_create(client, SECRET, key, NULL, 0, NULL, NULL, &error)
                   ? complain(&error)
                   : run(client, host ? host : "api.openai.com", path ? path : "/v1/models");
  cloche_secret_delete(client, SECRET, NULL, NULL, NULL);
  cloche_close(client);
  return failed;
}
