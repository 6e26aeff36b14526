from protos import common_pb2 as _common_pb2
from protos import cluster_pb2 as _cluster_pb2
from protos import jobs_pb2 as _jobs_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PostState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    POST_NONE: _ClassVar[PostState]
    POST_AWAITED: _ClassVar[PostState]
    POST_DONE: _ClassVar[PostState]
    POST_ERR: _ClassVar[PostState]
POST_NONE: PostState
POST_AWAITED: PostState
POST_DONE: PostState
POST_ERR: PostState

class EnrolRequest(_message.Message):
    __slots__ = ("secret", "host", "csr_pem")
    SECRET_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    CSR_PEM_FIELD_NUMBER: _ClassVar[int]
    secret: str
    host: str
    csr_pem: bytes
    def __init__(self, secret: _Optional[str] = ..., host: _Optional[str] = ..., csr_pem: _Optional[bytes] = ...) -> None: ...

class EnrolReply(_message.Message):
    __slots__ = ("error", "certificate_pem", "ca_pem")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_PEM_FIELD_NUMBER: _ClassVar[int]
    CA_PEM_FIELD_NUMBER: _ClassVar[int]
    error: str
    certificate_pem: bytes
    ca_pem: bytes
    def __init__(self, error: _Optional[str] = ..., certificate_pem: _Optional[bytes] = ..., ca_pem: _Optional[bytes] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("facts", "protocol", "held", "highest_term", "incarnation", "mark", "is_detailed", "specs", "ended")
    FACTS_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    HIGHEST_TERM_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    MARK_FIELD_NUMBER: _ClassVar[int]
    IS_DETAILED_FIELD_NUMBER: _ClassVar[int]
    SPECS_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    facts: _cluster_pb2.HostFacts
    protocol: int
    held: _containers.RepeatedCompositeFieldContainer[Held]
    highest_term: int
    incarnation: int
    mark: CommitMark
    is_detailed: bool
    specs: _containers.RepeatedCompositeFieldContainer[JobSpecBlob]
    ended: _containers.RepeatedCompositeFieldContainer[Held]
    def __init__(self, facts: _Optional[_Union[_cluster_pb2.HostFacts, _Mapping]] = ..., protocol: _Optional[int] = ..., held: _Optional[_Iterable[_Union[Held, _Mapping]]] = ..., highest_term: _Optional[int] = ..., incarnation: _Optional[int] = ..., mark: _Optional[_Union[CommitMark, _Mapping]] = ..., is_detailed: _Optional[bool] = ..., specs: _Optional[_Iterable[_Union[JobSpecBlob, _Mapping]]] = ..., ended: _Optional[_Iterable[_Union[Held, _Mapping]]] = ...) -> None: ...

class CommitMark(_message.Message):
    __slots__ = ("database", "term", "batch", "next_job", "seal")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    NEXT_JOB_FIELD_NUMBER: _ClassVar[int]
    SEAL_FIELD_NUMBER: _ClassVar[int]
    database: str
    term: int
    batch: int
    next_job: int
    seal: bytes
    def __init__(self, database: _Optional[str] = ..., term: _Optional[int] = ..., batch: _Optional[int] = ..., next_job: _Optional[int] = ..., seal: _Optional[bytes] = ...) -> None: ...

class Held(_message.Message):
    __slots__ = ("key", "allocation_version", "last", "launched", "resized", "limits_version", "order", "limit_reached", "tasks")
    KEY_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_VERSION_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    LAUNCHED_FIELD_NUMBER: _ClassVar[int]
    RESIZED_FIELD_NUMBER: _ClassVar[int]
    LIMITS_VERSION_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_REACHED_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    key: _common_pb2.AttemptKey
    allocation_version: int
    last: Report
    launched: bool
    resized: Report
    limits_version: int
    order: Order
    limit_reached: Report
    tasks: _containers.RepeatedCompositeFieldContainer[_common_pb2.TaskState]
    def __init__(self, key: _Optional[_Union[_common_pb2.AttemptKey, _Mapping]] = ..., allocation_version: _Optional[int] = ..., last: _Optional[_Union[Report, _Mapping]] = ..., launched: _Optional[bool] = ..., resized: _Optional[_Union[Report, _Mapping]] = ..., limits_version: _Optional[int] = ..., order: _Optional[_Union[Order, _Mapping]] = ..., limit_reached: _Optional[_Union[Report, _Mapping]] = ..., tasks: _Optional[_Iterable[_Union[_common_pb2.TaskState, _Mapping]]] = ...) -> None: ...

class Reports(_message.Message):
    __slots__ = ("sequence", "hello", "reports", "load", "usages", "sent_monotonic", "health", "progress", "host_notice", "taken_notice", "activities", "stacks", "checkpoints")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    HELLO_FIELD_NUMBER: _ClassVar[int]
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    LOAD_FIELD_NUMBER: _ClassVar[int]
    USAGES_FIELD_NUMBER: _ClassVar[int]
    SENT_MONOTONIC_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    HOST_NOTICE_FIELD_NUMBER: _ClassVar[int]
    TAKEN_NOTICE_FIELD_NUMBER: _ClassVar[int]
    ACTIVITIES_FIELD_NUMBER: _ClassVar[int]
    STACKS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    hello: Hello
    reports: _containers.RepeatedCompositeFieldContainer[Report]
    load: _cluster_pb2.Load
    usages: _containers.RepeatedCompositeFieldContainer[JobUsage]
    sent_monotonic: float
    health: HealthVerdict
    progress: _containers.RepeatedCompositeFieldContainer[JobProgress]
    host_notice: HostNotice
    taken_notice: HostNotice
    activities: _containers.RepeatedCompositeFieldContainer[PartActivity]
    stacks: _containers.RepeatedCompositeFieldContainer[SavedStacks]
    checkpoints: _containers.RepeatedCompositeFieldContainer[CheckpointMade]
    def __init__(self, sequence: _Optional[int] = ..., hello: _Optional[_Union[Hello, _Mapping]] = ..., reports: _Optional[_Iterable[_Union[Report, _Mapping]]] = ..., load: _Optional[_Union[_cluster_pb2.Load, _Mapping]] = ..., usages: _Optional[_Iterable[_Union[JobUsage, _Mapping]]] = ..., sent_monotonic: _Optional[float] = ..., health: _Optional[_Union[HealthVerdict, _Mapping]] = ..., progress: _Optional[_Iterable[_Union[JobProgress, _Mapping]]] = ..., host_notice: _Optional[_Union[HostNotice, _Mapping]] = ..., taken_notice: _Optional[_Union[HostNotice, _Mapping]] = ..., activities: _Optional[_Iterable[_Union[PartActivity, _Mapping]]] = ..., stacks: _Optional[_Iterable[_Union[SavedStacks, _Mapping]]] = ..., checkpoints: _Optional[_Iterable[_Union[CheckpointMade, _Mapping]]] = ...) -> None: ...

class CheckpointMade(_message.Message):
    __slots__ = ("key", "number", "began", "ended", "error", "ends", "action")
    KEY_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    BEGAN_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    key: _common_pb2.AttemptKey
    number: int
    began: float
    ended: float
    error: str
    ends: bool
    action: str
    def __init__(self, key: _Optional[_Union[_common_pb2.AttemptKey, _Mapping]] = ..., number: _Optional[int] = ..., began: _Optional[float] = ..., ended: _Optional[float] = ..., error: _Optional[str] = ..., ends: _Optional[bool] = ..., action: _Optional[str] = ...) -> None: ...

class HostNotice(_message.Message):
    __slots__ = ("seconds", "text", "withdrawn")
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    WITHDRAWN_FIELD_NUMBER: _ClassVar[int]
    seconds: float
    text: str
    withdrawn: bool
    def __init__(self, seconds: _Optional[float] = ..., text: _Optional[str] = ..., withdrawn: _Optional[bool] = ...) -> None: ...

class PartActivity(_message.Message):
    __slots__ = ("key", "inactive_s", "unused_s")
    KEY_FIELD_NUMBER: _ClassVar[int]
    INACTIVE_S_FIELD_NUMBER: _ClassVar[int]
    UNUSED_S_FIELD_NUMBER: _ClassVar[int]
    key: _common_pb2.AttemptKey
    inactive_s: float
    unused_s: float
    def __init__(self, key: _Optional[_Union[_common_pb2.AttemptKey, _Mapping]] = ..., inactive_s: _Optional[float] = ..., unused_s: _Optional[float] = ...) -> None: ...

class SavedStacks(_message.Message):
    __slots__ = ("key", "number", "path", "error")
    KEY_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    key: _common_pb2.AttemptKey
    number: int
    path: str
    error: str
    def __init__(self, key: _Optional[_Union[_common_pb2.AttemptKey, _Mapping]] = ..., number: _Optional[int] = ..., path: _Optional[str] = ..., error: _Optional[str] = ...) -> None: ...

class HealthVerdict(_message.Message):
    __slots__ = ("number", "verdict", "text", "argv")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ARGV_FIELD_NUMBER: _ClassVar[int]
    number: int
    verdict: int
    text: str
    argv: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, number: _Optional[int] = ..., verdict: _Optional[int] = ..., text: _Optional[str] = ..., argv: _Optional[_Iterable[str]] = ...) -> None: ...

