/*
 * The environment of each task, and the folders of a job's output.
 *
 * TaskProlog would do for the variables, but Slurm 24.11.0 to 24.11.6 and 25.05.0 to 25.05.1 start it by a program of
 * theirs that must be inside of the task's container, and the task ends with 127. This runs before the container is
 * entered, as root.
 *
 * What the job brings wins, except for the names of the node, which it may bring from the node that it was submitted on.
 * PATH and PYTHONPATH of the files are appended, and so is the folder of "programs": a virtual environment or a conda
 * prefix of the user is what its jobs run in. Where its interpreter is not on this node, the log of the job says so, and
 * the folder is taken out: no other Python takes its place.
 *
 * plugstack.conf: required PATH files=FILE[,FILE...] programs=FOLDER folders=PROGRAM
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/spank.h>

SPANK_PLUGIN(holdfast_environment, 1)

enum { VALUE_MAX = 1 << 16 };

static const char *const of_the_node[] = {"HOLDFAST_INSTANCE_ID", "HOLDFAST_INSTANCE_GROUP"};
static const char *const of_environments[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};

static const char *argument(int ac, char **av, const char *name)
{
    size_t length = strlen(name);
    for (int i = 0; i < ac; i++)
        if (strncmp(av[i], name, length) == 0 && av[i][length] == '=')
            return av[i] + length + 1;
    return "";
}

static int is_in(const char *list, const char *folder, size_t length)
{
    for (const char *at = list; *at != 0; at += strcspn(at, ":"), at += *at == ':')
        if (strcspn(at, ":") == length && strncmp(at, folder, length) == 0)
            return 1;
    return 0;
}

/* Put a folder at the end of a list of folders. */
static void add_folder(spank_t sp, const char *name, const char *folder, size_t length)
{
    char present[VALUE_MAX] = "", *made = NULL;

    if (length == 0 || spank_getenv(sp, name, present, sizeof(present)) == ESPANK_NOSPACE ||
        is_in(present, folder, length) ||
        asprintf(&made, "%s%s%.*s", present, *present ? ":" : "", (int)length, folder) < 0)
        return;
    spank_setenv(sp, name, made, 1);
    free(made);
}

static void remove_folder(spank_t sp, const char *name, const char *folder)
{
    char present[VALUE_MAX] = "", left[VALUE_MAX] = "";

    if (spank_getenv(sp, name, present, sizeof(present)) != ESPANK_SUCCESS)
        return;
    for (const char *at = present; *at != 0; at += strcspn(at, ":"), at += *at == ':') {
        size_t length = strcspn(at, ":");
        if (length == strlen(folder) && strncmp(at, folder, length) == 0)
            continue;
        if (*left != 0)
            strcat(left, ":");
        strncat(left, at, length);
    }
    spank_setenv(sp, name, left, 1);
}

/* Follow links, one after the other, to the first that is none. */
static void follow(char *path, size_t size)
{
    char link[4096];

    for (int i = 0; i < 16; i++) {
        ssize_t length = readlink(path, link, sizeof(link) - 1);
        if (length <= 0)
            return;
        link[length] = 0;
        char *name = link[0] == '/' ? path : strrchr(path, '/') + 1;
        snprintf(name, size - (name - path), "%s", link);
    }
}

/* Whether the task's activated environment is in PATH and has no interpreter here, said once per node. */
static int lacks_its_interpreter(spank_t sp)
{
    char folders[VALUE_MAX] = "", prefix[4096], python[8192];
    uint32_t task = 0;

    spank_getenv(sp, "PATH", folders, sizeof(folders));
    for (size_t i = 0; i < sizeof(of_environments) / sizeof(*of_environments); i++) {
        if (spank_getenv(sp, of_environments[i], prefix, sizeof(prefix)) != ESPANK_SUCCESS || *prefix != '/')
            continue;
        int length = snprintf(python, sizeof(python), "%s/bin", prefix);
        if (!is_in(folders, python, length))
            continue;
        snprintf(python + length, sizeof(python) - length, "/python");
        if (access(python, X_OK) == 0)
            continue;
        if (spank_get_item(sp, S_TASK_ID, &task) == ESPANK_SUCCESS && task == 0) {
            follow(python, sizeof(python));
            slurm_error("%s is %s: its interpreter %s is not on this node; make the environment again on a file "
                        "system that all nodes have, with a Python that they have",
                        of_environments[i], prefix, python);
        }
        return 1;
    }
    return 0;
}

