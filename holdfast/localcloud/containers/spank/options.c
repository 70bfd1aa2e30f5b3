#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "options.h"

static char *values[OPTIONS_AVAILABLE];

static int take(int val, const char *argument, int remote);
static int refuse(int val, const char *argument, int remote);
static int ignore(int val, const char *argument, int remote);

#define IS "[pyxis] "

static struct spank_option table[] = {
    {"container-image", "[USER@][REGISTRY#]IMAGE[:TAG]",
     IS "the image to use for the container filesystem: one of the local cluster's, see 'holdfast images list'.", 1,
     CONTAINER_IMAGE, take},
    {"container-mounts", "SRC:DST[:FLAGS][,SRC:DST...]",
     IS "bind mount[s] inside the container. Mount flags are separated with \"+\", e.g. \"ro+rprivate\"", 1,
     CONTAINER_MOUNTS, take},
    {"container-workdir", "PATH", IS "working directory inside the container", 1, CONTAINER_WORKDIR, take},
    {"container-env", "NAME[,NAME...]",
     IS "names of environment variables to override with the host environment; the image's take precedence otherwise", 1,
     CONTAINER_ENV, take},
    {"container-mount-home", NULL, IS "bind mount the user's home directory", 0, CONTAINER_MOUNT_HOME, take},
    {"no-container-mount-home", NULL, IS "do not bind mount the user's home directory", 0, NO_CONTAINER_MOUNT_HOME, take},
    {"container-writable", NULL, IS "make the container filesystem writable", 0, CONTAINER_WRITABLE, take},
    {"container-readonly", NULL, IS "make the container filesystem read-only", 0, CONTAINER_READONLY, take},
    {"no-container-remap-root", NULL, IS "do not remap to root inside the container", 0, 0, ignore},
    {"no-container-entrypoint", NULL, IS "do not execute the entrypoint from the container image", 0, 0, ignore},
    {"container-name", "NAME", IS "not available on the local cluster", 1, 10, refuse},
    {"container-save", "PATH", IS "not available on the local cluster", 1, 11, refuse},
    {"container-remap-root", NULL, IS "not available on the local cluster", 0, 12, refuse},
    {"container-entrypoint", NULL, IS "not available on the local cluster", 0, 13, refuse},
    {"container-entrypoint-log", NULL, IS "not available on the local cluster", 0, 14, refuse},
    {"container-unshare", "NS[,NS...]", IS "not available on the local cluster", 1, 15, refuse},
    SPANK_OPTIONS_TABLE_END,
};

static int take(int val, const char *argument, int remote)
{
    const char *given = table[val].has_arg ? argument : "1";
    static const enum option_name opposites[][2] = {{CONTAINER_MOUNT_HOME, NO_CONTAINER_MOUNT_HOME},
                                                    {CONTAINER_WRITABLE, CONTAINER_READONLY}};

    if (given == NULL || *given == 0) {
        slurm_error("pyxis: --%s: argument required", table[val].name);
        return -1;
    }
    /* Slurm can call twice with the same value. */
    if (values[val] != NULL && strcmp(values[val], given) != 0) {
        slurm_error("pyxis: --%s specified multiple times", table[val].name);
        return -1;
    }
    for (size_t i = 0; i < sizeof(opposites) / sizeof(*opposites); i++) {
        enum option_name one = opposites[i][0], other = opposites[i][1];
        if ((val == (int)one && values[other]) || (val == (int)other && values[one])) {
            slurm_error("pyxis: both --%s and --%s were specified", table[one].name, table[other].name);
            return -1;
        }
    }
    if (values[val] == NULL)
        values[val] = strdup(given);
    return values[val] != NULL ? 0 : -1;
}

static int refuse(int val, const char *argument, int remote)
{
    slurm_error("pyxis: --%s is not available on the local cluster; srun --help lists what is", table[val].name);
    return -1;
}

static int ignore(int val, const char *argument, int remote)
{
    return 0;
}

int options_register(spank_t sp)
{
    for (struct spank_option *one = table; one->name != NULL; one++)
        if (spank_option_register(sp, one) != ESPANK_SUCCESS) {
            slurm_error("pyxis: couldn't register option %s", one->name);
            return -1;
        }
    return 0;
}

static int is_true(const char *text)
{
    static const char *const words[] = {"1", "y", "yes", "t", "true", "on"};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strcasecmp(text, words[i]) == 0)
            return 1;
    return 0;
}

void options_from_environment(spank_t sp)
{
    static const char *const variables[OPTIONS_AVAILABLE] = {
        [CONTAINER_IMAGE] = "PYXIS_CONTAINER_IMAGE",
        [CONTAINER_MOUNTS] = "PYXIS_CONTAINER_MOUNTS",
        [CONTAINER_WORKDIR] = "PYXIS_CONTAINER_WORKDIR",
        [CONTAINER_ENV] = "PYXIS_CONTAINER_ENV",
        [CONTAINER_MOUNT_HOME] = "PYXIS_CONTAINER_MOUNT_HOME",
        [CONTAINER_READONLY] = "PYXIS_CONTAINER_READONLY",
    };
    char buffer[4096];

    for (int val = 0; val < OPTIONS_AVAILABLE; val++) {
        const char *found = NULL;
        if (variables[val] == NULL || values[val] != NULL)
            continue;
        if (spank_context() != S_CTX_REMOTE)
            found = getenv(variables[val]);
        else if (spank_getenv(sp, variables[val], buffer, sizeof(buffer)) == ESPANK_SUCCESS)
            found = buffer;
        if (found == NULL || *found == 0)
            continue;
        if (table[val].has_arg)
            values[val] = strdup(found);
        else if (is_true(found) && values[val + (val == CONTAINER_READONLY ? -1 : 1)] == NULL)
            values[val] = strdup("1");
    }
}

int options_wanted(void)
{
    if (values[CONTAINER_IMAGE] != NULL)
        return 1;
    for (int val = 0; val < OPTIONS_AVAILABLE; val++)
        if (values[val] != NULL && val != CONTAINER_ENV)
            slurm_error("pyxis: ignoring --%s because neither --container-image nor --container-name is set",
                        table[val].name);
    return 0;
}

const char *option(enum option_name name)
{
    return values[name] != NULL ? values[name] : "";
}

int option_lists(enum option_name name, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = option(name); *at != 0; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == 0))
            return 1;
    return 0;
}

void options_free(void)
{
    for (int val = 0; val < OPTIONS_AVAILABLE; val++) {
        free(values[val]);
        values[val] = NULL;
    }
}