class JobUsage(_message.Message):
    __slots__ = ("key", "usage")
    KEY_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    key: _common_pb2.AttemptKey
    usage: _common_pb2.Usage
    def __init__(self, key: _Optional[_Union[_common_pb2.AttemptKey, _Mapping]] = ..., usage: _Optional[_Union[_common_pb2.Usage, _Mapping]] = ...) -> None: ...

class JobProgress(_message.Message):
    __slots__ = ("key", "progress")
    KEY_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    key: _common_pb2.AttemptKey
    progress: _common_pb2.Progress
    def __init__(self, key: _Optional[_Union[_common_pb2.AttemptKey, _Mapping]] = ..., progress: _Optional[_Union[_common_pb2.Progress, _Mapping]] = ...) -> None: ...

class Report(_message.Message):
    __slots__ = ("key", "allocation_version", "staged", "refused", "started", "finished", "released", "resized", "limit_reached", "tasks", "wanted", "also_released")
    KEY_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_VERSION_FIELD_NUMBER: _ClassVar[int]
    STAGED_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    RESIZED_FIELD_NUMBER: _ClassVar[int]
    LIMIT_REACHED_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    WANTED_FIELD_NUMBER: _ClassVar[int]
    ALSO_RELEASED_FIELD_NUMBER: _ClassVar[int]
    key: _common_pb2.AttemptKey
    allocation_version: int
    staged: Staged
    refused: Refused
    started: Started
    finished: Finished
    released: Released
    resized: Resized
    limit_reached: LimitReached
    tasks: TasksReport
    wanted: Wanted
    also_released: bool
    def __init__(self, key: _Optional[_Union[_common_pb2.AttemptKey, _Mapping]] = ..., allocation_version: _Optional[int] = ..., staged: _Optional[_Union[Staged, _Mapping]] = ..., refused: _Optional[_Union[Refused, _Mapping]] = ..., started: _Optional[_Union[Started, _Mapping]] = ..., finished: _Optional[_Union[Finished, _Mapping]] = ..., released: _Optional[_Union[Released, _Mapping]] = ..., resized: _Optional[_Union[Resized, _Mapping]] = ..., limit_reached: _Optional[_Union[LimitReached, _Mapping]] = ..., tasks: _Optional[_Union[TasksReport, _Mapping]] = ..., wanted: _Optional[_Union[Wanted, _Mapping]] = ..., also_released: _Optional[bool] = ...) -> None: ...