static void add(spank_t sp, const char *name, const char *value)
{
    if (strcmp(name, "PATH") != 0 && strcmp(name, "PYTHONPATH") != 0) {
        spank_setenv(sp, name, value, 0);
        return;
    }
    for (const char *at = value; *at != 0; at += strcspn(at, ":"), at += *at == ':')
        add_folder(sp, name, at, strcspn(at, ":"));
}

/* Take a shell's quotes off, in place. */
static void unquote(char *text)
{
    char *to = text, quote = 0;
    for (const char *at = text; *at != 0; at++) {
        if (quote != 0 ? *at == quote : *at == '\'' || *at == '"')
            quote = quote != 0 ? 0 : *at;
        else if (*at == '\\' && quote != '\'' && at[1] != 0)
            *to++ = *++at;
        else
            *to++ = *at;
    }
    *to = 0;
}

static int is_name(const char *text)
{
    if (!isalpha((unsigned char)*text) && *text != '_')
        return 0;
    while (isalnum((unsigned char)*text) || *text == '_')
        text++;
    return *text == 0;
}

static void read_file(spank_t sp, const char *path)
{
    char *line = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "re");

    while (file != NULL && getline(&line, &size, file) > 0) {
        char *value = strchr(line, '=');
        if (value == NULL)
            continue;
        *value++ = 0;
        value[strcspn(value, "\n")] = 0;
        if (!is_name(line))
            continue;
        unquote(value);
        add(sp, line, value);
    }
    free(line);
    if (file != NULL)
        fclose(file);
}

int slurm_spank_task_init_privileged(spank_t sp, int ac, char **av)
{
    char path[VALUE_MAX];
    const char *programs = argument(ac, av, "programs");

    for (size_t i = 0; i < sizeof(of_the_node) / sizeof(*of_the_node); i++)
        spank_unsetenv(sp, of_the_node[i]);
    for (const char *at = argument(ac, av, "files"); *at != 0; at += strcspn(at, ","), at += *at == ',') {
        snprintf(path, sizeof(path), "%.*s", (int)strcspn(at, ","), at);
        read_file(sp, path);
    }
    if (lacks_its_interpreter(sp))
        remove_folder(sp, "PATH", programs);
    else
        add_folder(sp, "PATH", programs, strlen(programs));
    return ESPANK_SUCCESS;
}

#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 2, 0)
/* As the job's user, before its output is opened: newer versions make these folders by themselves. */
int slurm_spank_init_post_opt(spank_t sp, int ac, char **av)
{
    uint32_t job = 0, step = 0;
    uid_t uid;
    gid_t gid, *groups = NULL;
    int count = 0;
    char number[16];

    if (spank_context() != S_CTX_REMOTE || spank_get_item(sp, S_JOB_STEPID, &step) != ESPANK_SUCCESS ||
        step != SLURM_BATCH_SCRIPT || spank_get_item(sp, S_JOB_ID, &job) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_UID, &uid) != ESPANK_SUCCESS || spank_get_item(sp, S_JOB_GID, &gid) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_SUPPLEMENTARY_GIDS, &groups, &count) != ESPANK_SUCCESS)
        return ESPANK_SUCCESS;
    snprintf(number, sizeof(number), "%u", job);
    pid_t child = fork();
    if (child == 0) {
        if (setgroups(count, groups) == 0 && setresgid(gid, gid, gid) == 0 && setresuid(uid, uid, uid) == 0)
            execl("/bin/sh", "sh", argument(ac, av, "folders"), number, (char *)NULL);
        _exit(127);
    }
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    return ESPANK_SUCCESS;
}
#endif
