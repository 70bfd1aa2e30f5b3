/* Pyxis's options: those that are known here, and those that are refused with a reason. */
#ifndef HOLDFAST_OPTIONS_H
#define HOLDFAST_OPTIONS_H

#include <slurm/spank.h>

enum option_name {
    CONTAINER_IMAGE,
    CONTAINER_MOUNTS,
    CONTAINER_WORKDIR,
    CONTAINER_ENV,
    CONTAINER_MOUNT_HOME,
    NO_CONTAINER_MOUNT_HOME,
    CONTAINER_WRITABLE,
    CONTAINER_READONLY,
    OPTIONS_AVAILABLE
};

int options_register(spank_t sp);
void options_from_environment(spank_t sp); /* PYXIS_CONTAINER_*, for what the command line leaves open */
int options_wanted(void);                  /* whether there is an image */
const char *option(enum option_name name); /* its value, "1" for one without a value, "" when it is not given */
int option_lists(enum option_name name, const char *word); /* whether word is in a list with commas */
void options_free(void);

#endif