class Staged(_message.Message):
    __slots__ = ("again", "tasks", "address")
    AGAIN_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    again: bool
    tasks: _containers.RepeatedCompositeFieldContainer[_common_pb2.RoleTasks]
    address: str
    def __init__(self, again: _Optional[bool] = ..., tasks: _Optional[_Iterable[_Union[_common_pb2.RoleTasks, _Mapping]]] = ..., address: _Optional[str] = ...) -> None: ...

class Wanted(_message.Message):
    __slots__ = ("tasks", "error")
    TASKS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    tasks: int
    error: str
    def __init__(self, tasks: _Optional[int] = ..., error: _Optional[str] = ...) -> None: ...

class TasksReport(_message.Message):
    __slots__ = ("tasks",)
    TASKS_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[_common_pb2.TaskState]
    def __init__(self, tasks: _Optional[_Iterable[_Union[_common_pb2.TaskState, _Mapping]]] = ...) -> None: ...

class Refused(_message.Message):
    __slots__ = ("reason", "host_fault", "user_unknown", "pre_exec", "pre_exec_code", "lacking", "lacking_status", "lacking_term")
    REASON_FIELD_NUMBER: _ClassVar[int]
    HOST_FAULT_FIELD_NUMBER: _ClassVar[int]
    USER_UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    PRE_EXEC_FIELD_NUMBER: _ClassVar[int]
    PRE_EXEC_CODE_FIELD_NUMBER: _ClassVar[int]
    LACKING_FIELD_NUMBER: _ClassVar[int]
    LACKING_STATUS_FIELD_NUMBER: _ClassVar[int]
    LACKING_TERM_FIELD_NUMBER: _ClassVar[int]
    reason: str
    host_fault: bool
    user_unknown: bool
    pre_exec: str
    pre_exec_code: int
    lacking: str
    lacking_status: int
    lacking_term: str
    def __init__(self, reason: _Optional[str] = ..., host_fault: _Optional[bool] = ..., user_unknown: _Optional[bool] = ..., pre_exec: _Optional[str] = ..., pre_exec_code: _Optional[int] = ..., lacking: _Optional[str] = ..., lacking_status: _Optional[int] = ..., lacking_term: _Optional[str] = ...) -> None: ...

class Started(_message.Message):
    __slots__ = ("pid", "time", "exec_home", "exec_cwd")
    PID_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    EXEC_HOME_FIELD_NUMBER: _ClassVar[int]
    EXEC_CWD_FIELD_NUMBER: _ClassVar[int]
    pid: int
    time: float
    exec_home: str
    exec_cwd: str
    def __init__(self, pid: _Optional[int] = ..., time: _Optional[float] = ..., exec_home: _Optional[str] = ..., exec_cwd: _Optional[str] = ...) -> None: ...

class Finished(_message.Message):
    __slots__ = ("status", "time", "cpu_s", "memory_mib_max", "reason", "pid", "started", "detail", "exec_home", "exec_cwd", "memory_mib_mean", "processes_max", "user_s", "system_s", "seconds", "others", "gpus", "lost", "post", "posted_at")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    CPU_S_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_MAX_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    EXEC_HOME_FIELD_NUMBER: _ClassVar[int]
    EXEC_CWD_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_MEAN_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_MAX_FIELD_NUMBER: _ClassVar[int]
    USER_S_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_S_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    OTHERS_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    POST_FIELD_NUMBER: _ClassVar[int]
    POSTED_AT_FIELD_NUMBER: _ClassVar[int]
    status: int
    time: float
    cpu_s: float
    memory_mib_max: int
    reason: str
    pid: int
    started: float
    detail: str
    exec_home: str
    exec_cwd: str
    memory_mib_mean: float
    processes_max: int
    user_s: float
    system_s: float
    seconds: float
    others: _containers.RepeatedCompositeFieldContainer[_common_pb2.Usage]
    gpus: _containers.RepeatedCompositeFieldContainer[_common_pb2.GpuUsage]
    lost: bool
    post: PostState
    posted_at: float
    def __init__(self, status: _Optional[int] = ..., time: _Optional[float] = ..., cpu_s: _Optional[float] = ..., memory_mib_max: _Optional[int] = ..., reason: _Optional[str] = ..., pid: _Optional[int] = ..., started: _Optional[float] = ..., detail: _Optional[str] = ..., exec_home: _Optional[str] = ..., exec_cwd: _Optional[str] = ..., memory_mib_mean: _Optional[float] = ..., processes_max: _Optional[int] = ..., user_s: _Optional[float] = ..., system_s: _Optional[float] = ..., seconds: _Optional[float] = ..., others: _Optional[_Iterable[_Union[_common_pb2.Usage, _Mapping]]] = ..., gpus: _Optional[_Iterable[_Union[_common_pb2.GpuUsage, _Mapping]]] = ..., lost: _Optional[bool] = ..., post: _Optional[_Union[PostState, str]] = ..., posted_at: _Optional[float] = ...) -> None: ...

class Released(_message.Message):
    __slots__ = ("usage",)
    USAGE_FIELD_NUMBER: _ClassVar[int]
    usage: _common_pb2.Usage
    def __init__(self, usage: _Optional[_Union[_common_pb2.Usage, _Mapping]] = ...) -> None: ...

