#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper.h"

enum { PAUSE_US = 10000, ROUNDS = 6000 };

static int is_inside(int pid, const struct stat *mounts)
{
    char path[64];
    struct stat theirs;
    snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
    return stat(path, &theirs) == 0 && theirs.st_ino == mounts->st_ino && theirs.st_dev == mounts->st_dev;
}

/* SIGKILL to all that are in the container; how many there were. */
static int kill_members(const struct stat *mounts)
{
    int count = 0;
    struct dirent *entry;
    DIR *processes = opendir("/proc");

    while (processes != NULL && (entry = readdir(processes)) != NULL) {
        int pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
        if (pid == 0 || !is_inside(pid, mounts))
            continue;
        int handle = pidfd_open(pid, 0);
        /* Looked at again: the number may have passed to another process before it was held. */
        if (handle >= 0 && is_inside(pid, mounts)) {
            count++;
            pidfd_send_signal(handle, SIGKILL, NULL, 0);
        }
        if (handle >= 0)
            close(handle);
    }
    if (processes != NULL)
        closedir(processes);
    return count;
}

static void keep(int mounts, int gone)
{
    char byte;
    struct stat inside;
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    prctl(PR_SET_NAME, "holdfast-keeper");
    if (dup2(gone, 0) < 0 || dup2(mounts, 1) < 0 || chdir("/") < 0)
        _exit(1);
    close_range(2, ~0u, 0);
    if (fstat(1, &inside) < 0)
        _exit(1);
    while (read(0, &byte, 1) < 0 && errno == EINTR)
        ;
    for (int round = 0; round < ROUNDS && kill_members(&inside) > 0; round++)
        usleep(PAUSE_US);
    _exit(0);
}

int keeper_start(int mounts)
{
    int ends[2], status;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    pid_t middle = fork();
    if (middle == 0) {
        /* A child of the node's init, since Slurm ends and counts the children of slurmstepd. */
        pid_t keeper = fork();
        if (keeper == 0) {
            close(ends[1]);
            keep(mounts, ends[0]);
        }
        _exit(keeper < 0);
    }
    close(ends[0]);
    while (middle > 0 && waitpid(middle, &status, 0) < 0 && errno == EINTR)
        ;
    if (middle < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        close(ends[1]);
        errno = ECHILD;
        return -1;
    }
    return ends[1];
}
