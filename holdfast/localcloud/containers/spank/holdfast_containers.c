/*
 * srun --container-image on the local cluster: Pyxis's options, with runc in place of Enroot.
 *
 * In the step's slurmstepd, as root and before tasks are forked, a helper (../start) builds the container and hands
 * back a descriptor of its mount namespace. Each task enters it and gives up every privilege, as its last step before
 * it runs. So tasks stay children of slurmstepd: signals, exit codes, accounting and terminals are Slurm's own.
 * The meaning of the options, and the texts with "pyxis:" where Pyxis has one, are those of NVIDIA/pyxis 0.24.
 *
 * plugstack.conf: required PATH helper=FOLDER python=PROGRAM images=FOLDER
 * "required", because Slurm ignores what an optional plugin says: a task would run outside of its container.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/spank.h>

#include "keeper.h"
#include "options.h"

SPANK_PLUGIN(holdfast_containers, 1)

enum { ANSWER_MAX = 1 << 20, HELPER_TIMEOUT_S = 15, UNPACKING_TIMEOUT_S = 570 };

static struct {
    int wanted;                /* the step has a container */
    int mounts;                /* its mount namespace */
    int alive;                 /* write end of a pipe that closes with this process */
    char problem[1024];        /* why it has none; told by the first task, since nobody hears it earlier */
    char *answer;              /* "ok", where tasks start, NAME=value ... each ended by a zero byte */
    size_t length;
} step = {.mounts = -1, .alive = -1};

static const char *argument(int ac, char **av, const char *name)
{
    size_t length = strlen(name);
    for (int i = 0; i < ac; i++)
        if (strncmp(av[i], name, length) == 0 && av[i][length] == '=')
            return av[i] + length + 1;
    return "";
}

int slurm_spank_init(spank_t sp, int ac, char **av)
{
    return options_register(sp);
}

static void add(FILE *request, const char *name, const char *value)
{
    fprintf(request, "%s=%s", name, value);
    fputc(0, request);
}

static void add_variable(FILE *request, spank_t sp, const char *name, const char *variable)
{
    char value[4096];
    if (spank_getenv(sp, variable, value, sizeof(value)) == ESPANK_SUCCESS)
        add(request, name, value);
}

static int add_user(FILE *request, spank_t sp)
{
    uid_t uid;
    gid_t gid, *groups = NULL;
    int count = 0;

    if (spank_get_item(sp, S_JOB_UID, &uid) != ESPANK_SUCCESS || spank_get_item(sp, S_JOB_GID, &gid) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_SUPPLEMENTARY_GIDS, &groups, &count) != ESPANK_SUCCESS)
        return -1;
    fprintf(request, "uid=%u%cgid=%u%cgroups=", uid, 0, gid, 0);
    for (int i = 0; i < count; i++)
        fprintf(request, "%s%u", i ? "," : "", groups[i]);
    fputc(0, request);
    return 0;
}

static void add_script(FILE *request, spank_t sp, uint32_t number)
{
    int argc = 0;
    char **argv = NULL;
    if (number == SLURM_BATCH_SCRIPT && spank_get_item(sp, S_JOB_ARGV, &argc, &argv) == ESPANK_SUCCESS && argc > 0)
        add(request, "script", argv[0]);
}

/* Start the helper with a socket as its descriptor 0. */
static pid_t spawn_helper(int ac, char **av, int channel)
{
    static const char program[] = "import sys; sys.path.insert(0, sys.argv[1]); from start import main; main()";
    char *argv[] = {(char *)argument(ac, av, "python"), "-I", "-S", "-B", "-c", (char *)program,
                    (char *)argument(ac, av, "helper"), NULL};
    char *envp[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    pid_t pid = -1;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, channel, 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&files, 3);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if ((errno = posix_spawn(&pid, argv[0], &files, &attributes, argv, envp)) != 0)
        pid = -1;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return pid;
}

