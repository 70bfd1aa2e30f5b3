/*
 * srun --auto-resume=1 on the local cluster.
 *
 * "The hardware checks are run whenever a job fails while using auto-resume", and on nodes with GRES the job is then
 * requeued (SageMaker developer guide, sagemaker-hyperpod-resiliency-slurm-auto-resume). Here the check is whether
 * somebody has marked a node of the job; a node that is lost makes Slurm requeue the job by itself.
 *
 * plugstack.conf: required PATH helper=PROGRAM
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/spank.h>

SPANK_PLUGIN(holdfast_auto_resume, 1)

static long wanted;

static int take(int val, const char *text, int remote)
{
    char *end = NULL;
    errno = 0;
    long number = text != NULL && *text != '\0' ? strtol(text, &end, 10) : -1;
    (void)val;
    (void)remote;
    if (errno != 0 || number < 0 || end == NULL || *end != '\0') {
        slurm_error("--auto-resume: got '%s'; allowed: 1, or 0 for off", text != NULL ? text : "");
        return -1;
    }
    wanted = number;
    return 0;
}

static struct spank_option option = {
    .name = "auto-resume",
    .arginfo = "1",
    .usage = "requeue the job when this step fails for a node that is to be replaced",
    .has_arg = 1,
    .val = 0,
    .cb = take,
};

int slurm_spank_init(spank_t sp, int ac, char **av)
{
    (void)ac;
    (void)av;
    /* Of srun alone, as on HyperPod: neither sbatch nor salloc knows it. */
    spank_context_t context = spank_context();
    if (context != S_CTX_LOCAL && context != S_CTX_REMOTE)
        return ESPANK_SUCCESS;
    return spank_option_register(sp, &option);
}

static const char *helper_of(int ac, char **av)
{
    for (int i = 0; i < ac; i++)
        if (strncmp(av[i], "helper=", 7) == 0)
            return av[i] + 7;
    return NULL;
}

/* Twice forked: nobody waits for it, and it outlives the step that the requeue ends. */
static void run_helper(const char *helper, uint32_t job)
{
    char number[16];
    snprintf(number, sizeof(number), "%u", job);
    pid_t child = fork();
    if (child < 0)
        return;
    if (child == 0) {
        setsid();
        if (fork() == 0) {
            execl("/bin/sh", "sh", helper, number, (char *)NULL);
            _exit(127);
        }
        _exit(0);
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
}

int slurm_spank_task_exit(spank_t sp, int ac, char **av)
{
    int status = 0;
    uint32_t job = 0;
    const char *helper = helper_of(ac, av);
    if (wanted <= 0 || helper == NULL)
        return ESPANK_SUCCESS;
    if (spank_get_item(sp, S_TASK_EXIT_STATUS, &status) != ESPANK_SUCCESS || status == 0)
        return ESPANK_SUCCESS;
    if (spank_get_item(sp, S_JOB_ID, &job) == ESPANK_SUCCESS)
        run_helper(helper, job);
    return ESPANK_SUCCESS;
}
