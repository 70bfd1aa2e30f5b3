/*
 * The keeper of a container: a process that outlives slurmstepd by moments and ends what is still in the container.
 *
 * Slurm ends the children of slurmstepd that it still knows. A program that left its parents, or any program when
 * slurmstepd was killed, would stay.
 */
#ifndef HOLDFAST_KEEPER_H
#define HOLDFAST_KEEPER_H

int keeper_start(int mounts); /* a descriptor, whose last copy's end is the container's; -1 with errno */

#endif
