"""
Names of the things that happen, as they stand in an event's ``kind``. Below each: who writes it, and what it means.

The page of events lists them as they are here. A reader keeps events of kinds it does not know, so a
newer writer never breaks an older reader.
"""

CLUSTER_CREATING = "cluster_creating"
"""control-plane: a new cluster record was seen"""
CLUSTER_IN_SERVICE = "cluster_in_service"
"""control-plane: every node runs and Slurm answers; after a rollback `evidence` says why"""
CLUSTER_UPDATING = "cluster_updating"
"""control-plane: node counts or settings are being changed, or taken back"""
CLUSTER_FAILED = "cluster_failed"
"""control-plane: creation failed; `evidence` names group, instance and step"""
CLUSTER_DELETING = "cluster_deleting"
"""control-plane: deletion has begun"""
CLUSTER_DELETED = "cluster_deleted"
"""control-plane: nothing of the cluster is left"""
NODE_BOOTING = "node_booting"
"""control-plane: an instance is being started"""
NODE_BOOTED = "node_booted"
"""control-plane: its init process runs; `duration_s`"""
SLURM_READY = "slurm_ready"
"""control-plane: its Slurm daemon is registered"""
KUBERNETES_READY = "kubernetes_ready"
"""control-plane: its Node is ready in Kubernetes"""
NODE_IN_SERVICE = "node_in_service"
"""control-plane: lifecycle done, ready for jobs; `duration_s` since its preparation began"""
NODE_FAILED = "node_failed"
"""control-plane: the instance could not be brought into service; `evidence`"""
NODE_LOST = "node_lost"
"""control-plane: a running instance is gone or silent; the moment of notice; `fault`, `evidence`, `action`"""
NODE_REPLACING = "node_replacing"
"""control-plane: a replacement was begun; `node` old, `detail.replacement` new instance id"""
NODE_REPLACED = "node_replaced"
"""control-plane: in service again; `node` new, `detail.replaces` old instance id, `duration_s` since the notice"""
NODE_REBOOTING = "node_rebooting"
"""control-plane: a reboot was begun"""
NODE_REBOOTED = "node_rebooted"
"""control-plane: in service again under the same instance id; `duration_s`"""
NODE_DELETED = "node_deleted"
"""control-plane: the instance was removed on request"""
DAEMON_LOST = "daemon_lost"
"""control-plane: a daemon on a node has ended or stands still; `evidence` which, `detail.program`"""
DAEMON_RESTORED = "daemon_restored"
"""control-plane: it runs again; `duration_s` since it was missed"""
FILE_IMPORTED = "file_imported"
"""control-plane: an S3 object appeared on the file system; `detail.path`, `detail.object`, `detail.count`"""
FILE_EXPORTED = "file_exported"
"""control-plane: a file was copied to S3; the same details"""

LIFECYCLE_STARTED = "lifecycle_started"
"""lifecycle: a lifecycle script has begun; `detail.role`, `detail.hook`"""
STEP_FINISHED = "step_finished"
"""lifecycle: a step is satisfied; `detail.step`, `detail.outcome`, `duration_s`"""
STEP_FAILED = "step_failed"
"""lifecycle: a step failed; `evidence` what was seen, `action` what to do"""
LIFECYCLE_FINISHED = "lifecycle_finished"
"""lifecycle: all steps were tried; `detail.outcome` succeeded or failed, `detail.steps`"""

