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
    __slots__ = ("name", "tasks_min", "tasks_max", "slots_per_task", "requirement", "gpu", "launch", "command")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TASKS_MIN_FIELD_NUMBER: _ClassVar[int]
    TASKS_MAX_FIELD_NUMBER: _ClassVar[int]
    SLOTS_PER_TASK_FIELD_NUMBER: _ClassVar[int]
    REQUIREMENT_FIELD_NUMBER: _ClassVar[int]
    GPU_FIELD_NUMBER: _ClassVar[int]
    LAUNCH_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    name: str
    tasks_min: int
    tasks_max: int
    slots_per_task: int
    requirement: str
    gpu: GpuRequest
    launch: Launch
    command: str
    def __init__(self, name: _Optional[str] = ..., tasks_min: _Optional[int] = ..., tasks_max: _Optional[int] = ..., slots_per_task: _Optional[int] = ..., requirement: _Optional[str] = ..., gpu: _Optional[_Union[GpuRequest, _Mapping]] = ..., launch: _Optional[_Union[Launch, str]] = ..., command: _Optional[str] = ...) -> None: ...

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

class Usage(_message.Message):
    __slots__ = ("cpu_s", "memory_mib", "memory_mib_max", "swap_mib", "pids", "process_groups", "threads", "host", "memory_mib_mean", "user_s", "system_s", "seconds", "swap_mib_max", "processes_max", "threads_max")
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
    def __init__(self, cpu_s: _Optional[float] = ..., memory_mib: _Optional[int] = ..., memory_mib_max: _Optional[int] = ..., swap_mib: _Optional[int] = ..., pids: _Optional[_Iterable[int]] = ..., process_groups: _Optional[_Iterable[int]] = ..., threads: _Optional[int] = ..., host: _Optional[str] = ..., memory_mib_mean: _Optional[float] = ..., user_s: _Optional[float] = ..., system_s: _Optional[float] = ..., seconds: _Optional[float] = ..., swap_mib_max: _Optional[int] = ..., processes_max: _Optional[int] = ..., threads_max: _Optional[int] = ...) -> None: ...
