/* SPDX-License-Identifier: Apache-2.0 */
/* This program's own source of bytes into a sandbox and back, by descriptors: nothing is held in memory. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include <cloche.h>

int main(int argc, char **argv)
{
  struct cloche *client = NULL;
  struct cloche_box *box = NULL;
  struct cloche_entry *entry = NULL;
  struct cloche_error error = {0};
  int64_t bytes = 0;
  int in = open(argv[0], O_RDONLY), out = open("/dev/null", O_WRONLY);
  bool ok = cloche_open(NULL, &client, &error) == CLOCHE_OK &&
            cloche_create(client, CLOCHE_WITH(cloche_create, .template_id = "base"), &box, NULL, &error) == CLOCHE_OK &&
            cloche_write_fd(box, "program", in, NULL, &entry, NULL, &error) == CLOCHE_OK &&
            cloche_read_fd(box, entry->path, out, NULL, &bytes, NULL, &error) == CLOCHE_OK;
  if (ok)
    printf("copied %lld bytes of %s\n", (long long)bytes, entry->path);
  else
    fprintf(stderr, "%s: %s\n", cloche_code_name(error.code), error.message);
  close(in);
  close(out);
  cloche_free(entry);
  if (box)
    cloche_kill(client, cloche_box_id(box), NULL, NULL, NULL);
  cloche_box_free(box);
  cloche_error_clear(&error);
  cloche_close(client);
  return !ok;
}