class LimitReached(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class Resized(_message.Message):
    __slots__ = ("failed", "detail", "tasks")
    FAILED_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    failed: bool
    detail: str
    tasks: _containers.RepeatedCompositeFieldContainer[_common_pb2.RoleTasks]
    def __init__(self, failed: _Optional[bool] = ..., detail: _Optional[str] = ..., tasks: _Optional[_Iterable[_Union[_common_pb2.RoleTasks, _Mapping]]] = ...) -> None: ...

class Orders(_message.Message):
    __slots__ = ("term", "welcome", "orders", "specs", "forget", "echo_monotonic", "echo_sequence", "mark", "health_check", "host_notice", "stacks", "checkpoints")
    TERM_FIELD_NUMBER: _ClassVar[int]
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    ORDERS_FIELD_NUMBER: _ClassVar[int]
    SPECS_FIELD_NUMBER: _ClassVar[int]
    FORGET_FIELD_NUMBER: _ClassVar[int]
    ECHO_MONOTONIC_FIELD_NUMBER: _ClassVar[int]
    ECHO_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    MARK_FIELD_NUMBER: _ClassVar[int]
    HEALTH_CHECK_FIELD_NUMBER: _ClassVar[int]
    HOST_NOTICE_FIELD_NUMBER: _ClassVar[int]
    STACKS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    term: int
    welcome: Welcome
    orders: _containers.RepeatedCompositeFieldContainer[Order]
    specs: _containers.RepeatedCompositeFieldContainer[JobSpecBlob]
    forget: _containers.RepeatedCompositeFieldContainer[_common_pb2.AttemptKey]
    echo_monotonic: float
    echo_sequence: int
    mark: CommitMark
    health_check: HealthCheck
    host_notice: HostNotice
    stacks: _containers.RepeatedCompositeFieldContainer[StacksRequest]
    checkpoints: _containers.RepeatedCompositeFieldContainer[CheckpointRequest]
    def __init__(self, term: _Optional[int] = ..., welcome: _Optional[_Union[Welcome, _Mapping]] = ..., orders: _Optional[_Iterable[_Union[Order, _Mapping]]] = ..., specs: _Optional[_Iterable[_Union[JobSpecBlob, _Mapping]]] = ..., forget: _Optional[_Iterable[_Union[_common_pb2.AttemptKey, _Mapping]]] = ..., echo_monotonic: _Optional[float] = ..., echo_sequence: _Optional[int] = ..., mark: _Optional[_Union[CommitMark, _Mapping]] = ..., health_check: _Optional[_Union[HealthCheck, _Mapping]] = ..., host_notice: _Optional[_Union[HostNotice, _Mapping]] = ..., stacks: _Optional[_Iterable[_Union[StacksRequest, _Mapping]]] = ..., checkpoints: _Optional[_Iterable[_Union[CheckpointRequest, _Mapping]]] = ...) -> None: ...

class CheckpointRequest(_message.Message):
    __slots__ = ("key", "number", "force", "ends")
    KEY_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    key: _common_pb2.AttemptKey
    number: int
    force: bool
    ends: bool
    def __init__(self, key: _Optional[_Union[_common_pb2.AttemptKey, _Mapping]] = ..., number: _Optional[int] = ..., force: _Optional[bool] = ..., ends: _Optional[bool] = ...) -> None: ...

class StacksRequest(_message.Message):
    __slots__ = ("key", "number", "limit_s")
    KEY_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_S_FIELD_NUMBER: _ClassVar[int]
    key: _common_pb2.AttemptKey
    number: int
    limit_s: float
    def __init__(self, key: _Optional[_Union[_common_pb2.AttemptKey, _Mapping]] = ..., number: _Optional[int] = ..., limit_s: _Optional[float] = ...) -> None: ...

class HealthCheck(_message.Message):
    __slots__ = ("number", "argv", "limit_s")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ARGV_FIELD_NUMBER: _ClassVar[int]
    LIMIT_S_FIELD_NUMBER: _ClassVar[int]
    number: int
    argv: _containers.RepeatedScalarFieldContainer[str]
    limit_s: float
    def __init__(self, number: _Optional[int] = ..., argv: _Optional[_Iterable[str]] = ..., limit_s: _Optional[float] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("cluster", "heartbeat_s", "order_validity_s", "error", "administrators", "usage_interval_s", "terminate_interval_s", "ticket_key", "settings", "lsf_conf", "default_queues", "revoked", "wants_details")
    class SettingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class LsfConfEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_S_FIELD_NUMBER: _ClassVar[int]
    ORDER_VALIDITY_S_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ADMINISTRATORS_FIELD_NUMBER: _ClassVar[int]
    USAGE_INTERVAL_S_FIELD_NUMBER: _ClassVar[int]
    TERMINATE_INTERVAL_S_FIELD_NUMBER: _ClassVar[int]
    TICKET_KEY_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    LSF_CONF_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_QUEUES_FIELD_NUMBER: _ClassVar[int]
    REVOKED_FIELD_NUMBER: _ClassVar[int]
    WANTS_DETAILS_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    heartbeat_s: float
    order_validity_s: float
    error: str
    administrators: _containers.RepeatedScalarFieldContainer[str]
    usage_interval_s: float
    terminate_interval_s: float
    ticket_key: bytes
    settings: _containers.ScalarMap[str, str]
    lsf_conf: _containers.ScalarMap[str, str]
    default_queues: str
    revoked: _containers.RepeatedScalarFieldContainer[str]
    wants_details: bool
    def __init__(self, cluster: _Optional[str] = ..., heartbeat_s: _Optional[float] = ..., order_validity_s: _Optional[float] = ..., error: _Optional[str] = ..., administrators: _Optional[_Iterable[str]] = ..., usage_interval_s: _Optional[float] = ..., terminate_interval_s: _Optional[float] = ..., ticket_key: _Optional[bytes] = ..., settings: _Optional[_Mapping[str, str]] = ..., lsf_conf: _Optional[_Mapping[str, str]] = ..., default_queues: _Optional[str] = ..., revoked: _Optional[_Iterable[str]] = ..., wants_details: _Optional[bool] = ...) -> None: ...

class JobSpecBlob(_message.Message):
    __slots__ = ("job", "spec", "user", "uid", "gid", "version", "submit_time", "queue", "cluster", "seal")
    JOB_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    GID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SUBMIT_TIME_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    SEAL_FIELD_NUMBER: _ClassVar[int]
    job: int
    spec: _jobs_pb2.JobSpec
    user: str
    uid: int
    gid: int
    version: int
    submit_time: float
    queue: str
    cluster: str
    seal: bytes
    def __init__(self, job: _Optional[int] = ..., spec: _Optional[_Union[_jobs_pb2.JobSpec, _Mapping]] = ..., user: _Optional[str] = ..., uid: _Optional[int] = ..., gid: _Optional[int] = ..., version: _Optional[int] = ..., submit_time: _Optional[float] = ..., queue: _Optional[str] = ..., cluster: _Optional[str] = ..., seal: _Optional[bytes] = ...) -> None: ...

class Order(_message.Message):
    __slots__ = ("key", "allocation_version", "stage", "launch", "signal", "release", "resize", "limits", "tasks", "notice")
    KEY_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_VERSION_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    LAUNCH_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    RESIZE_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    NOTICE_FIELD_NUMBER: _ClassVar[int]
    key: _common_pb2.AttemptKey
    allocation_version: int
    stage: Stage
    launch: LaunchOrder
    signal: SignalOrder
    release: Release
    resize: Resize
    limits: Limits
    tasks: TasksOrder
    notice: Notice
    def __init__(self, key: _Optional[_Union[_common_pb2.AttemptKey, _Mapping]] = ..., allocation_version: _Optional[int] = ..., stage: _Optional[_Union[Stage, _Mapping]] = ..., launch: _Optional[_Union[LaunchOrder, _Mapping]] = ..., signal: _Optional[_Union[SignalOrder, _Mapping]] = ..., release: _Optional[_Union[Release, _Mapping]] = ..., resize: _Optional[_Union[Resize, _Mapping]] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., tasks: _Optional[_Union[TasksOrder, _Mapping]] = ..., notice: _Optional[_Union[Notice, _Mapping]] = ...) -> None: ...

class Notice(_message.Message):
    __slots__ = ("event", "reason", "at", "serial")
    EVENT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    SERIAL_FIELD_NUMBER: _ClassVar[int]
    event: str
    reason: str
    at: float
    serial: int
    def __init__(self, event: _Optional[str] = ..., reason: _Optional[str] = ..., at: _Optional[float] = ..., serial: _Optional[int] = ...) -> None: ...

class TasksOrder(_message.Message):
    __slots__ = ("version", "table", "start", "stop", "reason", "signal", "signalled", "hold")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    SIGNALLED_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    version: int
    table: _containers.RepeatedCompositeFieldContainer[_common_pb2.TaskHost]
    start: _containers.RepeatedCompositeFieldContainer[_common_pb2.TaskRun]
    stop: _containers.RepeatedCompositeFieldContainer[_common_pb2.TaskRun]
    reason: str
    signal: int
    signalled: _containers.RepeatedCompositeFieldContainer[_common_pb2.TaskRun]
    hold: _containers.RepeatedCompositeFieldContainer[_common_pb2.TaskRun]
    def __init__(self, version: _Optional[int] = ..., table: _Optional[_Iterable[_Union[_common_pb2.TaskHost, _Mapping]]] = ..., start: _Optional[_Iterable[_Union[_common_pb2.TaskRun, _Mapping]]] = ..., stop: _Optional[_Iterable[_Union[_common_pb2.TaskRun, _Mapping]]] = ..., reason: _Optional[str] = ..., signal: _Optional[int] = ..., signalled: _Optional[_Iterable[_Union[_common_pb2.TaskRun, _Mapping]]] = ..., hold: _Optional[_Iterable[_Union[_common_pb2.TaskRun, _Mapping]]] = ...) -> None: ...

class Stage(_message.Message):
    __slots__ = ("allocation", "launch_now", "spec_version", "run_limit_s", "deadline", "queue", "nice", "environment", "gpu", "job_starter", "controls", "lease_s", "seal", "allocation_seal", "tasks", "warning_time_s", "warning_action", "check_before", "check_after", "around")
    class EnvironmentEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ALLOCATION_FIELD_NUMBER: _ClassVar[int]
    LAUNCH_NOW_FIELD_NUMBER: _ClassVar[int]
    SPEC_VERSION_FIELD_NUMBER: _ClassVar[int]
    RUN_LIMIT_S_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    NICE_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    GPU_FIELD_NUMBER: _ClassVar[int]
    JOB_STARTER_FIELD_NUMBER: _ClassVar[int]
    CONTROLS_FIELD_NUMBER: _ClassVar[int]
    LEASE_S_FIELD_NUMBER: _ClassVar[int]
    SEAL_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_SEAL_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    WARNING_TIME_S_FIELD_NUMBER: _ClassVar[int]
    WARNING_ACTION_FIELD_NUMBER: _ClassVar[int]
    CHECK_BEFORE_FIELD_NUMBER: _ClassVar[int]
    CHECK_AFTER_FIELD_NUMBER: _ClassVar[int]
    AROUND_FIELD_NUMBER: _ClassVar[int]
    allocation: _containers.RepeatedCompositeFieldContainer[_common_pb2.HostShare]
    launch_now: bool
    spec_version: int
    run_limit_s: float
    deadline: float
    queue: str
    nice: int
    environment: _containers.ScalarMap[str, str]
    gpu: GpuSetup
    job_starter: str
    controls: _containers.RepeatedCompositeFieldContainer[JobControl]
    lease_s: float
    seal: bytes
    allocation_seal: bytes
    tasks: _containers.RepeatedCompositeFieldContainer[_common_pb2.RoleTasks]
    warning_time_s: float
    warning_action: str
    check_before: HealthCheck
    check_after: HealthCheck
    around: AroundJob
    def __init__(self, allocation: _Optional[_Iterable[_Union[_common_pb2.HostShare, _Mapping]]] = ..., launch_now: _Optional[bool] = ..., spec_version: _Optional[int] = ..., run_limit_s: _Optional[float] = ..., deadline: _Optional[float] = ..., queue: _Optional[str] = ..., nice: _Optional[int] = ..., environment: _Optional[_Mapping[str, str]] = ..., gpu: _Optional[_Union[GpuSetup, _Mapping]] = ..., job_starter: _Optional[str] = ..., controls: _Optional[_Iterable[_Union[JobControl, _Mapping]]] = ..., lease_s: _Optional[float] = ..., seal: _Optional[bytes] = ..., allocation_seal: _Optional[bytes] = ..., tasks: _Optional[_Iterable[_Union[_common_pb2.RoleTasks, _Mapping]]] = ..., warning_time_s: _Optional[float] = ..., warning_action: _Optional[str] = ..., check_before: _Optional[_Union[HealthCheck, _Mapping]] = ..., check_after: _Optional[_Union[HealthCheck, _Mapping]] = ..., around: _Optional[_Union[AroundJob, _Mapping]] = ...) -> None: ...

class AroundJob(_message.Message):
    __slots__ = ("pre_exec", "post_exec", "host_pre_exec", "host_post_exec", "user", "pre_limit_s", "post_limit_s", "includes_post", "requeued_codes", "requeues_max_plus_one", "job_pre_exec", "job_post_exec", "profile_host_pre_exec", "profile_host_post_exec", "success_codes")
    PRE_EXEC_FIELD_NUMBER: _ClassVar[int]
    POST_EXEC_FIELD_NUMBER: _ClassVar[int]
    HOST_PRE_EXEC_FIELD_NUMBER: _ClassVar[int]
    HOST_POST_EXEC_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    PRE_LIMIT_S_FIELD_NUMBER: _ClassVar[int]
    POST_LIMIT_S_FIELD_NUMBER: _ClassVar[int]
    INCLUDES_POST_FIELD_NUMBER: _ClassVar[int]
    REQUEUED_CODES_FIELD_NUMBER: _ClassVar[int]
    REQUEUES_MAX_PLUS_ONE_FIELD_NUMBER: _ClassVar[int]
    JOB_PRE_EXEC_FIELD_NUMBER: _ClassVar[int]
    JOB_POST_EXEC_FIELD_NUMBER: _ClassVar[int]
    PROFILE_HOST_PRE_EXEC_FIELD_NUMBER: _ClassVar[int]
    PROFILE_HOST_POST_EXEC_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_CODES_FIELD_NUMBER: _ClassVar[int]
    pre_exec: str
    post_exec: str
    host_pre_exec: str
    host_post_exec: str
    user: str
    pre_limit_s: float
    post_limit_s: float
    includes_post: bool
    requeued_codes: _containers.RepeatedScalarFieldContainer[int]
    requeues_max_plus_one: int
    job_pre_exec: str
    job_post_exec: str
    profile_host_pre_exec: str
    profile_host_post_exec: str
    success_codes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, pre_exec: _Optional[str] = ..., post_exec: _Optional[str] = ..., host_pre_exec: _Optional[str] = ..., host_post_exec: _Optional[str] = ..., user: _Optional[str] = ..., pre_limit_s: _Optional[float] = ..., post_limit_s: _Optional[float] = ..., includes_post: _Optional[bool] = ..., requeued_codes: _Optional[_Iterable[int]] = ..., requeues_max_plus_one: _Optional[int] = ..., job_pre_exec: _Optional[str] = ..., job_post_exec: _Optional[str] = ..., profile_host_pre_exec: _Optional[str] = ..., profile_host_post_exec: _Optional[str] = ..., success_codes: _Optional[_Iterable[int]] = ...) -> None: ...

class JobControl(_message.Message):
    __slots__ = ("kind", "signal", "command", "checkpoint")
    KIND_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    kind: str
    signal: int
    command: str
    checkpoint: bool
    def __init__(self, kind: _Optional[str] = ..., signal: _Optional[int] = ..., command: _Optional[str] = ..., checkpoint: _Optional[bool] = ...) -> None: ...

class GpuSetup(_message.Message):
    __slots__ = ("mode", "mps", "no_variable", "per_task", "block", "roles", "idle_power_w", "idle_power_fraction")
    MODE_FIELD_NUMBER: _ClassVar[int]
    MPS_FIELD_NUMBER: _ClassVar[int]
    NO_VARIABLE_FIELD_NUMBER: _ClassVar[int]
    PER_TASK_FIELD_NUMBER: _ClassVar[int]
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    IDLE_POWER_W_FIELD_NUMBER: _ClassVar[int]
    IDLE_POWER_FRACTION_FIELD_NUMBER: _ClassVar[int]
    mode: str
    mps: bool
    no_variable: bool
    per_task: int
    block: bool
    roles: _containers.RepeatedCompositeFieldContainer[GpusOfRole]
    idle_power_w: float
    idle_power_fraction: float
    def __init__(self, mode: _Optional[str] = ..., mps: _Optional[bool] = ..., no_variable: _Optional[bool] = ..., per_task: _Optional[int] = ..., block: _Optional[bool] = ..., roles: _Optional[_Iterable[_Union[GpusOfRole, _Mapping]]] = ..., idle_power_w: _Optional[float] = ..., idle_power_fraction: _Optional[float] = ...) -> None: ...

class GpusOfRole(_message.Message):
    __slots__ = ("per_task", "block")
    PER_TASK_FIELD_NUMBER: _ClassVar[int]
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    per_task: int
    block: bool
    def __init__(self, per_task: _Optional[int] = ..., block: _Optional[bool] = ...) -> None: ...

class LaunchOrder(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SignalOrder(_message.Message):
    __slots__ = ("signal", "reason", "serial", "causes", "event", "notice_s", "notice")
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SERIAL_FIELD_NUMBER: _ClassVar[int]
    CAUSES_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    NOTICE_S_FIELD_NUMBER: _ClassVar[int]
    NOTICE_FIELD_NUMBER: _ClassVar[int]
    signal: int
    reason: str
    serial: int
    causes: int
    event: str
    notice_s: float
    notice: str
    def __init__(self, signal: _Optional[int] = ..., reason: _Optional[str] = ..., serial: _Optional[int] = ..., causes: _Optional[int] = ..., event: _Optional[str] = ..., notice_s: _Optional[float] = ..., notice: _Optional[str] = ...) -> None: ...

class Resize(_message.Message):
    __slots__ = ("allocation", "notify", "allocation_seal", "given_up", "tasks")
    ALLOCATION_FIELD_NUMBER: _ClassVar[int]
    NOTIFY_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_SEAL_FIELD_NUMBER: _ClassVar[int]
    GIVEN_UP_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    allocation: _containers.RepeatedCompositeFieldContainer[_common_pb2.HostShare]
    notify: str
    allocation_seal: bytes
    given_up: _containers.RepeatedCompositeFieldContainer[_common_pb2.HostShare]
    tasks: _containers.RepeatedCompositeFieldContainer[_common_pb2.RoleTasks]
    def __init__(self, allocation: _Optional[_Iterable[_Union[_common_pb2.HostShare, _Mapping]]] = ..., notify: _Optional[str] = ..., allocation_seal: _Optional[bytes] = ..., given_up: _Optional[_Iterable[_Union[_common_pb2.HostShare, _Mapping]]] = ..., tasks: _Optional[_Iterable[_Union[_common_pb2.RoleTasks, _Mapping]]] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("version", "run_limit_s", "deadline", "memory_limit_mib", "checkpoint_period_s", "cpu_limit_s", "files")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    RUN_LIMIT_S_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_LIMIT_MIB_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_PERIOD_S_FIELD_NUMBER: _ClassVar[int]
    CPU_LIMIT_S_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    version: int
    run_limit_s: float
    deadline: float
    memory_limit_mib: int
    checkpoint_period_s: float
    cpu_limit_s: int
    files: OutputFiles
    def __init__(self, version: _Optional[int] = ..., run_limit_s: _Optional[float] = ..., deadline: _Optional[float] = ..., memory_limit_mib: _Optional[int] = ..., checkpoint_period_s: _Optional[float] = ..., cpu_limit_s: _Optional[int] = ..., files: _Optional[_Union[OutputFiles, _Mapping]] = ...) -> None: ...

class OutputFiles(_message.Message):
    __slots__ = ("output", "error", "output_overwrite", "error_overwrite")
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_OVERWRITE_FIELD_NUMBER: _ClassVar[int]
    ERROR_OVERWRITE_FIELD_NUMBER: _ClassVar[int]
    output: str
    error: str
    output_overwrite: bool
    error_overwrite: bool
    def __init__(self, output: _Optional[str] = ..., error: _Optional[str] = ..., output_overwrite: _Optional[bool] = ..., error_overwrite: _Optional[bool] = ...) -> None: ...

class Release(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class TaskInput(_message.Message):
    __slots__ = ("start", "data", "end_of_input", "signal", "pmi", "offset", "got_out", "got_err", "got_pmi", "done", "lines", "columns")
    START_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    END_OF_INPUT_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    PMI_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    GOT_OUT_FIELD_NUMBER: _ClassVar[int]
    GOT_ERR_FIELD_NUMBER: _ClassVar[int]
    GOT_PMI_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    start: TaskStart
    data: bytes
    end_of_input: bool
    signal: int
    pmi: bytes
    offset: int
    got_out: int
    got_err: int
    got_pmi: int
    done: bool
    lines: int
    columns: int
    def __init__(self, start: _Optional[_Union[TaskStart, _Mapping]] = ..., data: _Optional[bytes] = ..., end_of_input: _Optional[bool] = ..., signal: _Optional[int] = ..., pmi: _Optional[bytes] = ..., offset: _Optional[int] = ..., got_out: _Optional[int] = ..., got_err: _Optional[int] = ..., got_pmi: _Optional[int] = ..., done: _Optional[bool] = ..., lines: _Optional[int] = ..., columns: _Optional[int] = ...) -> None: ...

class TaskStart(_message.Message):
    __slots__ = ("key", "command", "argv", "cwd", "environment", "task", "no_input", "host", "pmi", "token", "connection", "resume", "gone", "got_out", "got_err", "got_pmi", "umask_plus_one", "place", "places", "ticket", "terminal")
    KEY_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    ARGV_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    NO_INPUT_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PMI_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    CONNECTION_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    GOT_OUT_FIELD_NUMBER: _ClassVar[int]
    GOT_ERR_FIELD_NUMBER: _ClassVar[int]
    GOT_PMI_FIELD_NUMBER: _ClassVar[int]
    UMASK_PLUS_ONE_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    TERMINAL_FIELD_NUMBER: _ClassVar[int]
    key: _common_pb2.AttemptKey
    command: bytes
    argv: _containers.RepeatedScalarFieldContainer[bytes]
    cwd: bytes
    environment: _containers.RepeatedScalarFieldContainer[bytes]
    task: int
    no_input: bool
    host: str
    pmi: bool
    token: bytes
    connection: int
    resume: bool
    gone: bool
    got_out: int
    got_err: int
    got_pmi: int
    umask_plus_one: int
    place: int
    places: int
    ticket: bytes
    terminal: bool
    def __init__(self, key: _Optional[_Union[_common_pb2.AttemptKey, _Mapping]] = ..., command: _Optional[bytes] = ..., argv: _Optional[_Iterable[bytes]] = ..., cwd: _Optional[bytes] = ..., environment: _Optional[_Iterable[bytes]] = ..., task: _Optional[int] = ..., no_input: _Optional[bool] = ..., host: _Optional[str] = ..., pmi: _Optional[bool] = ..., token: _Optional[bytes] = ..., connection: _Optional[int] = ..., resume: _Optional[bool] = ..., gone: _Optional[bool] = ..., got_out: _Optional[int] = ..., got_err: _Optional[int] = ..., got_pmi: _Optional[int] = ..., umask_plus_one: _Optional[int] = ..., place: _Optional[int] = ..., places: _Optional[int] = ..., ticket: _Optional[bytes] = ..., terminal: _Optional[bool] = ...) -> None: ...

class TaskOutput(_message.Message):
    __slots__ = ("out", "err", "started", "pid", "ended", "status", "error", "pmi", "taken", "offset", "taken_pmi", "taken_signals", "kept", "patience_s")
    OUT_FIELD_NUMBER: _ClassVar[int]
    ERR_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    PMI_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    TAKEN_PMI_FIELD_NUMBER: _ClassVar[int]
    TAKEN_SIGNALS_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    PATIENCE_S_FIELD_NUMBER: _ClassVar[int]
    out: bytes
    err: bytes
    started: bool
    pid: int
    ended: bool
    status: int
    error: str
    pmi: bytes
    taken: int
    offset: int
    taken_pmi: int
    taken_signals: int
    kept: bool
    patience_s: float
    def __init__(self, out: _Optional[bytes] = ..., err: _Optional[bytes] = ..., started: _Optional[bool] = ..., pid: _Optional[int] = ..., ended: _Optional[bool] = ..., status: _Optional[int] = ..., error: _Optional[str] = ..., pmi: _Optional[bytes] = ..., taken: _Optional[int] = ..., offset: _Optional[int] = ..., taken_pmi: _Optional[int] = ..., taken_signals: _Optional[int] = ..., kept: _Optional[bool] = ..., patience_s: _Optional[float] = ...) -> None: ...

class CountRequest(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: _common_pb2.AttemptKey
    def __init__(self, key: _Optional[_Union[_common_pb2.AttemptKey, _Mapping]] = ...) -> None: ...

class CountReply(_message.Message):
    __slots__ = ("usage", "limit_reached")
    USAGE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_REACHED_FIELD_NUMBER: _ClassVar[int]
    usage: _common_pb2.Usage
    limit_reached: str
    def __init__(self, usage: _Optional[_Union[_common_pb2.Usage, _Mapping]] = ..., limit_reached: _Optional[str] = ...) -> None: ...

class TailRequest(_message.Message):
    __slots__ = ("key", "ticket", "follow", "error_file", "last_bytes", "task")
    KEY_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    ERROR_FILE_FIELD_NUMBER: _ClassVar[int]
    LAST_BYTES_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    key: _common_pb2.AttemptKey
    ticket: bytes
    follow: bool
    error_file: bool
    last_bytes: int
    task: _common_pb2.TaskRun
    def __init__(self, key: _Optional[_Union[_common_pb2.AttemptKey, _Mapping]] = ..., ticket: _Optional[bytes] = ..., follow: _Optional[bool] = ..., error_file: _Optional[bool] = ..., last_bytes: _Optional[int] = ..., task: _Optional[_Union[_common_pb2.TaskRun, _Mapping]] = ...) -> None: ...

class FileState(_message.Message):
    __slots__ = ("permissions", "inode", "size", "modified_ns")
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    INODE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    MODIFIED_NS_FIELD_NUMBER: _ClassVar[int]
    permissions: int
    inode: int
    size: int
    modified_ns: int
    def __init__(self, permissions: _Optional[int] = ..., inode: _Optional[int] = ..., size: _Optional[int] = ..., modified_ns: _Optional[int] = ...) -> None: ...

class FilePart(_message.Message):
    __slots__ = ("asked", "leave", "data", "is_whole", "error", "state")
    ASKED_FIELD_NUMBER: _ClassVar[int]
    LEAVE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    IS_WHOLE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    asked: _jobs_pb2.CopyTicketRequest
    leave: _jobs_pb2.CopyTicketReply
    data: bytes
    is_whole: bool
    error: str
    state: FileState
    def __init__(self, asked: _Optional[_Union[_jobs_pb2.CopyTicketRequest, _Mapping]] = ..., leave: _Optional[_Union[_jobs_pb2.CopyTicketReply, _Mapping]] = ..., data: _Optional[bytes] = ..., is_whole: _Optional[bool] = ..., error: _Optional[str] = ..., state: _Optional[_Union[FileState, _Mapping]] = ...) -> None: ...

class TailChunk(_message.Message):
    __slots__ = ("data", "error", "is_error_file", "has_tasks")
    DATA_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    IS_ERROR_FILE_FIELD_NUMBER: _ClassVar[int]
    HAS_TASKS_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    error: str
    is_error_file: bool
    has_tasks: bool
    def __init__(self, data: _Optional[bytes] = ..., error: _Optional[str] = ..., is_error_file: _Optional[bool] = ..., has_tasks: _Optional[bool] = ...) -> None: ...
