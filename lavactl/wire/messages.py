"""Messages and enum numbers for commands: the generated ones for the type checker, lean equivalents at run time.

A command imports these in place of protos.jobs_pb2 and protos.common_pb2, and so starts without the protobuf library.
Each table repeats fields of a .proto file, number, name and kind; a test compares them with the generated descriptors.
"""

__all__ = [
    "DONE",
    "EXIT",
    "JOB_STATE_UNSPECIFIED",
    "PEND",
    "PSUSP",
    "REMOVE",
    "REQUEUE",
    "RESIZE_CANCEL",
    "RESIZE_RELEASE",
    "RESIZE_REQUEST",
    "RESUME",
    "RUN",
    "SEND",
    "SSUSP",
    "STAGING",
    "STOP",
    "TERMINATE",
    "TERMINATE_DONE",
    "UNKWN",
    "USUSP",
    "ZOMBI",
    "ArrayCounts",
    "AttemptKey",
    "DependenciesReply",
    "DependenciesRequest",
    "DependencyLink",
    "ExplainReply",
    "ExplainRequest",
    "Explanation",
    "ForceRequest",
    "GpuRequest",
    "HistoryRequest",
    "HostShare",
    "IndexRange",
    "JobChange",
    "JobFilter",
    "JobPage",
    "JobRecord",
    "JobRef",
    "JobSpec",
    "ListJobsRequest",
    "ModifyReply",
    "ModifyRequest",
    "MoveReply",
    "MoveRequest",
    "PeekRequest",
    "PeekTicketRequest",
    "PendingReason",
    "ResizeReply",
    "ResizeRequest",
    "Rlimit",
    "Role",
    "SignalReply",
    "SignalRequest",
    "SignalResult",
    "SubmitBatch",
    "SubmitItem",
    "SubmitReplies",
    "SubmitResult",
    "TailChunk",
    "TaskInput",
    "TaskOutput",
    "TaskStart",
    "Usage",
    "WatchRequest",
    "read_page",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from protos.agents_pb2 import TailChunk, TaskInput, TaskOutput, TaskStart
    from protos.common_pb2 import (
        DONE,
        EXIT,
        JOB_STATE_UNSPECIFIED,
        PEND,
        PSUSP,
        RUN,
        SSUSP,
        STAGING,
        UNKWN,
        USUSP,
        ZOMBI,
        AttemptKey,
        GpuRequest,
        HostShare,
        IndexRange,
        JobRef,
        Role,
        Usage,
    )
    from protos.jobs_pb2 import (
        REMOVE,
        REQUEUE,
        RESIZE_CANCEL,
        RESIZE_RELEASE,
        RESIZE_REQUEST,
        RESUME,
        SEND,
        STOP,
        TERMINATE,
        TERMINATE_DONE,
        ArrayCounts,
        DependenciesReply,
        DependenciesRequest,
        DependencyLink,
        ExplainReply,
        ExplainRequest,
        Explanation,
        ForceRequest,
        HistoryRequest,
        JobChange,
        JobFilter,
        JobPage,
        JobRecord,
        JobSpec,
        ListJobsRequest,
        ModifyReply,
        ModifyRequest,
        MoveReply,
        MoveRequest,
        PeekRequest,
        PeekTicketRequest,
        PendingReason,
        ResizeReply,
        ResizeRequest,
        Rlimit,
        SignalReply,
        SignalRequest,
        SignalResult,
        SubmitBatch,
        SubmitItem,
        SubmitReplies,
        SubmitResult,
        WatchRequest,
    )
else:
    from lavactl.wire.lean import Message, table

    JOB_STATE_UNSPECIFIED, PEND, PSUSP, STAGING, RUN, USUSP, SSUSP, DONE, EXIT, UNKWN, ZOMBI = range(11)
    TERMINATE, SEND, STOP, RESUME, REMOVE, REQUEUE, TERMINATE_DONE = range(7)
    RESIZE_RELEASE, RESIZE_REQUEST, RESIZE_CANCEL = range(3)

    def _message(name: str, text: str, *kinds: type[Message]) -> type[Message]:
        made = type(name, (Message,), {"__module__": __name__})
        table(made, text, *kinds)
        return made

    IndexRange = _message("IndexRange", "1 first u, 2 last u, 3 step u")
    JobRef = _message("JobRef", "1 job u, 2 indices IndexRange*", IndexRange)
    GpuRequest = _message("GpuRequest", "1 num u, 2 per_task t, 3 exclusive_process t, 4 j_exclusive t, 5 text s")
    Role = _message(
        "Role",
        "1 name s, 2 tasks_min u, 3 tasks_max u, 4 slots_per_task u, 5 requirement s, 6 gpu GpuRequest, 7 launch u, "
        "8 command s",
        GpuRequest,
    )
    HostShare = _message(
        "HostShare",
        "1 host s, 2 slots u, 3 gpus u*, 4 memory_mib u, 6 tasks_by_role u*, 9 gpu_memory_mib u*, 10 gpu_roles u*",
    )
    Usage = _message(
        "Usage",
        "1 cpu_s d, 2 memory_mib u, 3 memory_mib_max u, 4 swap_mib u, 5 pids u*, 6 process_groups u*, 7 threads u, "
        "8 host s, 9 memory_mib_mean d, 10 user_s d, 11 system_s d",
    )
    Rlimit = _message("Rlimit", "1 name s, 2 soft u")
    JobSpec = _message(
        "JobSpec",
        "1 name s, 2 command s, 3 is_script t, 4 queues s*, 5 project s, 6 cwd s, 7 submit_cwd s, 8 input s, "
        "9 output s, 10 error s, 11 output_overwrite t, 12 error_overwrite t, 13 environment b*, 14 roles Role*, "
        "15 run_limit_s u, 16 memory_limit_mib u, 17 hosts s*, 18 hold t, 19 exclusive t, 20 rerunnable t, "
        "21 not_rerunnable t, 22 array IndexRange*, 23 array_limit u, 24 umask_plus_one u, 26 description s, "
        "27 user_group s, 28 dependency s, 29 begin_time d, 30 terminate_time d, 31 priority u, 32 notify_end t, "
        "33 shell s, 34 rlimits Rlimit*, 35 pre_exec s, 36 post_exec s, 37 output_dir s, 40 runtime_estimate_s u, "
        "38 requeue_exit_values s, 41 job_group s, 42 reservation s, 43 requirement_text s, 46 ends_orphan t, "
        "39 resizable t, 47 resize_notify s",
        Role,
        IndexRange,
        Rlimit,
    )
    SubmitItem = _message("SubmitItem", "1 request_id b, 2 spec JobSpec, 3 retry t", JobSpec)
    SubmitBatch = _message("SubmitBatch", "1 items SubmitItem*", SubmitItem)
    SubmitResult = _message(
        "SubmitResult", "1 request_id b, 2 job u, 3 queue s, 4 default_queue t, 5 error s, 6 retry_later t, 7 retry_s u"
    )
    SubmitReplies = _message("SubmitReplies", "1 results SubmitResult*", SubmitResult)
    JobFilter = _message(
        "JobFilter",
        "1 refs JobRef*, 2 user s, 3 queue s, 4 host s, 5 name s, 6 project s, 7 states u*, 8 finished_too t",
        JobRef,
    )
    ListJobsRequest = _message(
        "ListJobsRequest",
        "1 filter JobFilter, 2 arrays t, 3 details t, 4 reasons t, 5 shares_details t, 6 basic_too t",
        JobFilter,
    )
    ArrayCounts = _message(
        "ArrayCounts", "1 total u, 2 pend u, 3 done u, 4 run u, 5 exit u, 6 ssusp u, 7 ususp u, 8 psusp u, 9 spec s"
    )
    PendingReason = _message("PendingReason", "1 code u, 2 text s, 3 hosts u, 4 host_names s*, 5 advice s")
    LoadBound = _message("LoadBound", "1 index s, 2 sched d, 3 stop d, 4 has_sched t, 5 has_stop t")
    Outlook = _message(
        "Outlook",
        "1 ahead u, 2 sureness s, 3 remedies s*, 4 is_hopeless t, 5 is_for_later t, 6 costs s*, 7 reserved HostShare*",
        HostShare,
    )
    JobRecord = _message(
        "JobRecord",
        "1 job u, 2 index u, 3 user s, 4 state u, 5 queue s, 6 from_host s, 7 hosts HostShare*, 8 name s, "
        "9 submit_time d, 10 start_time d, 11 end_time d, 12 project s, 13 exit_status i, 14 exit_reason s, "
        "15 usage Usage, 16 usage_by_host Usage*, 17 attempt u, 18 pending_reasons PendingReason*, 19 spec JobSpec, "
        "20 slots_min u, 21 slots_max u, 22 array ArrayCounts, 23 exec_cwd s, 24 exec_home s, "
        "26 suspend_reason s, 27 effective_requirement s, 28 priority u, 29 estimated_start d, 30 start_reason s, "
        "31 load_bounds LoadBound*, 32 share_account s, 60 outlook Outlook",
        HostShare,
        Usage,
        PendingReason,
        JobSpec,
        ArrayCounts,
        LoadBound,
        Outlook,
    )
    JobPage = _message("JobPage", "1 jobs JobRecord*, 2 missing JobRef*", JobRecord, JobRef)
    SignalRequest = _message(
        "SignalRequest", "1 filter JobFilter, 2 action u, 3 signal u, 4 newest_only t, 5 states u*, 6 hold t", JobFilter
    )
    SignalResult = _message("SignalResult", "1 job u, 2 index u, 3 error s, 4 note s")
    SignalReply = _message("SignalReply", "1 results SignalResult*, 2 error s", SignalResult)
    ModifyRequest = _message(
        "ModifyRequest",
        "1 refs JobRef*, 2 spec JobSpec, 3 fields s*, 4 filter JobFilter, 5 newest_only t, 6 is_switch t",
        JobRef,
        JobSpec,
        JobFilter,
    )
    ModifyReply = _message("ModifyReply", "1 results SignalResult*", SignalResult)
    MoveRequest = _message("MoveRequest", "1 ref JobRef, 2 place i", JobRef)
    MoveReply = _message("MoveReply", "1 error s, 2 place i")
    ForceRequest = _message("ForceRequest", "1 ref JobRef, 2 hosts HostShare*, 3 is_unconstrained t", JobRef, HostShare)
    ResizeRequest = _message("ResizeRequest", "1 ref JobRef, 2 action u, 3 what s, 4 tasks u, 5 notify s", JobRef)
    ResizeReply = _message("ResizeReply", "1 error s")
    DependenciesRequest = _message("DependenciesRequest", "1 ref JobRef, 2 children t, 3 depth u", JobRef)
    DependencyLink = _message("DependencyLink", "1 job u, 2 relative u, 3 index u, 4 status s, 5 name s, 6 level u")
    DependenciesReply = _message(
        "DependenciesReply", "1 error s, 2 condition s, 3 links DependencyLink*", DependencyLink
    )
    WatchRequest = _message("WatchRequest", "1 refs JobRef*", JobRef)
    JobChange = _message("JobChange", "1 job u, 2 index u, 3 state u, 4 exit_status i, 5 exit_reason s, 6 hosts s*")
    ExplainRequest = _message("ExplainRequest", "1 refs JobRef*, 2 host_names t", JobRef)
    Explanation = _message(
        "Explanation", "1 job u, 2 index u, 3 reasons PendingReason*, 4 estimated_start d", PendingReason
    )
    ExplainReply = _message("ExplainReply", "1 explanations Explanation*", Explanation)
    HistoryRequest = _message("HistoryRequest", "1 filter JobFilter, 2 details t, 3 shares_details t", JobFilter)
    PeekTicketRequest = _message("PeekTicketRequest", "1 ref JobRef, 2 filter JobFilter", JobRef, JobFilter)
    PeekRequest = _message("PeekRequest", "1 job PeekTicketRequest, 2 follow t, 3 last_bytes u", PeekTicketRequest)
    TailChunk = _message("TailChunk", "1 data b, 2 error s, 3 is_error_file t")
    AttemptKey = _message("AttemptKey", "1 job u, 2 index u, 3 attempt u")
    TaskStart = _message(
        "TaskStart",
        "1 key AttemptKey, 2 command b, 3 argv b*, 4 cwd b, 5 environment b*, 6 task u, 7 no_input t, 8 host s, "
        "9 pmi t, 10 token b, 11 connection u, 12 resume t, 13 gone t, 14 got_out u, 15 got_err u, 16 got_pmi u, "
        "17 umask_plus_one u, 18 place u, 19 places u",
        AttemptKey,
    )
    TaskInput = _message(
        "TaskInput",
        "1 start TaskStart, 2 data b, 3 end_of_input t, 4 signal u, 5 pmi b, 6 offset u, 7 got_out u, 8 got_err u, "
        "9 got_pmi u, 10 done t",
        TaskStart,
    )
    TaskOutput = _message(
        "TaskOutput",
        "1 out b, 2 err b, 3 started t, 4 pid u, 5 ended t, 6 status i, 7 error s, 8 pmi b, 9 taken u, 10 offset u, "
        "11 taken_pmi u, 12 taken_signals u, 13 kept t, 14 patience_s d",
    )

BULK_BYTES = 16 << 10


def read_page(payload: bytes) -> "JobPage":
    """Parse a page of jobs; a large one by the protobuf library, which parses it a hundred times as fast."""
    if len(payload) < BULK_BYTES:
        return JobPage.FromString(payload)
    from protos import jobs_pb2

    return jobs_pb2.JobPage.FromString(payload)
