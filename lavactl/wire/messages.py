"""Messages and enum numbers for commands: the generated ones for the type checker, lean equivalents at run time.

A command imports these in place of protos.jobs_pb2 and protos.common_pb2, and so starts without the protobuf library.
Their fields, in ``fields``, are generated from the .proto files; a test compares them with the generated descriptors.
"""

__all__ = [
    "ABORT_JOB",
    "ACCOUNT_BRIEF",
    "ACCOUNT_LONG",
    "ACCOUNT_SUMMARY",
    "CHECKPOINT",
    "COMPLETE_JOB",
    "DONE",
    "EXIT",
    "HOLDS",
    "HOST_LOST",
    "IGNORE",
    "JOB_STATE_UNSPECIFIED",
    "LAUNCH_EACH",
    "LAUNCH_FIRST",
    "LAUNCH_HOST",
    "LAUNCH_NONE",
    "MIGRATE",
    "NEVER_HOLDS",
    "PEND",
    "PSUSP",
    "REMOVE",
    "REQUEUE",
    "RESIZE_CANCEL",
    "RESIZE_RELEASE",
    "RESIZE_RELEASE_HOSTS",
    "RESIZE_REQUEST",
    "RESIZE_SCALE",
    "RESTART_ALWAYS",
    "RESTART_GROUP",
    "RESTART_JOB",
    "RESTART_NEVER",
    "RESTART_ON_FAILURE",
    "RESTART_ROLE",
    "RESTART_TASK",
    "RESUME",
    "RESUME_JOB",
    "ROLE_COMPLETED",
    "ROLE_FAILED",
    "RUN",
    "SEND",
    "SSUSP",
    "STAGING",
    "STOP",
    "TASK_ANY",
    "TASK_EVICTED",
    "TASK_FAILED",
    "TASK_HANGS",
    "TASK_PENDING",
    "TASK_SUCCEEDED",
    "TASK_TIMEOUT",
    "TERMINATE",
    "TERMINATE_DONE",
    "TERMINATE_IN_STATES",
    "TERMINATE_JOB",
    "UNKWN",
    "USUSP",
    "WAITING",
    "ZOMBI",
    "AccountsRequest",
    "ArrayCounts",
    "AttemptKey",
    "Autoscale",
    "Checkpoint",
    "Convention",
    "DependenciesReply",
    "DependenciesRequest",
    "DependencyLink",
    "EnvironmentReply",
    "EnvironmentRequest",
    "ExplainReply",
    "ExplainRequest",
    "Explanation",
    "ForceRequest",
    "GpuProcess",
    "GpuRequest",
    "GpuUsage",
    "HangRule",
    "HistoryRequest",
    "HostFile",
    "HostShare",
    "IndexRange",
    "JobChange",
    "JobColumns",
    "JobFilter",
    "JobMessage",
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
    "PortRequest",
    "PostReply",
    "PostRequest",
    "ReadReply",
    "ReadRequest",
    "ResizeReply",
    "ResizeRequest",
    "Rlimit",
    "Role",
    "RoleSize",
    "SignalReply",
    "SignalRequest",
    "SignalResult",
    "SlurmTerms",
    "SubmitBatch",
    "SubmitItem",
    "SubmitReplies",
    "SubmitResult",
    "TailChunk",
    "TaskCpus",
    "TaskInput",
    "TaskOutput",
    "TaskPolicy",
    "TaskRules",
    "TaskRun",
    "TaskStart",
    "TaskState",
    "TimeRange",
    "UnusedHost",
    "Usage",
    "WaitReply",
    "WaitRequest",
    "WatchRequest",
    "read_page",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from protos.agents_pb2 import TailChunk, TaskInput, TaskOutput, TaskStart
    from protos.common_pb2 import (
        ABORT_JOB,
        COMPLETE_JOB,
        DONE,
        EXIT,
        HOST_LOST,
        IGNORE,
        JOB_STATE_UNSPECIFIED,
        LAUNCH_EACH,
        LAUNCH_FIRST,
        LAUNCH_HOST,
        LAUNCH_NONE,
        PEND,
        PSUSP,
        RESTART_ALWAYS,
        RESTART_GROUP,
        RESTART_JOB,
        RESTART_NEVER,
        RESTART_ON_FAILURE,
        RESTART_ROLE,
        RESTART_TASK,
        RESUME_JOB,
        ROLE_COMPLETED,
        ROLE_FAILED,
        RUN,
        SSUSP,
        STAGING,
        TASK_ANY,
        TASK_EVICTED,
        TASK_FAILED,
        TASK_HANGS,
        TASK_PENDING,
        TASK_SUCCEEDED,
        TASK_TIMEOUT,
        TERMINATE_JOB,
        UNKWN,
        USUSP,
        ZOMBI,
        AttemptKey,
        GpuProcess,
        GpuRequest,
        GpuUsage,
        HostShare,
        IndexRange,
        JobRef,
        PortRequest,
        Role,
        TaskCpus,
        TaskPolicy,
        TaskRun,
        TaskState,
        Usage,
    )
    from protos.jobs_pb2 import (
        ACCOUNT_BRIEF,
        ACCOUNT_LONG,
        ACCOUNT_SUMMARY,
        CHECKPOINT,
        HOLDS,
        MIGRATE,
        NEVER_HOLDS,
        REMOVE,
        REQUEUE,
        RESIZE_CANCEL,
        RESIZE_RELEASE,
        RESIZE_RELEASE_HOSTS,
        RESIZE_REQUEST,
        RESIZE_SCALE,
        RESUME,
        SEND,
        STOP,
        TERMINATE,
        TERMINATE_DONE,
        TERMINATE_IN_STATES,
        WAITING,
        AccountsRequest,
        ArrayCounts,
        Autoscale,
        Checkpoint,
        Convention,
        DependenciesReply,
        DependenciesRequest,
        DependencyLink,
        EnvironmentReply,
        EnvironmentRequest,
        ExplainReply,
        ExplainRequest,
        Explanation,
        ForceRequest,
        HangRule,
        HistoryRequest,
        HostFile,
        JobChange,
        JobColumns,
        JobFilter,
        JobMessage,
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
        PostReply,
        PostRequest,
        ReadReply,
        ReadRequest,
        ResizeReply,
        ResizeRequest,
        Rlimit,
        RoleSize,
        SignalReply,
        SignalRequest,
        SignalResult,
        SlurmTerms,
        SubmitBatch,
        SubmitItem,
        SubmitReplies,
        SubmitResult,
        TaskRules,
        TimeRange,
        UnusedHost,
        WaitReply,
        WaitRequest,
        WatchRequest,
    )
else:
    from lavactl.wire.fields import FIELDS
    from lavactl.wire.lean import Message, table

    JOB_STATE_UNSPECIFIED, PEND, PSUSP, STAGING, RUN, USUSP, SSUSP, DONE, EXIT, UNKWN, ZOMBI = range(11)
    TERMINATE, SEND, STOP, RESUME, REMOVE, REQUEUE, TERMINATE_DONE, MIGRATE, TERMINATE_IN_STATES, CHECKPOINT = range(10)
    RESIZE_RELEASE, RESIZE_REQUEST, RESIZE_CANCEL, RESIZE_SCALE, RESIZE_RELEASE_HOSTS = range(5)
    ACCOUNT_SUMMARY, ACCOUNT_BRIEF, ACCOUNT_LONG = range(3)
    WAITING, HOLDS, NEVER_HOLDS = range(3)
    TASK_ANY, TASK_FAILED, TASK_EVICTED, TASK_PENDING, TASK_SUCCEEDED = range(1, 6)
    ROLE_COMPLETED, ROLE_FAILED, HOST_LOST, TASK_HANGS, TASK_TIMEOUT = range(6, 11)
    IGNORE, RESTART_TASK, RESTART_ROLE, RESTART_JOB, ABORT_JOB, TERMINATE_JOB, COMPLETE_JOB, RESUME_JOB = range(1, 9)
    RESTART_GROUP = 9
    LAUNCH_FIRST, LAUNCH_EACH, LAUNCH_HOST, LAUNCH_NONE = range(4)
    RESTART_NEVER, RESTART_ON_FAILURE, RESTART_ALWAYS = range(3)

    _made: dict[str, type[Message]] = {}

    def _message(name: str) -> type[Message]:
        """Make a class; the messages that it holds are made before it."""
        _made[name] = type(name, (Message,), {"__module__": __name__})
        table(_made[name], FIELDS[name], _made)
        return _made[name]

    GpuProcess = _message("GpuProcess")
    GpuRequest = _message("GpuRequest")
    GpuUsage = _message("GpuUsage")
    PortRequest = _message("PortRequest")
    TaskPolicy = _message("TaskPolicy")
    Role = _message("Role")
    IndexRange = _message("IndexRange")
    Rlimit = _message("Rlimit")
    Convention = _message("Convention")
    Autoscale = _message("Autoscale")
    Checkpoint = _message("Checkpoint")
    HostFile = _message("HostFile")
    HangRule = _message("HangRule")
    TaskRules = _message("TaskRules")
    SlurmTerms = _message("SlurmTerms")
    JobSpec = _message("JobSpec")
    SubmitItem = _message("SubmitItem")
    SubmitBatch = _message("SubmitBatch")
    SubmitResult = _message("SubmitResult")
    SubmitReplies = _message("SubmitReplies")
    JobRef = _message("JobRef")
    JobFilter = _message("JobFilter")
    JobMessage = _message("JobMessage")
    ListJobsRequest = _message("ListJobsRequest")
    TaskCpus = _message("TaskCpus")
    HostShare = _message("HostShare")
    Usage = _message("Usage")
    PendingReason = _message("PendingReason")
    PostReply = _message("PostReply")
    PostRequest = _message("PostRequest")
    ReadReply = _message("ReadReply")
    ReadRequest = _message("ReadRequest")
    ArrayCounts = _message("ArrayCounts")
    JobNote = _message("JobNote")
    LoadBound = _message("LoadBound")
    Progress = _message("Progress")
    Outlook = _message("Outlook")
    FactorValue = _message("FactorValue")
    AbsolutePriority = _message("AbsolutePriority")
    TaskRun = _message("TaskRun")
    TaskState = _message("TaskState")
    UnusedHost = _message("UnusedHost")
    JobRecord = _message("JobRecord")
    JobColumns = _message("JobColumns")
    JobPage = _message("JobPage")
    SignalRequest = _message("SignalRequest")
    SignalResult = _message("SignalResult")
    SignalReply = _message("SignalReply")
    ModifyRequest = _message("ModifyRequest")
    ModifyReply = _message("ModifyReply")
    MoveRequest = _message("MoveRequest")
    MoveReply = _message("MoveReply")
    ForceRequest = _message("ForceRequest")
    RoleSize = _message("RoleSize")
    ResizeRequest = _message("ResizeRequest")
    ResizeReply = _message("ResizeReply")
    DependenciesRequest = _message("DependenciesRequest")
    DependencyLink = _message("DependencyLink")
    DependenciesReply = _message("DependenciesReply")
    WaitReply = _message("WaitReply")
    WaitRequest = _message("WaitRequest")
    WatchRequest = _message("WatchRequest")
    JobChange = _message("JobChange")
    ExplainRequest = _message("ExplainRequest")
    Explanation = _message("Explanation")
    EnvironmentReply = _message("EnvironmentReply")
    EnvironmentRequest = _message("EnvironmentRequest")
    ExplainReply = _message("ExplainReply")
    TimeRange = _message("TimeRange")
    HistoryRequest = _message("HistoryRequest")
    AccountsRequest = _message("AccountsRequest")
    PeekTicketRequest = _message("PeekTicketRequest")
    PeekRequest = _message("PeekRequest")
    TailChunk = _message("TailChunk")
    AttemptKey = _message("AttemptKey")
    TaskStart = _message("TaskStart")
    TaskInput = _message("TaskInput")
    TaskOutput = _message("TaskOutput")

BULK_BYTES = 16 << 10


def read_page(payload: bytes) -> "JobPage":
    """Parse a page of jobs; a large one by the protobuf library, which parses it a hundred times as fast."""
    if len(payload) < BULK_BYTES:
        return JobPage.FromString(payload)
    from protos import jobs_pb2

    return jobs_pb2.JobPage.FromString(payload)


def read_signal_reply(payload: bytes) -> "SignalReply":
    """Parse the results of a signal to jobs, as `read_page` does."""
    if len(payload) < BULK_BYTES:
        return SignalReply.FromString(payload)
    from protos import jobs_pb2

    return jobs_pb2.SignalReply.FromString(payload)
