/* SPDX-License-Identifier: Apache-2.0 */
/* template_make.c - `cloche template make`: templates that a recipe comes with, built on request into the server's
 * store.
 *
 * The program templates/build makes the layers, as it made those of the default templates; the server then takes in
 * what is new in its store. */
#include "cli/template.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* templates/build of the source tree that this program was built in, or of the installation. */
static int find_program(char out[PATH_MAX], struct err *err)
{
  static const char *const places[] = {"../../../templates/build", "../lib/cloche/templates/build"};
  char exe[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
  if (n <= 0)
    return err_errno(err, "/proc/self/exe");
  exe[n] = 0;
  struct str dir = path_dir(str_of(exe));
  for (size_t i = 0; i < ARRAY_LEN(places); i++) {
    snprintf(out, PATH_MAX, STR_FMT "/%s", STR_ARG(dir), places[i]);
    if (access(out, X_OK) == 0)
      return 0;
  }
  return err_set(err, -ENOENT, "no recipes are installed beside %s (looked for %s); run 'make install' again", exe,
                 out);
}

/* Where the server keeps built templates. With a name it takes in first what is new there, and tells the build. */
static int ask_store(struct line *l, const char *name, char out[PATH_MAX], char build[UUID_SIZE], struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_TEMPLATE_STORE, 1, 0);
  if (name)
    wire_putz(&b, W_REF, name);
  int r = admin_call(l, &b, NULL, NULL, err);
  if (!r && name)
    wire_copyz(buf_str(&b), W_BUILD, build, UUID_SIZE);
  return r ? r : wire_copyz(buf_str(&b), W_NAME, out, PATH_MAX);
}

static int run_program(const char *program, const char *store, int argc, char **argv, struct err *err)
{
  int status = 0;
  cleanup_free char **words = xcalloc((size_t)argc + 4, sizeof(*words));
  words[0] = (char *)program;
  words[1] = (char *)"--store";
  words[2] = (char *)store;
  for (int i = 0; i < argc; i++)
    words[3 + i] = argv[i];
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    execv(program, words);
    _exit(127);
  }
  if (pid < 0)
    return err_errno(err, "fork");
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR)
      return err_errno(err, "wait for %s", program);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return 0;
  return err_set(err, -EREMOTEIO, "%s failed; its messages above say why", program);
}

static int take_in(struct line *l, const char *name, char store[PATH_MAX], struct err *err)
{
  char build[UUID_SIZE] = "";
  int r = ask_store(l, name, store, build, err);
  if (!r)
    printf("%s is build %s\n", name, build);
  return r;
}

/* All that the store has: what a build without names makes is the recipes' to say. */
static int take_in_all(struct line *l, char store[PATH_MAX], struct err *err)
{
  static const char suffix[] = ".json";
  char path[PATH_MAX], name[NAME_MAX + 1];
  snprintf(path, sizeof(path), "%.*s/templates", PATH_MAX - 16, store);
  cleanup_dir DIR *d = opendir(path);
  int r = d ? 0 : err_errno(err, "%s", path);
  for (struct dirent *e; !r && (e = readdir(d));) {
    struct str file = str_of(e->d_name);
    if (file.n <= sizeof(suffix) || !str_ends(file, STR(suffix)))
      continue;
    str_copyz(str_sub(file, 0, file.n - strlen(suffix)), name, sizeof(name));
    r = take_in(l, name, store, err);
  }
  return r;
}

/* --default [--debian-only]: the words for the program are what is behind --default. */
static int make_default(struct line *l, const char *program, char store[PATH_MAX], int argc, char **argv,
                        struct err *err)
{
  if (argc > 1 || (argc == 1 && strcmp(argv[0], "--debian-only") != 0))
    return err_set(err, -EINVAL, "'make --default' takes no name and no option but --debian-only, not '%s'",
                   argv[argc - 1]);
  int r = run_program(program, store, argc, argv, err);
  return r ? r : take_in_all(l, store, err);
}

int tpl_make(struct line *l, int argc, char **argv, struct err *err)
{
  char program[PATH_MAX], store[PATH_MAX];
  bool list = !strcmp(argv[0], "--list"), standard = !strcmp(argv[0], "--default");
  if (list && argc > 1)
    return err_set(err, -EINVAL, "'make --list' takes no name, but '%s' was given", argv[1]);
  for (int i = 0; i < argc && !list && !standard; i++)
    if (argv[i][0] == '-')
      return err_set(err, -EINVAL, "'make' has no option '%s'; it takes names of recipes, --default or --list",
                     argv[i]);
  int r = find_program(program, err);
  r = r ? r : ask_store(l, NULL, store, NULL, err);
  if (!r && standard)
    return make_default(l, program, store, argc - 1, argv + 1, err);
  r = r ? r : run_program(program, store, argc, argv, err);
  for (int i = 0; !r && !list && i < argc; i++)
    r = take_in(l, argv[i], store, err);
  return r;
}