JOB_STARTED = "job_started"
"""
job: the first step is about to run; `detail.world_size`, `detail.step`, `detail.nodes` (instance ids, separated by
commas), `detail.sizes` of an elastic job (numbers of nodes). Under `holdfast-run` its launchers write this and what
follows up to `job_finished`, whatever the script
"""
JOB_PROGRESS = "job_progress"
"""job: `detail.step` of `detail.steps` steps are done; `detail.loss`. Every 2 s, and before each recovery"""
JOB_RESIZED = "job_resized"
"""
job: the job trains with another number of ranks, from `detail.step`; `detail.world_size` in place of
`detail.world_size_before`; `detail.planned` where nothing was lost. `job_resumed` of the same step follows
"""
CHECKPOINT_SAVED = "checkpoint_saved"
"""job: `detail.step` can be resumed from; `duration_s`"""
JOB_RESUMED = "job_resumed"
"""
job: the job runs again, from `detail.step`: that of a checkpoint, or of the processes that are left; `evidence` when a
newer checkpoint was damaged; otherwise as `job_started`
"""
JOB_FINISHED = "job_finished"
"""job: the last step is done; `detail.step`, `detail.loss`"""
RECOVERY_DETECTED = "recovery_detected"
"""
job: what broke was noticed; `duration_s` since the last step. This and the four that follow are written by one launcher
once the ranks are together again, each with the time at which its phase ended, and `detail.planned` where nothing broke
"""
RECOVERY_ABORTED = "recovery_aborted"
"""job: no rank of the launcher that writes this is in a collective any more; `duration_s`"""
RECOVERY_AGREED = "recovery_agreed"
"""job: the view was committed; `duration_s`"""
RECOVERY_COPIED = "recovery_copied"
"""job: each rank has its state; absent where none had to be copied; `duration_s`"""
RECOVERY_REBUILT = "recovery_rebuilt"
"""job: all ranks are connected and compared; `duration_s`; `job_resumed` follows"""
RANK_LOST = "rank_lost"
"""job: a process of training died; `evidence` how, `detail.rank`, `detail.step`"""
LAUNCHER_LOST = "launcher_lost"
"""job: a whole node of training is out of reach; `detail.lost` its node rank"""
WITNESS_LOST = "witness_lost"
"""job: the voter beside the controller is out of reach; `evidence` how"""
SPARE_READY = "spare_ready"
"""job: a node that came back is warm and may take a rank; `detail.launcher`"""
VIEW_COMMITTED = "view_committed"
"""
job: launchers agreed who has which rank; `detail.generation`, `detail.step`, `detail.lost_steps`, `duration_s` since
the fault; `detail.spare` of an allocation that lacks a node: expand where Slurm is asked for another one, else none
"""
STACKS_DUMPED = "stacks_dumped"
"""
job: where a rank is was asked for; `evidence` the beginning of it, `detail.rank`, `detail.pid`, `detail.path` the rest
on that node
"""
JOB_STOPPED = "job_stopped"
"""job: training cannot go on; `evidence` why"""

AGENT_STARTED = "agent_started"
"""
agent: the health agent of a node runs; `detail.mode` observe or act, `detail.detectors`; `detail.slurm` the answer of
`scontrol -V` on a node of Slurm, or why there is none
"""
RECORDS_LOST = "records_lost"
"""agent: the kernel overwrote records before they were read; `detail.lost`"""
DETECTOR_LOST = "detector_lost"
"""
agent: a detector worked on this node and works no more; `evidence` why, `detail.detector`, `detail.part` such as a
mount point, `duration_s` for how long it has failed. A restarted agent reports again what is lost
"""
DETECTOR_BACK = "detector_back"
"""agent: it works again, or is not watched any more; the same details"""
VERDICT = "verdict"
"""
agent: what is seen means a fault, and what it asks for; `fault`, `evidence`, `action` the remedy; `detail.incident`,
`detail.code`, `detail.device`, `detail.severity`, `detail.when`; `detail.signal_ns` when its first sign was seen, where
that is known
"""
VERDICT_WITHDRAWN = "verdict_withdrawn"
"""agent: the fault is over, or was none; `evidence` why; `detail.incident`"""
REMEDY_REQUESTED = "remedy_requested"
"""
agent: a remedy was asked for; `action` which, `detail.incident`, `detail.way` runtime, slurm, label or api,
`detail.host`
"""
REMEDY_REFUSED = "remedy_refused"
"""agent: a remedy is due and is not asked for; `evidence` why, such as the open breaker; `detail.incident`"""
HANDED_OVER = "handed_over"
"""
agent: the ranks of a node went to the spare while the job goes on; `detail.rank`, `detail.step`, `duration_s`
"""
NODE_QUALIFIED = "node_qualified"
"""
lifecycle: the checks before a node joins have passed; agent: those of an idle node; `duration_s`, `detail.seconds`, and
of the agent `detail.incident`, for which they were due
"""

FAULT_INJECTED = "fault_injected"
"""
cli: a fault was caused on purpose; `node` and `fault`; of `holdfast inject` also `detail.planted` its name,
`detail.what`, `detail.host`, `detail.device`, `detail.ends_ns`
"""
JOB_SUBMITTED = "job_submitted"
"""cli: a job was given to the scheduler"""
