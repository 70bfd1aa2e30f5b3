"""
Kinds of events. Below each: the writer, and the meaning.

The page of events lists them. A reader keeps events of unknown kinds, so a newer writer never breaks it.
"""

CLUSTER_CREATING = "cluster_creating"
"""control-plane: a new cluster record was seen"""
CLUSTER_IN_SERVICE = "cluster_in_service"
"""control-plane: all nodes run and Slurm responds; after a rollback `evidence` has the reason"""
CLUSTER_UPDATING = "cluster_updating"
"""control-plane: node counts or settings are being changed, or taken back"""
CLUSTER_FAILED = "cluster_failed"
"""control-plane: creation failed; `evidence` names group, instance and step"""
CLUSTER_DELETING = "cluster_deleting"
"""control-plane: deletion has started"""
CLUSTER_DELETED = "cluster_deleted"
"""control-plane: the cluster is gone"""
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
"""control-plane: a running instance is gone or silent; time of detection; `fault`, `evidence`, `action`"""
NODE_REPLACING = "node_replacing"
"""control-plane: a replacement has started; `node` old, `detail.replacement` new instance id, `detail.jobs` on it"""
NODE_REPLACED = "node_replaced"
"""control-plane: in service again; `node` new, `detail.replaces` old instance id, `duration_s` since the notice"""
NODE_REBOOTING = "node_rebooting"
"""control-plane: a reboot has started; `detail.jobs` on the node"""
NODE_REBOOTED = "node_rebooted"
"""control-plane: in service again under the same instance id; `duration_s`"""
NODE_UPDATING = "node_updating"
"""control-plane: an update of its software has started: its root volume is replaced; `detail.jobs` on the node"""
NODE_UPDATED = "node_updated"
"""control-plane: in service again with new software under the same instance id; `duration_s`"""
NODE_MOVING = "node_moving"
"""control-plane: it moves to another group, of this or another cluster; `node_in_service` follows there"""
NODE_DELETED = "node_deleted"
"""control-plane: the instance was removed on request"""
DAEMON_LOST = "daemon_lost"
"""control-plane: a daemon on a node has exited or hangs; `evidence` which, `detail.program`"""
DAEMON_RESTORED = "daemon_restored"
"""control-plane: the daemon runs again; `duration_s` since it was missed"""
FILE_IMPORTED = "file_imported"
"""control-plane: an S3 object appeared on the file system; `detail.path`, `detail.object`, `detail.count`"""
FILE_EXPORTED = "file_exported"
"""control-plane: a file was copied to S3; the same details"""

