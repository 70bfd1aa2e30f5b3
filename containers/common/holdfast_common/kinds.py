"""Names of the things that happen, as they stand in an event's ``kind``.

A reader keeps events of kinds it does not know, so a newer writer never breaks an older reader.

===================  ==============  =====================================================================
kind                 written by      meaning
===================  ==============  =====================================================================
cluster_creating     control-plane   a new cluster record was seen
cluster_in_service   control-plane   every node runs and Slurm answers
cluster_updating     control-plane   node counts or settings are being changed
cluster_failed       control-plane   creation failed; ``evidence`` names group, instance and step
cluster_deleting     control-plane   deletion has begun
cluster_deleted      control-plane   nothing of the cluster is left
node_booting         control-plane   an instance is being started
node_booted          control-plane   its init process runs
slurm_ready          control-plane   its Slurm daemon is registered
node_in_service      control-plane   lifecycle done, ready for jobs
node_failed          control-plane   the instance could not be brought into service
node_lost            control-plane   a running instance is gone; the moment of notice
node_replacing       control-plane   a replacement was begun
node_replaced        control-plane   in service again; ``node`` new, ``detail.replaces`` old instance id
node_rebooting       control-plane   a reboot was begun
node_rebooted        control-plane   in service again under the same instance id
node_deleted         control-plane   the instance was removed on request
daemon_lost          control-plane   a daemon of Slurm on a node has ended or stands still; ``detail.program``
daemon_restored      control-plane   it runs again; ``duration_s`` since it was missed
file_imported        control-plane   an S3 object appeared on the file system
file_exported        control-plane   a file was copied to S3
lifecycle_started    lifecycle       a lifecycle script has begun; ``detail.role``, ``detail.hook``
step_finished        lifecycle       a step is satisfied; ``detail.step``, ``detail.outcome``, ``duration_s``
step_failed          lifecycle       a step failed; ``evidence`` what was seen, ``action`` what to do
lifecycle_finished   lifecycle       all steps were tried; ``detail.outcome`` succeeded or failed
job_started          job             the first step is about to run; ``detail.world_size``, ``detail.step``
job_progress         job             ``detail.step`` steps are done; ``detail.loss``
checkpoint_saved     job             ``detail.step`` can be resumed from
job_resumed          job             the job runs again, from the checkpoint of ``detail.step``
job_finished         job             the last step is done; ``detail.step``, ``detail.loss``
rank_lost            job             a process of training died; ``evidence`` how, ``detail.rank``, ``detail.step``
launcher_lost        job             a whole node of training is out of reach; ``detail.lost`` its node rank
witness_lost         job             the voter beside the controller is out of reach; ``evidence`` how
spare_ready          job             a node that came back is warm and may take a rank; ``detail.launcher``
view_committed       job             launchers agreed who has which rank; ``detail.epoch``, ``detail.step``,
                                     ``detail.lost_steps``, ``duration_s`` since the fault
job_stopped          job             training cannot go on; ``evidence`` why
fault_injected       cli             a fault was caused on purpose; ``node`` and ``fault``
job_submitted        cli             a job was given to the scheduler
===================  ==============  =====================================================================
"""

CLUSTER_CREATING = "cluster_creating"
CLUSTER_IN_SERVICE = "cluster_in_service"
CLUSTER_UPDATING = "cluster_updating"
CLUSTER_FAILED = "cluster_failed"
CLUSTER_DELETING = "cluster_deleting"
CLUSTER_DELETED = "cluster_deleted"
NODE_BOOTING = "node_booting"
NODE_BOOTED = "node_booted"
SLURM_READY = "slurm_ready"
NODE_IN_SERVICE = "node_in_service"
NODE_FAILED = "node_failed"
NODE_LOST = "node_lost"
NODE_REPLACING = "node_replacing"
NODE_REPLACED = "node_replaced"
NODE_REBOOTING = "node_rebooting"
NODE_REBOOTED = "node_rebooted"
NODE_DELETED = "node_deleted"
DAEMON_LOST = "daemon_lost"
DAEMON_RESTORED = "daemon_restored"
FILE_IMPORTED = "file_imported"
FILE_EXPORTED = "file_exported"

LIFECYCLE_STARTED = "lifecycle_started"
STEP_FINISHED = "step_finished"
STEP_FAILED = "step_failed"
LIFECYCLE_FINISHED = "lifecycle_finished"

JOB_STARTED = "job_started"
JOB_PROGRESS = "job_progress"
CHECKPOINT_SAVED = "checkpoint_saved"
JOB_RESUMED = "job_resumed"
JOB_FINISHED = "job_finished"
RANK_LOST = "rank_lost"
LAUNCHER_LOST = "launcher_lost"
WITNESS_LOST = "witness_lost"
SPARE_READY = "spare_ready"
VIEW_COMMITTED = "view_committed"
JOB_STOPPED = "job_stopped"

FAULT_INJECTED = "fault_injected"
JOB_SUBMITTED = "job_submitted"