/* The helper's whole answer into step.answer, and the descriptor that comes with it. */
static int receive(int channel)
{
    step.answer = calloc(1, ANSWER_MAX + 1);
    while (step.answer != NULL && step.length < ANSWER_MAX) {
        char control[CMSG_SPACE(sizeof(int))] = {0};
        struct iovec part = {.iov_base = step.answer + step.length, .iov_len = ANSWER_MAX - step.length};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                                 .msg_controllen = sizeof(control)};
        ssize_t got = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
            memcpy(&step.mounts, CMSG_DATA(header), sizeof(int));
        step.length += got;
    }
    return -1;
}

static void exchange(int ac, char **av, const char *request, size_t length)
{
    /* An image file is unpacked first. */
    int of_file = *option(CONTAINER_IMAGE) == '/' || *option(CONTAINER_IMAGE) == '.';
    struct timeval limit = {.tv_sec = of_file ? UNPACKING_TIMEOUT_S : HELPER_TIMEOUT_S};
    int ends[2], status;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        snprintf(step.problem, sizeof(step.problem), "socketpair: %s", strerror(errno));
        return;
    }
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    pid_t helper = spawn_helper(ac, av, ends[1]);
    close(ends[1]);
    if (helper < 0) {
        snprintf(step.problem, sizeof(step.problem), "cannot run %s: %s", argument(ac, av, "python"), strerror(errno));
        close(ends[0]);
        return;
    }
    size_t sent = 0;
    while (sent < length) {
        ssize_t some = send(ends[0], request + sent, length - sent, MSG_NOSIGNAL);
        if (some < 0 && errno != EINTR)
            break;
        sent += some > 0 ? some : 0;
    }
    shutdown(ends[0], SHUT_WR);
    int done = receive(ends[0]);
    close(ends[0]);
    if (done != 0)
        kill(helper, SIGKILL);
    while (waitpid(helper, &status, 0) < 0 && errno == EINTR)
        ;
    if (done == 0 && step.length > 3 && strcmp(step.answer, "ok") == 0 && step.mounts >= 0)
        return;
    const char *said = step.answer != NULL && strcmp(step.answer, "error") == 0 ? step.answer + sizeof("error") : NULL;
    snprintf(step.problem, sizeof(step.problem), "%s", said ? said : "container start failed: the helper gave no answer");
}

static void make_container(spank_t sp, int ac, char **av, uint32_t number)
{
    char *request = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&request, &length);

    if (stream == NULL || add_user(stream, sp) < 0) {
        snprintf(step.problem, sizeof(step.problem), "couldn't get the job's user");
        return;
    }
    add(stream, "images", argument(ac, av, "images"));
    add(stream, "image", option(CONTAINER_IMAGE));
    add(stream, "mounts", option(CONTAINER_MOUNTS));
    add(stream, "workdir", option(CONTAINER_WORKDIR));
    add(stream, "mount_home", *option(CONTAINER_MOUNT_HOME) ? "1" : "0");
    add(stream, "read_only", *option(CONTAINER_READONLY) ? "1" : "0");
    add_variable(stream, sp, "home", "HOME");
    add_variable(stream, sp, "folder", "PWD");
    add_variable(stream, sp, "user", "SLURM_JOB_USER");
    add_script(stream, sp, number);
    fclose(stream);
    exchange(ac, av, request, length);
    free(request);
    if (step.problem[0] == 0 && (step.alive = keeper_start(step.mounts)) < 0)
        snprintf(step.problem, sizeof(step.problem), "keeper: %s", strerror(errno));
}

int slurm_spank_init_post_opt(spank_t sp, int ac, char **av)
{
    uint32_t number = 0;

    options_from_environment(sp);
    if (!options_wanted())
        return 0;
    if (spank_context() != S_CTX_REMOTE)
        return 0;
    if (spank_get_item(sp, S_JOB_STEPID, &number) == ESPANK_SUCCESS && number == SLURM_EXTERN_CONT)
        return 0;
    step.wanted = 1;
    make_container(sp, ac, av, number);
    return 0;
}