LIFECYCLE_STARTED = "lifecycle_started"
"""lifecycle: a lifecycle script has started; `detail.role`, `detail.hook`"""
STEP_FINISHED = "step_finished"
"""lifecycle: a step is satisfied; `detail.step`, `detail.outcome`, `duration_s`"""
STEP_FAILED = "step_failed"
"""lifecycle: a step failed; `evidence` the state found, `action` what to do"""
LIFECYCLE_FINISHED = "lifecycle_finished"
"""lifecycle: all steps have ended; `detail.outcome` succeeded or failed, `detail.steps`"""

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
job: the job was resized to another number of ranks, from `detail.step`; `detail.world_size` in place of
`detail.world_size_before`; `detail.planned` if nothing was lost. `job_resumed` of the same step follows
"""
CHECKPOINT_SAVED = "checkpoint_saved"
"""job: `detail.step` can be resumed from; `duration_s`"""
JOB_RESUMED = "job_resumed"
"""
job: the job resumed at `detail.step`: that of a checkpoint, or of the remaining processes; `evidence` when a
newer checkpoint was damaged; otherwise as `job_started`
"""
JOB_FINISHED = "job_finished"
"""job: the last step is done; `detail.step`, `detail.loss`"""
RECOVERY_DETECTED = "recovery_detected"
"""
job: a failure was detected; `duration_s` since the last step. This and the four that follow are written by one launcher
once the ranks are together again, each with the time at which its phase ended, and `detail.planned` without a failure
"""
RECOVERY_ABORTED = "recovery_aborted"
"""job: all ranks of this launcher have left their collectives; `duration_s`"""
RECOVERY_AGREED = "recovery_agreed"
"""job: the view was committed; `duration_s`"""
RECOVERY_COPIED = "recovery_copied"
"""job: each rank has its state; absent if none was copied; `duration_s`"""
RECOVERY_REBUILT = "recovery_rebuilt"
"""job: all ranks are connected and compared; `duration_s`; `job_resumed` follows"""
RANK_LOST = "rank_lost"
"""job: a training process died; `evidence` how, `detail.rank`, `detail.step`"""
LAUNCHER_LOST = "launcher_lost"
"""job: a whole node of the job is unreachable; `detail.lost` its node rank"""
WITNESS_LOST = "witness_lost"
"""job: the witness on the controller is unreachable; `evidence` how"""
SPARE_READY = "spare_ready"
"""job: a returned node is warm and can take ranks; `detail.launcher`"""
VIEW_COMMITTED = "view_committed"
"""
job: launchers agreed who has which rank; `detail.generation`, `detail.step`, `detail.lost_steps`, `duration_s` since
the fault; `detail.spare` of an allocation that lacks a node: expand where Slurm is asked for another one, else none
"""
STACKS_DUMPED = "stacks_dumped"
"""
job: the stack of a rank was requested; `evidence` its beginning, `detail.rank`, `detail.pid`, `detail.path` the rest
on that node
"""
JOB_STOPPED = "job_stopped"
"""job: training cannot continue; `evidence` why"""

AGENT_STARTED = "agent_started"
"""
agent: the health agent of a node runs; `detail.mode` observe or act, `detail.detectors`; `detail.slurm` the answer of
`scontrol -V` on a node of Slurm, or why there is none
"""
RECORDS_LOST = "records_lost"
"""agent: the kernel overwrote records before they were read; `detail.lost`"""
DETECTOR_LOST = "detector_lost"
"""
agent: a detector worked on this node and no longer does; `evidence` why, `detail.detector`, `detail.part` such as a
mount point, `duration_s` for how long it has failed. A restarted agent reports again what is lost
"""
DETECTOR_BACK = "detector_back"
"""agent: the detector works again, or is no longer watched; the same details"""
VERDICT = "verdict"
"""
agent: a fault was detected, with its remedy; `fault`, `evidence`, `action` the remedy; `detail.incident`,
`detail.code`, `detail.device`, `detail.severity`, `detail.when`; `detail.signal_ns` when its first sign was seen, where
that is known
"""
VERDICT_WITHDRAWN = "verdict_withdrawn"
"""agent: the fault is over, or the verdict was withdrawn; `evidence` why; `detail.incident`"""
REMEDY_REQUESTED = "remedy_requested"
"""
agent: a remedy was requested; `action` which, `detail.incident`, `detail.way` runtime, slurm, label or api,
`detail.host`
"""
REMEDY_REFUSED = "remedy_refused"
"""agent: a remedy is due and was not requested; `evidence` why, such as the open breaker; `detail.incident`"""
HANDED_OVER = "handed_over"
"""
agent: the ranks of a node were handed over to the spare, the job continues; `detail.rank`, `detail.step`, `duration_s`
"""
NODE_QUALIFIED = "node_qualified"
"""
lifecycle: the checks before a node joins have passed; agent: those of an idle node; `duration_s`, `detail.seconds`, and
of the agent `detail.incident`, for which they were due
"""

FAULT_INJECTED = "fault_injected"
"""
cli: a fault was injected; `node` and `fault`; of `holdfast inject` also `detail.planted` its name,
`detail.what`, `detail.host`, `detail.device`, `detail.ends_ns`; of `holdfast kill-node` of a switch
`detail.switch`
"""
JOB_SUBMITTED = "job_submitted"
"""cli: a job was submitted"""
