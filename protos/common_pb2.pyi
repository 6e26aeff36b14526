from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_STATE_UNSPECIFIED: _ClassVar[JobState]
    PEND: _ClassVar[JobState]
    PSUSP: _ClassVar[JobState]
    STAGING: _ClassVar[JobState]
    RUN: _ClassVar[JobState]
    USUSP: _ClassVar[JobState]
    SSUSP: _ClassVar[JobState]
    DONE: _ClassVar[JobState]
    EXIT: _ClassVar[JobState]
    UNKWN: _ClassVar[JobState]
    ZOMBI: _ClassVar[JobState]

class Launch(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LAUNCH_FIRST: _ClassVar[Launch]
    LAUNCH_EACH: _ClassVar[Launch]
    LAUNCH_HOST: _ClassVar[Launch]
    LAUNCH_NONE: _ClassVar[Launch]

class TaskEvent(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TASK_EVENT_UNSPECIFIED: _ClassVar[TaskEvent]
    TASK_ANY: _ClassVar[TaskEvent]
    TASK_FAILED: _ClassVar[TaskEvent]
    TASK_EVICTED: _ClassVar[TaskEvent]
    TASK_PENDING: _ClassVar[TaskEvent]
    TASK_SUCCEEDED: _ClassVar[TaskEvent]
    ROLE_COMPLETED: _ClassVar[TaskEvent]
    ROLE_FAILED: _ClassVar[TaskEvent]
    HOST_LOST: _ClassVar[TaskEvent]
    TASK_HANGS: _ClassVar[TaskEvent]
    TASK_TIMEOUT: _ClassVar[TaskEvent]

class TaskAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TASK_ACTION_UNSPECIFIED: _ClassVar[TaskAction]
    IGNORE: _ClassVar[TaskAction]
    RESTART_TASK: _ClassVar[TaskAction]
    RESTART_ROLE: _ClassVar[TaskAction]
    RESTART_JOB: _ClassVar[TaskAction]
    ABORT_JOB: _ClassVar[TaskAction]
    TERMINATE_JOB: _ClassVar[TaskAction]
    COMPLETE_JOB: _ClassVar[TaskAction]
    RESUME_JOB: _ClassVar[TaskAction]
    RESTART_GROUP: _ClassVar[TaskAction]

class RestartInPlace(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESTART_NEVER: _ClassVar[RestartInPlace]
    RESTART_ON_FAILURE: _ClassVar[RestartInPlace]
    RESTART_ALWAYS: _ClassVar[RestartInPlace]

class TaskPhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TASK_WAITING: _ClassVar[TaskPhase]
    TASK_STARTING: _ClassVar[TaskPhase]
    TASK_RUNNING: _ClassVar[TaskPhase]
    TASK_STOPPING: _ClassVar[TaskPhase]
    TASK_DONE: _ClassVar[TaskPhase]
    TASK_EXITED: _ClassVar[TaskPhase]
JOB_STATE_UNSPECIFIED: JobState
PEND: JobState
PSUSP: JobState
STAGING: JobState
RUN: JobState
USUSP: JobState
SSUSP: JobState
DONE: JobState
EXIT: JobState
UNKWN: JobState
ZOMBI: JobState
LAUNCH_FIRST: Launch
LAUNCH_EACH: Launch
LAUNCH_HOST: Launch
LAUNCH_NONE: Launch
TASK_EVENT_UNSPECIFIED: TaskEvent
TASK_ANY: TaskEvent
TASK_FAILED: TaskEvent
TASK_EVICTED: TaskEvent
TASK_PENDING: TaskEvent
TASK_SUCCEEDED: TaskEvent
ROLE_COMPLETED: TaskEvent
ROLE_FAILED: TaskEvent
HOST_LOST: TaskEvent
TASK_HANGS: TaskEvent
TASK_TIMEOUT: TaskEvent
TASK_ACTION_UNSPECIFIED: TaskAction
IGNORE: TaskAction
RESTART_TASK: TaskAction
RESTART_ROLE: TaskAction
RESTART_JOB: TaskAction
ABORT_JOB: TaskAction
TERMINATE_JOB: TaskAction
COMPLETE_JOB: TaskAction
RESUME_JOB: TaskAction
RESTART_GROUP: TaskAction
RESTART_NEVER: RestartInPlace
RESTART_ON_FAILURE: RestartInPlace
RESTART_ALWAYS: RestartInPlace
TASK_WAITING: TaskPhase
TASK_STARTING: TaskPhase
TASK_RUNNING: TaskPhase
TASK_STOPPING: TaskPhase
TASK_DONE: TaskPhase
TASK_EXITED: TaskPhase

class AttemptKey(_message.Message):
    __slots__ = ("job", "index", "attempt")
    JOB_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    job: int
    index: int
    attempt: int
    def __init__(self, job: _Optional[int] = ..., index: _Optional[int] = ..., attempt: _Optional[int] = ...) -> None: ...

class IndexRange(_message.Message):
    __slots__ = ("first", "last", "step")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    first: int
    last: int
    step: int
    def __init__(self, first: _Optional[int] = ..., last: _Optional[int] = ..., step: _Optional[int] = ...) -> None: ...

class JobRef(_message.Message):
    __slots__ = ("job", "indices")
    JOB_FIELD_NUMBER: _ClassVar[int]
    INDICES_FIELD_NUMBER: _ClassVar[int]
    job: int
    indices: _containers.RepeatedCompositeFieldContainer[IndexRange]
    def __init__(self, job: _Optional[int] = ..., indices: _Optional[_Iterable[_Union[IndexRange, _Mapping]]] = ...) -> None: ...

class TaskPolicy(_message.Message):
    __slots__ = ("events", "exit_codes", "action", "timeout_s", "index_plus_one", "uncounted")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODES_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_S_FIELD_NUMBER: _ClassVar[int]
    INDEX_PLUS_ONE_FIELD_NUMBER: _ClassVar[int]
    UNCOUNTED_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedScalarFieldContainer[TaskEvent]
    exit_codes: _containers.RepeatedScalarFieldContainer[int]
    action: TaskAction
    timeout_s: float
    index_plus_one: int
    uncounted: bool
    def __init__(self, events: _Optional[_Iterable[_Union[TaskEvent, str]]] = ..., exit_codes: _Optional[_Iterable[int]] = ..., action: _Optional[_Union[TaskAction, str]] = ..., timeout_s: _Optional[float] = ..., index_plus_one: _Optional[int] = ..., uncounted: _Optional[bool] = ...) -> None: ...

class PortRequest(_message.Message):
    __slots__ = ("name", "count", "number", "is_preferred", "is_own")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    IS_PREFERRED_FIELD_NUMBER: _ClassVar[int]
    IS_OWN_FIELD_NUMBER: _ClassVar[int]
    name: str
    count: int
    number: int
    is_preferred: bool
    is_own: bool
    def __init__(self, name: _Optional[str] = ..., count: _Optional[int] = ..., number: _Optional[int] = ..., is_preferred: _Optional[bool] = ..., is_own: _Optional[bool] = ...) -> None: ...

class GpuRequest(_message.Message):
    __slots__ = ("num", "per_task", "exclusive_process", "j_exclusive", "text")
    NUM_FIELD_NUMBER: _ClassVar[int]
    PER_TASK_FIELD_NUMBER: _ClassVar[int]
    EXCLUSIVE_PROCESS_FIELD_NUMBER: _ClassVar[int]
    J_EXCLUSIVE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    num: int
    per_task: bool
    exclusive_process: bool
    j_exclusive: bool
    text: str
    def __init__(self, num: _Optional[int] = ..., per_task: _Optional[bool] = ..., exclusive_process: _Optional[bool] = ..., j_exclusive: _Optional[bool] = ..., text: _Optional[str] = ...) -> None: ...

class Role(_message.Message):
    __slots__ = ("name", "tasks_min", "tasks_max", "slots_per_task", "requirement", "gpu", "launch", "command", "may_be_absent", "environment", "cwd", "ports", "after", "after_any", "policies", "restart", "restarts_max", "success_min", "failed_enough", "succeeded_enough", "run_limit_s", "spread", "argv", "image", "memory_limit_mib", "spares", "group", "after_done", "completions", "restart_pause_s", "restart_pause_max_s", "stable_s")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TASKS_MIN_FIELD_NUMBER: _ClassVar[int]
    TASKS_MAX_FIELD_NUMBER: _ClassVar[int]
    SLOTS_PER_TASK_FIELD_NUMBER: _ClassVar[int]
    REQUIREMENT_FIELD_NUMBER: _ClassVar[int]
    GPU_FIELD_NUMBER: _ClassVar[int]
    LAUNCH_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    MAY_BE_ABSENT_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    PORTS_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    AFTER_ANY_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    RESTART_FIELD_NUMBER: _ClassVar[int]
    RESTARTS_MAX_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_MIN_FIELD_NUMBER: _ClassVar[int]
    FAILED_ENOUGH_FIELD_NUMBER: _ClassVar[int]
    SUCCEEDED_ENOUGH_FIELD_NUMBER: _ClassVar[int]
    RUN_LIMIT_S_FIELD_NUMBER: _ClassVar[int]
    SPREAD_FIELD_NUMBER: _ClassVar[int]
    ARGV_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_LIMIT_MIB_FIELD_NUMBER: _ClassVar[int]
    SPARES_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    AFTER_DONE_FIELD_NUMBER: _ClassVar[int]
    COMPLETIONS_FIELD_NUMBER: _ClassVar[int]
    RESTART_PAUSE_S_FIELD_NUMBER: _ClassVar[int]
    RESTART_PAUSE_MAX_S_FIELD_NUMBER: _ClassVar[int]
    STABLE_S_FIELD_NUMBER: _ClassVar[int]
    name: str
    tasks_min: int
    tasks_max: int
    slots_per_task: int
    requirement: str
    gpu: GpuRequest
    launch: Launch
    command: str
    may_be_absent: bool
    environment: _containers.RepeatedScalarFieldContainer[bytes]
    cwd: str
    ports: _containers.RepeatedCompositeFieldContainer[PortRequest]
    after: _containers.RepeatedScalarFieldContainer[str]
    after_any: bool
    policies: _containers.RepeatedCompositeFieldContainer[TaskPolicy]
    restart: RestartInPlace
    restarts_max: int
    success_min: int
    failed_enough: int
    succeeded_enough: int
    run_limit_s: float
    spread: str
    argv: _containers.RepeatedScalarFieldContainer[str]
    image: str
    memory_limit_mib: int
    spares: int
    group: int
    after_done: _containers.RepeatedScalarFieldContainer[str]
    completions: int
    restart_pause_s: float
    restart_pause_max_s: float
    stable_s: float
    def __init__(self, name: _Optional[str] = ..., tasks_min: _Optional[int] = ..., tasks_max: _Optional[int] = ..., slots_per_task: _Optional[int] = ..., requirement: _Optional[str] = ..., gpu: _Optional[_Union[GpuRequest, _Mapping]] = ..., launch: _Optional[_Union[Launch, str]] = ..., command: _Optional[str] = ..., may_be_absent: _Optional[bool] = ..., environment: _Optional[_Iterable[bytes]] = ..., cwd: _Optional[str] = ..., ports: _Optional[_Iterable[_Union[PortRequest, _Mapping]]] = ..., after: _Optional[_Iterable[str]] = ..., after_any: _Optional[bool] = ..., policies: _Optional[_Iterable[_Union[TaskPolicy, _Mapping]]] = ..., restart: _Optional[_Union[RestartInPlace, str]] = ..., restarts_max: _Optional[int] = ..., success_min: _Optional[int] = ..., failed_enough: _Optional[int] = ..., succeeded_enough: _Optional[int] = ..., run_limit_s: _Optional[float] = ..., spread: _Optional[str] = ..., argv: _Optional[_Iterable[str]] = ..., image: _Optional[str] = ..., memory_limit_mib: _Optional[int] = ..., spares: _Optional[int] = ..., group: _Optional[int] = ..., after_done: _Optional[_Iterable[str]] = ..., completions: _Optional[int] = ..., restart_pause_s: _Optional[float] = ..., restart_pause_max_s: _Optional[float] = ..., stable_s: _Optional[float] = ...) -> None: ...

class RoleTasks(_message.Message):
    __slots__ = ("role", "indices", "ports")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    INDICES_FIELD_NUMBER: _ClassVar[int]
    PORTS_FIELD_NUMBER: _ClassVar[int]
    role: int
    indices: _containers.RepeatedScalarFieldContainer[int]
    ports: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, role: _Optional[int] = ..., indices: _Optional[_Iterable[int]] = ..., ports: _Optional[_Iterable[int]] = ...) -> None: ...

class TaskHost(_message.Message):
    __slots__ = ("host", "address", "roles")
    HOST_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    host: str
    address: str
    roles: _containers.RepeatedCompositeFieldContainer[RoleTasks]
    def __init__(self, host: _Optional[str] = ..., address: _Optional[str] = ..., roles: _Optional[_Iterable[_Union[RoleTasks, _Mapping]]] = ...) -> None: ...

class TaskRun(_message.Message):
    __slots__ = ("role", "index", "run")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    role: int
    index: int
    run: int
    def __init__(self, role: _Optional[int] = ..., index: _Optional[int] = ..., run: _Optional[int] = ...) -> None: ...

class TaskState(_message.Message):
    __slots__ = ("task", "phase", "host", "pid", "started", "ended", "status", "reason", "detail", "order_again", "not_before", "failures")
    TASK_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    ORDER_AGAIN_FIELD_NUMBER: _ClassVar[int]
    NOT_BEFORE_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    task: TaskRun
    phase: TaskPhase
    host: str
    pid: int
    started: float
    ended: float
    status: int
    reason: str
    detail: str
    order_again: bool
    not_before: float
    failures: int
    def __init__(self, task: _Optional[_Union[TaskRun, _Mapping]] = ..., phase: _Optional[_Union[TaskPhase, str]] = ..., host: _Optional[str] = ..., pid: _Optional[int] = ..., started: _Optional[float] = ..., ended: _Optional[float] = ..., status: _Optional[int] = ..., reason: _Optional[str] = ..., detail: _Optional[str] = ..., order_again: _Optional[bool] = ..., not_before: _Optional[float] = ..., failures: _Optional[int] = ...) -> None: ...

class HostShare(_message.Message):
    __slots__ = ("host", "slots", "gpus", "memory_mib", "address", "tasks_by_role", "resources", "cpus", "gpu_memory_mib", "gpu_roles")
    HOST_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    TASKS_BY_ROLE_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    GPU_MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    GPU_ROLES_FIELD_NUMBER: _ClassVar[int]
    host: str
    slots: int
    gpus: _containers.RepeatedScalarFieldContainer[int]
    memory_mib: int
    address: str
    tasks_by_role: _containers.RepeatedScalarFieldContainer[int]
    resources: _containers.RepeatedCompositeFieldContainer[ResourceShare]
    cpus: _containers.RepeatedCompositeFieldContainer[TaskCpus]
    gpu_memory_mib: _containers.RepeatedScalarFieldContainer[int]
    gpu_roles: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, host: _Optional[str] = ..., slots: _Optional[int] = ..., gpus: _Optional[_Iterable[int]] = ..., memory_mib: _Optional[int] = ..., address: _Optional[str] = ..., tasks_by_role: _Optional[_Iterable[int]] = ..., resources: _Optional[_Iterable[_Union[ResourceShare, _Mapping]]] = ..., cpus: _Optional[_Iterable[_Union[TaskCpus, _Mapping]]] = ..., gpu_memory_mib: _Optional[_Iterable[int]] = ..., gpu_roles: _Optional[_Iterable[int]] = ...) -> None: ...

class ResourceShare(_message.Message):
    __slots__ = ("name", "amount", "devices", "device_roles")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ROLES_FIELD_NUMBER: _ClassVar[int]
    name: str
    amount: float
    devices: _containers.RepeatedScalarFieldContainer[int]
    device_roles: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, name: _Optional[str] = ..., amount: _Optional[float] = ..., devices: _Optional[_Iterable[int]] = ..., device_roles: _Optional[_Iterable[int]] = ...) -> None: ...