/* The image's variables go over the job's, unless the user wants the job's: --container-env, as in Pyxis. */
static void import_environment(spank_t sp)
{
    static const char *const of_the_node[] = {"LANG", "LANGUAGE", "LC_ALL"};
    char pytorch[256];
    const char *end = step.answer + step.length;

    for (size_t i = 0; i < sizeof(of_the_node) / sizeof(*of_the_node); i++)
        if (!option_lists(CONTAINER_ENV, of_the_node[i]))
            spank_unsetenv(sp, of_the_node[i]);
    const char *word = step.answer + sizeof("ok");
    for (word += strlen(word) + 1; word < end; word += strlen(word) + 1) {
        char *name = strdup(word), *value = name != NULL ? strchr(name, '=') : NULL;
        if (value != NULL) {
            *value++ = 0;
            spank_setenv(sp, name, value, !option_lists(CONTAINER_ENV, name));
        }
        free(name);
    }
    /* Images of PyTorch that say so find their rank where torch looks for it, as in Pyxis. */
    if (spank_getenv(sp, "PYTORCH_VERSION", pytorch, sizeof(pytorch)) == ESPANK_SUCCESS) {
        char rank[32];
        if (spank_getenv(sp, "SLURM_PROCID", rank, sizeof(rank)) == ESPANK_SUCCESS)
            spank_setenv(sp, "RANK", rank, 1);
        if (spank_getenv(sp, "SLURM_LOCALID", rank, sizeof(rank)) == ESPANK_SUCCESS)
            spank_setenv(sp, "LOCAL_RANK", rank, 1);
    }
}

static int set_capabilities(int none)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {0};
    if (!none) {
        sets[0].effective = 1u << CAP_SYS_ADMIN | 1u << CAP_SYS_CHROOT | 1u << CAP_SETPCAP;
        sets[0].permitted = sets[0].effective;
    }
    return syscall(SYS_capset, &header, sets);
}

/* As root, before the task becomes its user: what it needs to enter the container outlives that change, until below. */
int slurm_spank_task_init_privileged(spank_t sp, int ac, char **av)
{
    return step.wanted ? prctl(PR_SET_KEEPCAPS, 1) : 0;
}

/* Enter the container and give up every privilege for good, as Slurm's user and with nothing of the user's run yet. */
static int enter(void)
{
    if (set_capabilities(0) < 0 || setns(step.mounts, CLONE_NEWNS) < 0)
        return -1;
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++)
        if (prctl(PR_CAPBSET_DROP, capability) < 0)
            return -1;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 || set_capabilities(1) < 0 ||
        prctl(PR_SET_KEEPCAPS, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return 0;
}

/* The lines that Pyxis prints when it has an image from a registry. */
static void tell_import(spank_t sp)
{
    uint32_t tasks = 0;

    if (*option(CONTAINER_IMAGE) == '/' || *option(CONTAINER_IMAGE) == '.')
        return;
    spank_get_item(sp, S_JOB_TOTAL_TASK_COUNT, &tasks);
    if (tasks <= 1)
        slurm_spank_log("pyxis: importing docker image: %s", option(CONTAINER_IMAGE));
    slurm_spank_log("pyxis: imported docker image: %s", option(CONTAINER_IMAGE));
}

int slurm_spank_task_init(spank_t sp, int ac, char **av)
{
    int local = 0;

    if (!step.wanted)
        return 0;
    spank_get_item(sp, S_TASK_ID, &local);
    if (step.problem[0] != 0) {
        if (local == 0)
            slurm_error("pyxis: %s", step.problem);
        return -1;
    }
    if (local == 0)
        tell_import(sp);
    import_environment(sp);
    if (enter() < 0) {
        slurm_error("pyxis: couldn't join the container: %s", strerror(errno));
        return -1;
    }
    const char *where = step.answer + sizeof("ok");
    if (chdir(where) < 0) {
        slurm_error("pyxis: couldn't chdir to %s: %s", where, strerror(errno));
        return -1;
    }
    return 0;
}

int slurm_spank_exit(spank_t sp, int ac, char **av)
{
    if (step.alive >= 0)
        close(step.alive);
    if (step.mounts >= 0)
        close(step.mounts);
    free(step.answer);
    step.answer = NULL;
    step.alive = step.mounts = -1;
    step.wanted = 0;
    options_free();
    return 0;
}