class TaskCpus(_message.Message):
    __slots__ = ("cpus", "nodes", "memory")
    CPUS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    cpus: _containers.RepeatedScalarFieldContainer[int]
    nodes: _containers.RepeatedScalarFieldContainer[int]
    memory: str
    def __init__(self, cpus: _Optional[_Iterable[int]] = ..., nodes: _Optional[_Iterable[int]] = ..., memory: _Optional[str] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("percent", "seconds_left", "text", "time", "role", "index", "host", "has_percent", "has_seconds_left")
    PERCENT_FIELD_NUMBER: _ClassVar[int]
    SECONDS_LEFT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    HAS_PERCENT_FIELD_NUMBER: _ClassVar[int]
    HAS_SECONDS_LEFT_FIELD_NUMBER: _ClassVar[int]
    percent: float
    seconds_left: float
    text: str
    time: float
    role: str
    index: int
    host: str
    has_percent: bool
    has_seconds_left: bool
    def __init__(self, percent: _Optional[float] = ..., seconds_left: _Optional[float] = ..., text: _Optional[str] = ..., time: _Optional[float] = ..., role: _Optional[str] = ..., index: _Optional[int] = ..., host: _Optional[str] = ..., has_percent: _Optional[bool] = ..., has_seconds_left: _Optional[bool] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("cpu_s", "memory_mib", "memory_mib_max", "swap_mib", "pids", "process_groups", "threads", "host", "memory_mib_mean", "user_s", "system_s", "seconds", "swap_mib_max", "processes_max", "threads_max", "gpus", "collected_at")
    CPU_S_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_MAX_FIELD_NUMBER: _ClassVar[int]
    SWAP_MIB_FIELD_NUMBER: _ClassVar[int]
    PIDS_FIELD_NUMBER: _ClassVar[int]
    PROCESS_GROUPS_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_MEAN_FIELD_NUMBER: _ClassVar[int]
    USER_S_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_S_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    SWAP_MIB_MAX_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_MAX_FIELD_NUMBER: _ClassVar[int]
    THREADS_MAX_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    COLLECTED_AT_FIELD_NUMBER: _ClassVar[int]
    cpu_s: float
    memory_mib: int
    memory_mib_max: int
    swap_mib: int
    pids: _containers.RepeatedScalarFieldContainer[int]
    process_groups: _containers.RepeatedScalarFieldContainer[int]
    threads: int
    host: str
    memory_mib_mean: float
    user_s: float
    system_s: float
    seconds: float
    swap_mib_max: int
    processes_max: int
    threads_max: int
    gpus: _containers.RepeatedCompositeFieldContainer[GpuUsage]
    collected_at: float
    def __init__(self, cpu_s: _Optional[float] = ..., memory_mib: _Optional[int] = ..., memory_mib_max: _Optional[int] = ..., swap_mib: _Optional[int] = ..., pids: _Optional[_Iterable[int]] = ..., process_groups: _Optional[_Iterable[int]] = ..., threads: _Optional[int] = ..., host: _Optional[str] = ..., memory_mib_mean: _Optional[float] = ..., user_s: _Optional[float] = ..., system_s: _Optional[float] = ..., seconds: _Optional[float] = ..., swap_mib_max: _Optional[int] = ..., processes_max: _Optional[int] = ..., threads_max: _Optional[int] = ..., gpus: _Optional[_Iterable[_Union[GpuUsage, _Mapping]]] = ..., collected_at: _Optional[float] = ...) -> None: ...

class GpuUsage(_message.Message):
    __slots__ = ("index", "uuid", "model", "seconds", "utilisation", "utilisation_max", "utilisation_s", "memory_utilisation_max", "memory_utilisation_s", "memory_mib", "memory_mib_max", "memory_mib_s", "power_w", "power_w_max", "energy_j", "temperature_c_max", "throttled_s", "idle_s", "ecc_errors", "trouble", "processes", "host", "idle_max_s")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    UUID_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    UTILISATION_FIELD_NUMBER: _ClassVar[int]
    UTILISATION_MAX_FIELD_NUMBER: _ClassVar[int]
    UTILISATION_S_FIELD_NUMBER: _ClassVar[int]
    MEMORY_UTILISATION_MAX_FIELD_NUMBER: _ClassVar[int]
    MEMORY_UTILISATION_S_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_MAX_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_S_FIELD_NUMBER: _ClassVar[int]
    POWER_W_FIELD_NUMBER: _ClassVar[int]
    POWER_W_MAX_FIELD_NUMBER: _ClassVar[int]
    ENERGY_J_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_C_MAX_FIELD_NUMBER: _ClassVar[int]
    THROTTLED_S_FIELD_NUMBER: _ClassVar[int]
    IDLE_S_FIELD_NUMBER: _ClassVar[int]
    ECC_ERRORS_FIELD_NUMBER: _ClassVar[int]
    TROUBLE_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    IDLE_MAX_S_FIELD_NUMBER: _ClassVar[int]
    index: int
    uuid: str
    model: str
    seconds: float
    utilisation: float
    utilisation_max: float
    utilisation_s: float
    memory_utilisation_max: float
    memory_utilisation_s: float
    memory_mib: int
    memory_mib_max: int
    memory_mib_s: float
    power_w: float
    power_w_max: float
    energy_j: float
    temperature_c_max: int
    throttled_s: float
    idle_s: float
    ecc_errors: int
    trouble: str
    processes: _containers.RepeatedCompositeFieldContainer[GpuProcess]
    host: str
    idle_max_s: float
    def __init__(self, index: _Optional[int] = ..., uuid: _Optional[str] = ..., model: _Optional[str] = ..., seconds: _Optional[float] = ..., utilisation: _Optional[float] = ..., utilisation_max: _Optional[float] = ..., utilisation_s: _Optional[float] = ..., memory_utilisation_max: _Optional[float] = ..., memory_utilisation_s: _Optional[float] = ..., memory_mib: _Optional[int] = ..., memory_mib_max: _Optional[int] = ..., memory_mib_s: _Optional[float] = ..., power_w: _Optional[float] = ..., power_w_max: _Optional[float] = ..., energy_j: _Optional[float] = ..., temperature_c_max: _Optional[int] = ..., throttled_s: _Optional[float] = ..., idle_s: _Optional[float] = ..., ecc_errors: _Optional[int] = ..., trouble: _Optional[str] = ..., processes: _Optional[_Iterable[_Union[GpuProcess, _Mapping]]] = ..., host: _Optional[str] = ..., idle_max_s: _Optional[float] = ...) -> None: ...

class GpuProcess(_message.Message):
    __slots__ = ("pid", "memory_mib", "sm", "has_sm", "user", "command")
    PID_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    SM_FIELD_NUMBER: _ClassVar[int]
    HAS_SM_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    pid: int
    memory_mib: int
    sm: float
    has_sm: bool
    user: str
    command: str
    def __init__(self, pid: _Optional[int] = ..., memory_mib: _Optional[int] = ..., sm: _Optional[float] = ..., has_sm: _Optional[bool] = ..., user: _Optional[str] = ..., command: _Optional[str] = ...) -> None: ...
