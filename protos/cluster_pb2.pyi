from protos import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ControlAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONTROL_ACTION_UNSPECIFIED: _ClassVar[ControlAction]
    OPEN_HOST: _ClassVar[ControlAction]
    CLOSE_HOST: _ClassVar[ControlAction]
    OPEN_QUEUE: _ClassVar[ControlAction]
    CLOSE_QUEUE: _ClassVar[ControlAction]
    ACTIVATE_QUEUE: _ClassVar[ControlAction]
    INACTIVATE_QUEUE: _ClassVar[ControlAction]
    REMOVE_HOST: _ClassVar[ControlAction]
    LOCK_HOST: _ClassVar[ControlAction]
    UNLOCK_HOST: _ClassVar[ControlAction]
    ADD_TO_GROUP: _ClassVar[ControlAction]
    DELETE_FROM_GROUP: _ClassVar[ControlAction]

class PerformanceAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VIEW_PERFORMANCE: _ClassVar[PerformanceAction]
    START_PERFORMANCE: _ClassVar[PerformanceAction]
    STOP_PERFORMANCE: _ClassVar[PerformanceAction]
    SET_PERFORMANCE_PERIOD: _ClassVar[PerformanceAction]

class ReservationAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ADD_RESERVATION: _ClassVar[ReservationAction]
    CHANGE_RESERVATION: _ClassVar[ReservationAction]
    ADD_HOSTS: _ClassVar[ReservationAction]
    TAKE_HOSTS: _ClassVar[ReservationAction]
    SKIP_OCCURRENCES: _ClassVar[ReservationAction]
    REMOVE_RESERVATION: _ClassVar[ReservationAction]

class JobGroupAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ADD_GROUP: _ClassVar[JobGroupAction]
    CHANGE_GROUP: _ClassVar[JobGroupAction]
    REMOVE_GROUP: _ClassVar[JobGroupAction]
    REMOVE_GROUPS_BELOW: _ClassVar[JobGroupAction]
    REMOVE_GROUPS_OF_USER: _ClassVar[JobGroupAction]
    REMOVE_ALL_GROUPS: _ClassVar[JobGroupAction]
CONTROL_ACTION_UNSPECIFIED: ControlAction
OPEN_HOST: ControlAction
CLOSE_HOST: ControlAction
OPEN_QUEUE: ControlAction
CLOSE_QUEUE: ControlAction
ACTIVATE_QUEUE: ControlAction
INACTIVATE_QUEUE: ControlAction
REMOVE_HOST: ControlAction
LOCK_HOST: ControlAction
UNLOCK_HOST: ControlAction
ADD_TO_GROUP: ControlAction
DELETE_FROM_GROUP: ControlAction
VIEW_PERFORMANCE: PerformanceAction
START_PERFORMANCE: PerformanceAction
STOP_PERFORMANCE: PerformanceAction
SET_PERFORMANCE_PERIOD: PerformanceAction
ADD_RESERVATION: ReservationAction
CHANGE_RESERVATION: ReservationAction
ADD_HOSTS: ReservationAction
TAKE_HOSTS: ReservationAction
SKIP_OCCURRENCES: ReservationAction
REMOVE_RESERVATION: ReservationAction
ADD_GROUP: JobGroupAction
CHANGE_GROUP: JobGroupAction
REMOVE_GROUP: JobGroupAction
REMOVE_GROUPS_BELOW: JobGroupAction
REMOVE_GROUPS_OF_USER: JobGroupAction
REMOVE_ALL_GROUPS: JobGroupAction

class InfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class InfoReply(_message.Message):
    __slots__ = ("cluster", "master_host", "version", "term", "conf_dir", "administrators", "default_queue", "hosts", "servers")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    MASTER_HOST_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    CONF_DIR_FIELD_NUMBER: _ClassVar[int]
    ADMINISTRATORS_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_QUEUE_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    SERVERS_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    master_host: str
    version: str
    term: int
    conf_dir: str
    administrators: _containers.RepeatedScalarFieldContainer[str]
    default_queue: str
    hosts: int
    servers: int
    def __init__(self, cluster: _Optional[str] = ..., master_host: _Optional[str] = ..., version: _Optional[str] = ..., term: _Optional[int] = ..., conf_dir: _Optional[str] = ..., administrators: _Optional[_Iterable[str]] = ..., default_queue: _Optional[str] = ..., hosts: _Optional[int] = ..., servers: _Optional[int] = ...) -> None: ...

class HostsRequest(_message.Message):
    __slots__ = ("names", "clients_too", "requirement", "allocated", "processors")
    NAMES_FIELD_NUMBER: _ClassVar[int]
    CLIENTS_TOO_FIELD_NUMBER: _ClassVar[int]
    REQUIREMENT_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_FIELD_NUMBER: _ClassVar[int]
    PROCESSORS_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    clients_too: bool
    requirement: str
    allocated: bool
    processors: bool
    def __init__(self, names: _Optional[_Iterable[str]] = ..., clients_too: _Optional[bool] = ..., requirement: _Optional[str] = ..., allocated: _Optional[bool] = ..., processors: _Optional[bool] = ...) -> None: ...

class Gpu(_message.Message):
    __slots__ = ("index", "uuid", "model", "driver", "memory_mib", "memory_used_mib", "utilisation", "memory_utilisation", "temperature_c", "ecc_errors", "numa_node", "pids", "bus_id", "status", "nvlink_peers", "power_w", "mode", "mig", "allocated_jobs", "vendor", "power_limit_w", "processes", "throttled", "energy_j", "foreign", "mig_profile", "parent_plus_one", "gpu_instance", "compute_instance")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    UUID_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    DRIVER_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    MEMORY_USED_MIB_FIELD_NUMBER: _ClassVar[int]
    UTILISATION_FIELD_NUMBER: _ClassVar[int]
    MEMORY_UTILISATION_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_C_FIELD_NUMBER: _ClassVar[int]
    ECC_ERRORS_FIELD_NUMBER: _ClassVar[int]
    NUMA_NODE_FIELD_NUMBER: _ClassVar[int]
    PIDS_FIELD_NUMBER: _ClassVar[int]
    BUS_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    NVLINK_PEERS_FIELD_NUMBER: _ClassVar[int]
    POWER_W_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    MIG_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_JOBS_FIELD_NUMBER: _ClassVar[int]
    VENDOR_FIELD_NUMBER: _ClassVar[int]
    POWER_LIMIT_W_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    THROTTLED_FIELD_NUMBER: _ClassVar[int]
    ENERGY_J_FIELD_NUMBER: _ClassVar[int]
    FOREIGN_FIELD_NUMBER: _ClassVar[int]
    MIG_PROFILE_FIELD_NUMBER: _ClassVar[int]
    PARENT_PLUS_ONE_FIELD_NUMBER: _ClassVar[int]
    GPU_INSTANCE_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_INSTANCE_FIELD_NUMBER: _ClassVar[int]
    index: int
    uuid: str
    model: str
    driver: str
    memory_mib: int
    memory_used_mib: int
    utilisation: float
    memory_utilisation: float
    temperature_c: int
    ecc_errors: int
    numa_node: int
    pids: _containers.RepeatedScalarFieldContainer[int]
    bus_id: str
    status: str
    nvlink_peers: _containers.RepeatedScalarFieldContainer[int]
    power_w: float
    mode: str
    mig: bool
    allocated_jobs: int
    vendor: str
    power_limit_w: float
    processes: _containers.RepeatedCompositeFieldContainer[_common_pb2.GpuProcess]
    throttled: _containers.RepeatedScalarFieldContainer[str]
    energy_j: float
    foreign: _containers.RepeatedCompositeFieldContainer[_common_pb2.GpuProcess]
    mig_profile: str
    parent_plus_one: int
    gpu_instance: int
    compute_instance: int
    def __init__(self, index: _Optional[int] = ..., uuid: _Optional[str] = ..., model: _Optional[str] = ..., driver: _Optional[str] = ..., memory_mib: _Optional[int] = ..., memory_used_mib: _Optional[int] = ..., utilisation: _Optional[float] = ..., memory_utilisation: _Optional[float] = ..., temperature_c: _Optional[int] = ..., ecc_errors: _Optional[int] = ..., numa_node: _Optional[int] = ..., pids: _Optional[_Iterable[int]] = ..., bus_id: _Optional[str] = ..., status: _Optional[str] = ..., nvlink_peers: _Optional[_Iterable[int]] = ..., power_w: _Optional[float] = ..., mode: _Optional[str] = ..., mig: _Optional[bool] = ..., allocated_jobs: _Optional[int] = ..., vendor: _Optional[str] = ..., power_limit_w: _Optional[float] = ..., processes: _Optional[_Iterable[_Union[_common_pb2.GpuProcess, _Mapping]]] = ..., throttled: _Optional[_Iterable[str]] = ..., energy_j: _Optional[float] = ..., foreign: _Optional[_Iterable[_Union[_common_pb2.GpuProcess, _Mapping]]] = ..., mig_profile: _Optional[str] = ..., parent_plus_one: _Optional[int] = ..., gpu_instance: _Optional[int] = ..., compute_instance: _Optional[int] = ...) -> None: ...

class Load(_message.Message):
    __slots__ = ("r15s", "r1m", "r15m", "ut", "pg", "io", "ls", "it", "tmp_mib", "swp_mib", "mem_mib", "gpus", "external")
    class ExternalEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    R15S_FIELD_NUMBER: _ClassVar[int]
    R1M_FIELD_NUMBER: _ClassVar[int]
    R15M_FIELD_NUMBER: _ClassVar[int]
    UT_FIELD_NUMBER: _ClassVar[int]
    PG_FIELD_NUMBER: _ClassVar[int]
    IO_FIELD_NUMBER: _ClassVar[int]
    LS_FIELD_NUMBER: _ClassVar[int]
    IT_FIELD_NUMBER: _ClassVar[int]
    TMP_MIB_FIELD_NUMBER: _ClassVar[int]
    SWP_MIB_FIELD_NUMBER: _ClassVar[int]
    MEM_MIB_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_FIELD_NUMBER: _ClassVar[int]
    r15s: float
    r1m: float
    r15m: float
    ut: float
    pg: float
    io: float
    ls: int
    it: int
    tmp_mib: int
    swp_mib: int
    mem_mib: int
    gpus: _containers.RepeatedCompositeFieldContainer[Gpu]
    external: _containers.ScalarMap[str, float]
    def __init__(self, r15s: _Optional[float] = ..., r1m: _Optional[float] = ..., r15m: _Optional[float] = ..., ut: _Optional[float] = ..., pg: _Optional[float] = ..., io: _Optional[float] = ..., ls: _Optional[int] = ..., it: _Optional[int] = ..., tmp_mib: _Optional[int] = ..., swp_mib: _Optional[int] = ..., mem_mib: _Optional[int] = ..., gpus: _Optional[_Iterable[_Union[Gpu, _Mapping]]] = ..., external: _Optional[_Mapping[str, float]] = ...) -> None: ...

class HostFacts(_message.Message):
    __slots__ = ("name", "type", "model", "cpu_factor", "cpus", "cores", "sockets", "memory_mib", "swap_mib", "tmp_mib", "resources", "boot_id", "slots", "server", "peer_address", "version", "gpus", "cgroups", "topology", "disks", "can_set_gpu_mode", "has_mps", "keeps_leases", "runs_commands", "copies_files", "makes_checkpoints")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    CPU_FACTOR_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    CORES_FIELD_NUMBER: _ClassVar[int]
    SOCKETS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    SWAP_MIB_FIELD_NUMBER: _ClassVar[int]
    TMP_MIB_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    PEER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    CGROUPS_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_FIELD_NUMBER: _ClassVar[int]
    DISKS_FIELD_NUMBER: _ClassVar[int]
    CAN_SET_GPU_MODE_FIELD_NUMBER: _ClassVar[int]
    HAS_MPS_FIELD_NUMBER: _ClassVar[int]
    KEEPS_LEASES_FIELD_NUMBER: _ClassVar[int]
    RUNS_COMMANDS_FIELD_NUMBER: _ClassVar[int]
    COPIES_FILES_FIELD_NUMBER: _ClassVar[int]
    MAKES_CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    model: str
    cpu_factor: float
    cpus: int
    cores: int
    sockets: int
    memory_mib: int
    swap_mib: int
    tmp_mib: int
    resources: _containers.RepeatedScalarFieldContainer[str]
    boot_id: str
    slots: int
    server: bool
    peer_address: str
    version: str
    gpus: _containers.RepeatedCompositeFieldContainer[Gpu]
    cgroups: bool
    topology: str
    disks: int
    can_set_gpu_mode: bool
    has_mps: bool
    keeps_leases: bool
    runs_commands: bool
    copies_files: bool
    makes_checkpoints: bool
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., model: _Optional[str] = ..., cpu_factor: _Optional[float] = ..., cpus: _Optional[int] = ..., cores: _Optional[int] = ..., sockets: _Optional[int] = ..., memory_mib: _Optional[int] = ..., swap_mib: _Optional[int] = ..., tmp_mib: _Optional[int] = ..., resources: _Optional[_Iterable[str]] = ..., boot_id: _Optional[str] = ..., slots: _Optional[int] = ..., server: _Optional[bool] = ..., peer_address: _Optional[str] = ..., version: _Optional[str] = ..., gpus: _Optional[_Iterable[_Union[Gpu, _Mapping]]] = ..., cgroups: _Optional[bool] = ..., topology: _Optional[str] = ..., disks: _Optional[int] = ..., can_set_gpu_mode: _Optional[bool] = ..., has_mps: _Optional[bool] = ..., keeps_leases: _Optional[bool] = ..., runs_commands: _Optional[bool] = ..., copies_files: _Optional[bool] = ..., makes_checkpoints: _Optional[bool] = ...) -> None: ...

class HostRecord(_message.Message):
    __slots__ = ("facts", "load", "status", "slots_max", "njobs", "run", "ssusp", "ususp", "rsv", "memory_reserved_mib", "last_seen", "comment", "gpu_use", "per_user", "dispatch_window", "thresholds", "revoked_at", "is_exceptional", "bound_cpus", "lock_ids", "migration_s", "checks")
    FACTS_FIELD_NUMBER: _ClassVar[int]
    LOAD_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    SLOTS_MAX_FIELD_NUMBER: _ClassVar[int]
    NJOBS_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    SSUSP_FIELD_NUMBER: _ClassVar[int]
    USUSP_FIELD_NUMBER: _ClassVar[int]
    RSV_FIELD_NUMBER: _ClassVar[int]
    MEMORY_RESERVED_MIB_FIELD_NUMBER: _ClassVar[int]
    LAST_SEEN_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    GPU_USE_FIELD_NUMBER: _ClassVar[int]
    PER_USER_FIELD_NUMBER: _ClassVar[int]
    DISPATCH_WINDOW_FIELD_NUMBER: _ClassVar[int]
    THRESHOLDS_FIELD_NUMBER: _ClassVar[int]
    REVOKED_AT_FIELD_NUMBER: _ClassVar[int]
    IS_EXCEPTIONAL_FIELD_NUMBER: _ClassVar[int]
    BOUND_CPUS_FIELD_NUMBER: _ClassVar[int]
    LOCK_IDS_FIELD_NUMBER: _ClassVar[int]
    MIGRATION_S_FIELD_NUMBER: _ClassVar[int]
    CHECKS_FIELD_NUMBER: _ClassVar[int]
    facts: HostFacts
    load: Load
    status: str
    slots_max: int
    njobs: int
    run: int
    ssusp: int
    ususp: int
    rsv: int
    memory_reserved_mib: int
    last_seen: float
    comment: str
    gpu_use: _containers.RepeatedCompositeFieldContainer[GpuUse]
    per_user: int
    dispatch_window: str
    thresholds: _containers.RepeatedCompositeFieldContainer[ThresholdRecord]
    revoked_at: float
    is_exceptional: bool
    bound_cpus: _containers.RepeatedScalarFieldContainer[int]
    lock_ids: _containers.RepeatedCompositeFieldContainer[LockIdRecord]
    migration_s: float
    checks: _containers.RepeatedCompositeFieldContainer[CheckRecord]
    def __init__(self, facts: _Optional[_Union[HostFacts, _Mapping]] = ..., load: _Optional[_Union[Load, _Mapping]] = ..., status: _Optional[str] = ..., slots_max: _Optional[int] = ..., njobs: _Optional[int] = ..., run: _Optional[int] = ..., ssusp: _Optional[int] = ..., ususp: _Optional[int] = ..., rsv: _Optional[int] = ..., memory_reserved_mib: _Optional[int] = ..., last_seen: _Optional[float] = ..., comment: _Optional[str] = ..., gpu_use: _Optional[_Iterable[_Union[GpuUse, _Mapping]]] = ..., per_user: _Optional[int] = ..., dispatch_window: _Optional[str] = ..., thresholds: _Optional[_Iterable[_Union[ThresholdRecord, _Mapping]]] = ..., revoked_at: _Optional[float] = ..., is_exceptional: _Optional[bool] = ..., bound_cpus: _Optional[_Iterable[int]] = ..., lock_ids: _Optional[_Iterable[_Union[LockIdRecord, _Mapping]]] = ..., migration_s: _Optional[float] = ..., checks: _Optional[_Iterable[_Union[CheckRecord, _Mapping]]] = ...) -> None: ...

class LockIdRecord(_message.Message):
    __slots__ = ("id", "by", "time", "comment")
    ID_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    id: str
    by: str
    time: float
    comment: str
    def __init__(self, id: _Optional[str] = ..., by: _Optional[str] = ..., time: _Optional[float] = ..., comment: _Optional[str] = ...) -> None: ...

class CheckRecord(_message.Message):
    __slots__ = ("command", "time", "verdict", "text")
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    command: str
    time: float
    verdict: int
    text: str
    def __init__(self, command: _Optional[str] = ..., time: _Optional[float] = ..., verdict: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class ThresholdRecord(_message.Message):
    __slots__ = ("index", "sched", "stop")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    SCHED_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    index: str
    sched: float
    stop: float
    def __init__(self, index: _Optional[str] = ..., sched: _Optional[float] = ..., stop: _Optional[float] = ...) -> None: ...

class GpuUse(_message.Message):
    __slots__ = ("index", "njobs", "run", "susp", "memory_reserved_mib", "exclusive", "run_jobs", "susp_jobs")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    NJOBS_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    SUSP_FIELD_NUMBER: _ClassVar[int]
    MEMORY_RESERVED_MIB_FIELD_NUMBER: _ClassVar[int]
    EXCLUSIVE_FIELD_NUMBER: _ClassVar[int]
    RUN_JOBS_FIELD_NUMBER: _ClassVar[int]
    SUSP_JOBS_FIELD_NUMBER: _ClassVar[int]
    index: int
    njobs: int
    run: int
    susp: int
    memory_reserved_mib: int
    exclusive: bool
    run_jobs: _containers.RepeatedScalarFieldContainer[str]
    susp_jobs: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, index: _Optional[int] = ..., njobs: _Optional[int] = ..., run: _Optional[int] = ..., susp: _Optional[int] = ..., memory_reserved_mib: _Optional[int] = ..., exclusive: _Optional[bool] = ..., run_jobs: _Optional[_Iterable[str]] = ..., susp_jobs: _Optional[_Iterable[str]] = ...) -> None: ...

class HostsPage(_message.Message):
    __slots__ = ("hosts", "missing")
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    hosts: _containers.RepeatedCompositeFieldContainer[HostRecord]
    missing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, hosts: _Optional[_Iterable[_Union[HostRecord, _Mapping]]] = ..., missing: _Optional[_Iterable[str]] = ...) -> None: ...

class QueuesRequest(_message.Message):
    __slots__ = ("names", "user", "host", "allocated")
    NAMES_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    user: str
    host: str
    allocated: bool
    def __init__(self, names: _Optional[_Iterable[str]] = ..., user: _Optional[str] = ..., host: _Optional[str] = ..., allocated: _Optional[bool] = ...) -> None: ...

class QueueRecord(_message.Message):
    __slots__ = ("name", "priority", "description", "open", "active", "njobs", "pend", "run", "ssusp", "ususp", "rsv", "is_default", "parameters", "max", "per_user", "per_host", "per_processor", "comment", "status", "thresholds", "default_limits", "shares", "share_tree", "accept_interval_s", "migration_s", "absolute")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class DefaultLimitsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    NJOBS_FIELD_NUMBER: _ClassVar[int]
    PEND_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    SSUSP_FIELD_NUMBER: _ClassVar[int]
    USUSP_FIELD_NUMBER: _ClassVar[int]
    RSV_FIELD_NUMBER: _ClassVar[int]
    IS_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    PER_USER_FIELD_NUMBER: _ClassVar[int]
    PER_HOST_FIELD_NUMBER: _ClassVar[int]
    PER_PROCESSOR_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    THRESHOLDS_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_LIMITS_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    SHARE_TREE_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_INTERVAL_S_FIELD_NUMBER: _ClassVar[int]
    MIGRATION_S_FIELD_NUMBER: _ClassVar[int]
    ABSOLUTE_FIELD_NUMBER: _ClassVar[int]
    name: str
    priority: int
    description: str
    open: bool
    active: bool
    njobs: int
    pend: int
    run: int
    ssusp: int
    ususp: int
    rsv: int
    is_default: bool
    parameters: _containers.ScalarMap[str, str]
    max: int
    per_user: int
    per_host: int
    per_processor: float
    comment: str
    status: str
    thresholds: _containers.RepeatedCompositeFieldContainer[ThresholdRecord]
    default_limits: _containers.ScalarMap[str, str]
    shares: _containers.RepeatedCompositeFieldContainer[GroupShare]
    share_tree: _containers.RepeatedCompositeFieldContainer[ShareRecord]
    accept_interval_s: float
    migration_s: float
    absolute: _containers.RepeatedCompositeFieldContainer[FactorRecord]
    def __init__(self, name: _Optional[str] = ..., priority: _Optional[int] = ..., description: _Optional[str] = ..., open: _Optional[bool] = ..., active: _Optional[bool] = ..., njobs: _Optional[int] = ..., pend: _Optional[int] = ..., run: _Optional[int] = ..., ssusp: _Optional[int] = ..., ususp: _Optional[int] = ..., rsv: _Optional[int] = ..., is_default: _Optional[bool] = ..., parameters: _Optional[_Mapping[str, str]] = ..., max: _Optional[int] = ..., per_user: _Optional[int] = ..., per_host: _Optional[int] = ..., per_processor: _Optional[float] = ..., comment: _Optional[str] = ..., status: _Optional[str] = ..., thresholds: _Optional[_Iterable[_Union[ThresholdRecord, _Mapping]]] = ..., default_limits: _Optional[_Mapping[str, str]] = ..., shares: _Optional[_Iterable[_Union[GroupShare, _Mapping]]] = ..., share_tree: _Optional[_Iterable[_Union[ShareRecord, _Mapping]]] = ..., accept_interval_s: _Optional[float] = ..., migration_s: _Optional[float] = ..., absolute: _Optional[_Iterable[_Union[FactorRecord, _Mapping]]] = ...) -> None: ...

class FactorRecord(_message.Message):
    __slots__ = ("name", "weight", "limit", "grace_s")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    GRACE_S_FIELD_NUMBER: _ClassVar[int]
    name: str
    weight: float
    limit: float
    grace_s: float
    def __init__(self, name: _Optional[str] = ..., weight: _Optional[float] = ..., limit: _Optional[float] = ..., grace_s: _Optional[float] = ...) -> None: ...

class ShareRecord(_message.Message):
    __slots__ = ("path", "name", "shares", "priority", "started", "reserved", "cpu_s", "run_s", "gpu_run_s", "is_group")
    PATH_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    RESERVED_FIELD_NUMBER: _ClassVar[int]
    CPU_S_FIELD_NUMBER: _ClassVar[int]
    RUN_S_FIELD_NUMBER: _ClassVar[int]
    GPU_RUN_S_FIELD_NUMBER: _ClassVar[int]
    IS_GROUP_FIELD_NUMBER: _ClassVar[int]
    path: str
    name: str
    shares: int
    priority: float
    started: int
    reserved: int
    cpu_s: float
    run_s: float
    gpu_run_s: float
    is_group: bool
    def __init__(self, path: _Optional[str] = ..., name: _Optional[str] = ..., shares: _Optional[int] = ..., priority: _Optional[float] = ..., started: _Optional[int] = ..., reserved: _Optional[int] = ..., cpu_s: _Optional[float] = ..., run_s: _Optional[float] = ..., gpu_run_s: _Optional[float] = ..., is_group: _Optional[bool] = ...) -> None: ...

class QueuesReply(_message.Message):
    __slots__ = ("queues", "missing", "host_is_unknown")
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    HOST_IS_UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedCompositeFieldContainer[QueueRecord]
    missing: _containers.RepeatedScalarFieldContainer[str]
    host_is_unknown: bool
    def __init__(self, queues: _Optional[_Iterable[_Union[QueueRecord, _Mapping]]] = ..., missing: _Optional[_Iterable[str]] = ..., host_is_unknown: _Optional[bool] = ...) -> None: ...

class UsersRequest(_message.Message):
    __slots__ = ("names", "everybody", "accounts", "allocated")
    NAMES_FIELD_NUMBER: _ClassVar[int]
    EVERYBODY_FIELD_NUMBER: _ClassVar[int]
    ACCOUNTS_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    everybody: bool
    accounts: _containers.RepeatedScalarFieldContainer[str]
    allocated: bool
    def __init__(self, names: _Optional[_Iterable[str]] = ..., everybody: _Optional[bool] = ..., accounts: _Optional[_Iterable[str]] = ..., allocated: _Optional[bool] = ...) -> None: ...

class UserRecord(_message.Message):
    __slots__ = ("name", "is_group", "per_processor", "max", "njobs", "pend", "run", "ssusp", "ususp", "rsv", "pend_max", "pending_jobs", "pending_jobs_max")
    NAME_FIELD_NUMBER: _ClassVar[int]
    IS_GROUP_FIELD_NUMBER: _ClassVar[int]
    PER_PROCESSOR_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    NJOBS_FIELD_NUMBER: _ClassVar[int]
    PEND_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    SSUSP_FIELD_NUMBER: _ClassVar[int]
    USUSP_FIELD_NUMBER: _ClassVar[int]
    RSV_FIELD_NUMBER: _ClassVar[int]
    PEND_MAX_FIELD_NUMBER: _ClassVar[int]
    PENDING_JOBS_FIELD_NUMBER: _ClassVar[int]
    PENDING_JOBS_MAX_FIELD_NUMBER: _ClassVar[int]
    name: str
    is_group: bool
    per_processor: float
    max: int
    njobs: int
    pend: int
    run: int
    ssusp: int
    ususp: int
    rsv: int
    pend_max: int
    pending_jobs: int
    pending_jobs_max: int
    def __init__(self, name: _Optional[str] = ..., is_group: _Optional[bool] = ..., per_processor: _Optional[float] = ..., max: _Optional[int] = ..., njobs: _Optional[int] = ..., pend: _Optional[int] = ..., run: _Optional[int] = ..., ssusp: _Optional[int] = ..., ususp: _Optional[int] = ..., rsv: _Optional[int] = ..., pend_max: _Optional[int] = ..., pending_jobs: _Optional[int] = ..., pending_jobs_max: _Optional[int] = ...) -> None: ...

class UsersReply(_message.Message):
    __slots__ = ("users", "missing")
    USERS_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    users: _containers.RepeatedCompositeFieldContainer[UserRecord]
    missing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, users: _Optional[_Iterable[_Union[UserRecord, _Mapping]]] = ..., missing: _Optional[_Iterable[str]] = ...) -> None: ...

class GroupsRequest(_message.Message):
    __slots__ = ("names", "hosts", "flat", "units_only")
    NAMES_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    FLAT_FIELD_NUMBER: _ClassVar[int]
    UNITS_ONLY_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    hosts: bool
    flat: bool
    units_only: bool
    def __init__(self, names: _Optional[_Iterable[str]] = ..., hosts: _Optional[bool] = ..., flat: _Optional[bool] = ..., units_only: _Optional[bool] = ...) -> None: ...

class GroupRecord(_message.Message):
    __slots__ = ("name", "members", "shares", "administrators", "type")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    ADMINISTRATORS_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    members: _containers.RepeatedScalarFieldContainer[str]
    shares: _containers.RepeatedCompositeFieldContainer[GroupShare]
    administrators: _containers.RepeatedScalarFieldContainer[str]
    type: str
    def __init__(self, name: _Optional[str] = ..., members: _Optional[_Iterable[str]] = ..., shares: _Optional[_Iterable[_Union[GroupShare, _Mapping]]] = ..., administrators: _Optional[_Iterable[str]] = ..., type: _Optional[str] = ...) -> None: ...

class GroupShare(_message.Message):
    __slots__ = ("name", "shares")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    name: str
    shares: int
    def __init__(self, name: _Optional[str] = ..., shares: _Optional[int] = ...) -> None: ...

class GroupsReply(_message.Message):
    __slots__ = ("groups", "missing")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[GroupRecord]
    missing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, groups: _Optional[_Iterable[_Union[GroupRecord, _Mapping]]] = ..., missing: _Optional[_Iterable[str]] = ...) -> None: ...

class ParametersRequest(_message.Message):
    __slots__ = ("installation",)
    INSTALLATION_FIELD_NUMBER: _ClassVar[int]
    installation: bool
    def __init__(self, installation: _Optional[bool] = ...) -> None: ...

class ParameterRecord(_message.Message):
    __slots__ = ("name", "value", "about", "is_set")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    ABOUT_FIELD_NUMBER: _ClassVar[int]
    IS_SET_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    about: str
    is_set: bool
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ..., about: _Optional[str] = ..., is_set: _Optional[bool] = ...) -> None: ...

class ParametersReply(_message.Message):
    __slots__ = ("parameters",)
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    parameters: _containers.RepeatedCompositeFieldContainer[ParameterRecord]
    def __init__(self, parameters: _Optional[_Iterable[_Union[ParameterRecord, _Mapping]]] = ...) -> None: ...

class LimitsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LimitUsage(_message.Message):
    __slots__ = ("users", "queues", "hosts", "projects", "used", "apps")
    class UsedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    USERS_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    PROJECTS_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    APPS_FIELD_NUMBER: _ClassVar[int]
    users: str
    queues: str
    hosts: str
    projects: str
    used: _containers.ScalarMap[str, str]
    apps: str
    def __init__(self, users: _Optional[str] = ..., queues: _Optional[str] = ..., hosts: _Optional[str] = ..., projects: _Optional[str] = ..., used: _Optional[_Mapping[str, str]] = ..., apps: _Optional[str] = ...) -> None: ...

class LimitRecord(_message.Message):
    __slots__ = ("name", "configured", "usage")
    class ConfiguredEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONFIGURED_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    name: str
    configured: _containers.ScalarMap[str, str]
    usage: _containers.RepeatedCompositeFieldContainer[LimitUsage]
    def __init__(self, name: _Optional[str] = ..., configured: _Optional[_Mapping[str, str]] = ..., usage: _Optional[_Iterable[_Union[LimitUsage, _Mapping]]] = ...) -> None: ...

class BudgetRecord(_message.Message):
    __slots__ = ("name", "consumer", "begin", "end", "resource", "used", "reserved", "bound", "is_warned")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    RESERVED_FIELD_NUMBER: _ClassVar[int]
    BOUND_FIELD_NUMBER: _ClassVar[int]
    IS_WARNED_FIELD_NUMBER: _ClassVar[int]
    name: str
    consumer: str
    begin: float
    end: float
    resource: str
    used: float
    reserved: float
    bound: float
    is_warned: bool
    def __init__(self, name: _Optional[str] = ..., consumer: _Optional[str] = ..., begin: _Optional[float] = ..., end: _Optional[float] = ..., resource: _Optional[str] = ..., used: _Optional[float] = ..., reserved: _Optional[float] = ..., bound: _Optional[float] = ..., is_warned: _Optional[bool] = ...) -> None: ...

class LimitsReply(_message.Message):
    __slots__ = ("limits", "budgets")
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    BUDGETS_FIELD_NUMBER: _ClassVar[int]
    limits: _containers.RepeatedCompositeFieldContainer[LimitRecord]
    budgets: _containers.RepeatedCompositeFieldContainer[BudgetRecord]
    def __init__(self, limits: _Optional[_Iterable[_Union[LimitRecord, _Mapping]]] = ..., budgets: _Optional[_Iterable[_Union[BudgetRecord, _Mapping]]] = ...) -> None: ...

class PoolsRequest(_message.Message):
    __slots__ = ("service_classes", "hosts", "queue")
    SERVICE_CLASSES_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    service_classes: bool
    hosts: bool
    queue: str
    def __init__(self, service_classes: _Optional[bool] = ..., hosts: _Optional[bool] = ..., queue: _Optional[str] = ...) -> None: ...

class PoolAmount(_message.Message):
    __slots__ = ("resource", "total", "free", "guaranteed", "deserved", "largest", "own", "used", "borrowed", "overcommitted")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    GUARANTEED_FIELD_NUMBER: _ClassVar[int]
    DESERVED_FIELD_NUMBER: _ClassVar[int]
    LARGEST_FIELD_NUMBER: _ClassVar[int]
    OWN_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    BORROWED_FIELD_NUMBER: _ClassVar[int]
    OVERCOMMITTED_FIELD_NUMBER: _ClassVar[int]
    resource: str
    total: float
    free: float
    guaranteed: float
    deserved: float
    largest: float
    own: float
    used: float
    borrowed: float
    overcommitted: bool
    def __init__(self, resource: _Optional[str] = ..., total: _Optional[float] = ..., free: _Optional[float] = ..., guaranteed: _Optional[float] = ..., deserved: _Optional[float] = ..., largest: _Optional[float] = ..., own: _Optional[float] = ..., used: _Optional[float] = ..., borrowed: _Optional[float] = ..., overcommitted: _Optional[bool] = ...) -> None: ...

class PoolRecord(_message.Message):
    __slots__ = ("name", "users", "queues", "hosts", "lends", "amounts", "applications", "borrowers", "service_class", "takes_queue", "lends_to_queue")
    NAME_FIELD_NUMBER: _ClassVar[int]
    USERS_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    LENDS_FIELD_NUMBER: _ClassVar[int]
    AMOUNTS_FIELD_NUMBER: _ClassVar[int]
    APPLICATIONS_FIELD_NUMBER: _ClassVar[int]
    BORROWERS_FIELD_NUMBER: _ClassVar[int]
    SERVICE_CLASS_FIELD_NUMBER: _ClassVar[int]
    TAKES_QUEUE_FIELD_NUMBER: _ClassVar[int]
    LENDS_TO_QUEUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    users: str
    queues: str
    hosts: str
    lends: bool
    amounts: _containers.RepeatedCompositeFieldContainer[PoolAmount]
    applications: str
    borrowers: str
    service_class: str
    takes_queue: bool
    lends_to_queue: bool
    def __init__(self, name: _Optional[str] = ..., users: _Optional[str] = ..., queues: _Optional[str] = ..., hosts: _Optional[str] = ..., lends: _Optional[bool] = ..., amounts: _Optional[_Iterable[_Union[PoolAmount, _Mapping]]] = ..., applications: _Optional[str] = ..., borrowers: _Optional[str] = ..., service_class: _Optional[str] = ..., takes_queue: _Optional[bool] = ..., lends_to_queue: _Optional[bool] = ...) -> None: ...

class PoolHosts(_message.Message):
    __slots__ = ("hosts", "names")
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    hosts: str
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, hosts: _Optional[str] = ..., names: _Optional[_Iterable[str]] = ...) -> None: ...

class StateCounts(_message.Message):
    __slots__ = ("pend", "run", "ssusp", "ususp", "finish", "reserved")
    PEND_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    SSUSP_FIELD_NUMBER: _ClassVar[int]
    USUSP_FIELD_NUMBER: _ClassVar[int]
    FINISH_FIELD_NUMBER: _ClassVar[int]
    RESERVED_FIELD_NUMBER: _ClassVar[int]
    pend: int
    run: int
    ssusp: int
    ususp: int
    finish: int
    reserved: int
    def __init__(self, pend: _Optional[int] = ..., run: _Optional[int] = ..., ssusp: _Optional[int] = ..., ususp: _Optional[int] = ..., finish: _Optional[int] = ..., reserved: _Optional[int] = ...) -> None: ...

class ServiceClassRecord(_message.Message):
    __slots__ = ("name", "description", "access", "attaches", "jobs", "slots")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    ACCESS_FIELD_NUMBER: _ClassVar[int]
    ATTACHES_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    access: str
    attaches: bool
    jobs: StateCounts
    slots: StateCounts
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., access: _Optional[str] = ..., attaches: _Optional[bool] = ..., jobs: _Optional[_Union[StateCounts, _Mapping]] = ..., slots: _Optional[_Union[StateCounts, _Mapping]] = ...) -> None: ...

class PoolsReply(_message.Message):
    __slots__ = ("pools", "service_classes", "host_lists")
    POOLS_FIELD_NUMBER: _ClassVar[int]
    SERVICE_CLASSES_FIELD_NUMBER: _ClassVar[int]
    HOST_LISTS_FIELD_NUMBER: _ClassVar[int]
    pools: _containers.RepeatedCompositeFieldContainer[PoolRecord]
    service_classes: _containers.RepeatedCompositeFieldContainer[ServiceClassRecord]
    host_lists: _containers.RepeatedCompositeFieldContainer[PoolHosts]
    def __init__(self, pools: _Optional[_Iterable[_Union[PoolRecord, _Mapping]]] = ..., service_classes: _Optional[_Iterable[_Union[ServiceClassRecord, _Mapping]]] = ..., host_lists: _Optional[_Iterable[_Union[PoolHosts, _Mapping]]] = ...) -> None: ...

class ResourcesRequest(_message.Message):
    __slots__ = ("definitions",)
    DEFINITIONS_FIELD_NUMBER: _ClassVar[int]
    definitions: bool
    def __init__(self, definitions: _Optional[bool] = ...) -> None: ...

class ResourcesReply(_message.Message):
    __slots__ = ("resources", "definitions", "types", "models")
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    DEFINITIONS_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    resources: _containers.RepeatedCompositeFieldContainer[ResourceRecord]
    definitions: _containers.RepeatedCompositeFieldContainer[ResourceDefinition]
    types: _containers.RepeatedScalarFieldContainer[str]
    models: _containers.RepeatedCompositeFieldContainer[ModelRecord]
    def __init__(self, resources: _Optional[_Iterable[_Union[ResourceRecord, _Mapping]]] = ..., definitions: _Optional[_Iterable[_Union[ResourceDefinition, _Mapping]]] = ..., types: _Optional[_Iterable[str]] = ..., models: _Optional[_Iterable[_Union[ModelRecord, _Mapping]]] = ...) -> None: ...

class ResourceDefinition(_message.Message):
    __slots__ = ("name", "kind", "increasing", "description", "interval_s", "consumable")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    INCREASING_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_S_FIELD_NUMBER: _ClassVar[int]
    CONSUMABLE_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    increasing: bool
    description: str
    interval_s: float
    consumable: bool
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., increasing: _Optional[bool] = ..., description: _Optional[str] = ..., interval_s: _Optional[float] = ..., consumable: _Optional[bool] = ...) -> None: ...

class ModelRecord(_message.Message):
    __slots__ = ("name", "cpu_factor", "type")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CPU_FACTOR_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    cpu_factor: float
    type: str
    def __init__(self, name: _Optional[str] = ..., cpu_factor: _Optional[float] = ..., type: _Optional[str] = ...) -> None: ...

class ResourceRecord(_message.Message):
    __slots__ = ("name", "dynamic", "instances")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DYNAMIC_FIELD_NUMBER: _ClassVar[int]
    INSTANCES_FIELD_NUMBER: _ClassVar[int]
    name: str
    dynamic: bool
    instances: _containers.RepeatedCompositeFieldContainer[ResourceInstance]
    def __init__(self, name: _Optional[str] = ..., dynamic: _Optional[bool] = ..., instances: _Optional[_Iterable[_Union[ResourceInstance, _Mapping]]] = ...) -> None: ...

class ResourceInstance(_message.Message):
    __slots__ = ("hosts", "shared", "total", "reserved", "value")
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    RESERVED_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    hosts: _containers.RepeatedScalarFieldContainer[str]
    shared: bool
    total: float
    reserved: float
    value: str
    def __init__(self, hosts: _Optional[_Iterable[str]] = ..., shared: _Optional[bool] = ..., total: _Optional[float] = ..., reserved: _Optional[float] = ..., value: _Optional[str] = ...) -> None: ...

class ConfigureRequest(_message.Message):
    __slots__ = ("apply", "comment")
    APPLY_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    apply: bool
    comment: str
    def __init__(self, apply: _Optional[bool] = ..., comment: _Optional[str] = ...) -> None: ...

class ConfigComplaint(_message.Message):
    __slots__ = ("file", "line", "text", "fatal")
    FILE_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    FATAL_FIELD_NUMBER: _ClassVar[int]
    file: str
    line: int
    text: str
    fatal: bool
    def __init__(self, file: _Optional[str] = ..., line: _Optional[int] = ..., text: _Optional[str] = ..., fatal: _Optional[bool] = ...) -> None: ...

class ConfigEntry(_message.Message):
    __slots__ = ("file", "line", "name", "fate", "note")
    FILE_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    FATE_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    file: str
    line: int
    name: str
    fate: str
    note: str
    def __init__(self, file: _Optional[str] = ..., line: _Optional[int] = ..., name: _Optional[str] = ..., fate: _Optional[str] = ..., note: _Optional[str] = ...) -> None: ...

class ConfigureReply(_message.Message):
    __slots__ = ("applied", "files", "complaints", "entries")
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    COMPLAINTS_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    applied: bool
    files: _containers.RepeatedScalarFieldContainer[str]
    complaints: _containers.RepeatedCompositeFieldContainer[ConfigComplaint]
    entries: _containers.RepeatedCompositeFieldContainer[ConfigEntry]
    def __init__(self, applied: _Optional[bool] = ..., files: _Optional[_Iterable[str]] = ..., complaints: _Optional[_Iterable[_Union[ConfigComplaint, _Mapping]]] = ..., entries: _Optional[_Iterable[_Union[ConfigEntry, _Mapping]]] = ...) -> None: ...

class ControlRequest(_message.Message):
    __slots__ = ("action", "names", "comment", "all", "notice_s", "lock_s", "lock_ids", "group")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    ALL_FIELD_NUMBER: _ClassVar[int]
    NOTICE_S_FIELD_NUMBER: _ClassVar[int]
    LOCK_S_FIELD_NUMBER: _ClassVar[int]
    LOCK_IDS_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    action: ControlAction
    names: _containers.RepeatedScalarFieldContainer[str]
    comment: str
    all: bool
    notice_s: float
    lock_s: float
    lock_ids: _containers.RepeatedScalarFieldContainer[str]
    group: str
    def __init__(self, action: _Optional[_Union[ControlAction, str]] = ..., names: _Optional[_Iterable[str]] = ..., comment: _Optional[str] = ..., all: _Optional[bool] = ..., notice_s: _Optional[float] = ..., lock_s: _Optional[float] = ..., lock_ids: _Optional[_Iterable[str]] = ..., group: _Optional[str] = ...) -> None: ...

class ControlResult(_message.Message):
    __slots__ = ("name", "error", "note")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    name: str
    error: str
    note: str
    def __init__(self, name: _Optional[str] = ..., error: _Optional[str] = ..., note: _Optional[str] = ...) -> None: ...

class ControlReply(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[ControlResult]
    def __init__(self, results: _Optional[_Iterable[_Union[ControlResult, _Mapping]]] = ...) -> None: ...

class ControlHistoryRequest(_message.Message):
    __slots__ = ("kinds", "names", "first", "last")
    KINDS_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    kinds: _containers.RepeatedScalarFieldContainer[str]
    names: _containers.RepeatedScalarFieldContainer[str]
    first: float
    last: float
    def __init__(self, kinds: _Optional[_Iterable[str]] = ..., names: _Optional[_Iterable[str]] = ..., first: _Optional[float] = ..., last: _Optional[float] = ...) -> None: ...

class ControlRecord(_message.Message):
    __slots__ = ("time", "kind", "name", "action", "by", "comment", "cluster", "hosts", "queues", "lock_id", "group")
    TIME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    LOCK_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    time: float
    kind: str
    name: str
    action: str
    by: str
    comment: str
    cluster: str
    hosts: int
    queues: int
    lock_id: str
    group: str
    def __init__(self, time: _Optional[float] = ..., kind: _Optional[str] = ..., name: _Optional[str] = ..., action: _Optional[str] = ..., by: _Optional[str] = ..., comment: _Optional[str] = ..., cluster: _Optional[str] = ..., hosts: _Optional[int] = ..., queues: _Optional[int] = ..., lock_id: _Optional[str] = ..., group: _Optional[str] = ...) -> None: ...

class ControlHistoryPage(_message.Message):
    __slots__ = ("records",)
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    records: _containers.RepeatedCompositeFieldContainer[ControlRecord]
    def __init__(self, records: _Optional[_Iterable[_Union[ControlRecord, _Mapping]]] = ...) -> None: ...

class PerformanceRequest(_message.Message):
    __slots__ = ("action", "period_s")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    PERIOD_S_FIELD_NUMBER: _ClassVar[int]
    action: PerformanceAction
    period_s: int
    def __init__(self, action: _Optional[_Union[PerformanceAction, str]] = ..., period_s: _Optional[int] = ...) -> None: ...

class PerformanceMetric(_message.Message):
    __slots__ = ("name", "last", "max", "min", "mean", "total")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    MIN_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    name: str
    last: float
    max: float
    min: float
    mean: float
    total: float
    def __init__(self, name: _Optional[str] = ..., last: _Optional[float] = ..., max: _Optional[float] = ..., min: _Optional[float] = ..., mean: _Optional[float] = ..., total: _Optional[float] = ...) -> None: ...

class PerformanceReply(_message.Message):
    __slots__ = ("is_on", "period_s", "started", "sampled", "counts", "scheduler", "files_used", "files_max")
    IS_ON_FIELD_NUMBER: _ClassVar[int]
    PERIOD_S_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    SAMPLED_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULER_FIELD_NUMBER: _ClassVar[int]
    FILES_USED_FIELD_NUMBER: _ClassVar[int]
    FILES_MAX_FIELD_NUMBER: _ClassVar[int]
    is_on: bool
    period_s: int
    started: float
    sampled: float
    counts: _containers.RepeatedCompositeFieldContainer[PerformanceMetric]
    scheduler: _containers.RepeatedCompositeFieldContainer[PerformanceMetric]
    files_used: int
    files_max: int
    def __init__(self, is_on: _Optional[bool] = ..., period_s: _Optional[int] = ..., started: _Optional[float] = ..., sampled: _Optional[float] = ..., counts: _Optional[_Iterable[_Union[PerformanceMetric, _Mapping]]] = ..., scheduler: _Optional[_Iterable[_Union[PerformanceMetric, _Mapping]]] = ..., files_used: _Optional[int] = ..., files_max: _Optional[int] = ...) -> None: ...

class DiagnoseRequest(_message.Message):
    __slots__ = ("off", "file", "seconds")
    OFF_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    off: bool
    file: str
    seconds: float
    def __init__(self, off: _Optional[bool] = ..., file: _Optional[str] = ..., seconds: _Optional[float] = ...) -> None: ...

class DiagnoseReply(_message.Message):
    __slots__ = ("path", "host")
    PATH_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    path: str
    host: str
    def __init__(self, path: _Optional[str] = ..., host: _Optional[str] = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StatusReply(_message.Message):
    __slots__ = ("pid", "started", "reconfigured", "running", "suspended", "pending", "finished", "users", "running_users", "user_groups", "problems")
    PID_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    RECONFIGURED_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    SUSPENDED_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    USERS_FIELD_NUMBER: _ClassVar[int]
    RUNNING_USERS_FIELD_NUMBER: _ClassVar[int]
    USER_GROUPS_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    pid: int
    started: float
    reconfigured: float
    running: int
    suspended: int
    pending: int
    finished: int
    users: int
    running_users: int
    user_groups: int
    problems: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, pid: _Optional[int] = ..., started: _Optional[float] = ..., reconfigured: _Optional[float] = ..., running: _Optional[int] = ..., suspended: _Optional[int] = ..., pending: _Optional[int] = ..., finished: _Optional[int] = ..., users: _Optional[int] = ..., running_users: _Optional[int] = ..., user_groups: _Optional[int] = ..., problems: _Optional[_Iterable[str]] = ...) -> None: ...

class ReserveRequest(_message.Message):
    __slots__ = ("action", "name", "holders", "for_group", "for_system", "begins_at", "ends_at", "windows", "units", "whole_hosts", "hosts", "requirement", "is_open", "description", "queues", "leaves_others", "is_forced", "fields")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    FOR_GROUP_FIELD_NUMBER: _ClassVar[int]
    FOR_SYSTEM_FIELD_NUMBER: _ClassVar[int]
    BEGINS_AT_FIELD_NUMBER: _ClassVar[int]
    ENDS_AT_FIELD_NUMBER: _ClassVar[int]
    WINDOWS_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    WHOLE_HOSTS_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    REQUIREMENT_FIELD_NUMBER: _ClassVar[int]
    IS_OPEN_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    LEAVES_OTHERS_FIELD_NUMBER: _ClassVar[int]
    IS_FORCED_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    action: ReservationAction
    name: str
    holders: _containers.RepeatedScalarFieldContainer[str]
    for_group: bool
    for_system: bool
    begins_at: float
    ends_at: float
    windows: str
    units: int
    whole_hosts: bool
    hosts: _containers.RepeatedScalarFieldContainer[str]
    requirement: str
    is_open: bool
    description: str
    queues: _containers.RepeatedScalarFieldContainer[str]
    leaves_others: bool
    is_forced: bool
    fields: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, action: _Optional[_Union[ReservationAction, str]] = ..., name: _Optional[str] = ..., holders: _Optional[_Iterable[str]] = ..., for_group: _Optional[bool] = ..., for_system: _Optional[bool] = ..., begins_at: _Optional[float] = ..., ends_at: _Optional[float] = ..., windows: _Optional[str] = ..., units: _Optional[int] = ..., whole_hosts: _Optional[bool] = ..., hosts: _Optional[_Iterable[str]] = ..., requirement: _Optional[str] = ..., is_open: _Optional[bool] = ..., description: _Optional[str] = ..., queues: _Optional[_Iterable[str]] = ..., leaves_others: _Optional[bool] = ..., is_forced: _Optional[bool] = ..., fields: _Optional[_Iterable[str]] = ...) -> None: ...

class ReserveReply(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ReservationsRequest(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class ReservationHost(_message.Message):
    __slots__ = ("host", "slots", "used", "slots_max")
    HOST_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    SLOTS_MAX_FIELD_NUMBER: _ClassVar[int]
    host: str
    slots: int
    used: int
    slots_max: int
    def __init__(self, host: _Optional[str] = ..., slots: _Optional[int] = ..., used: _Optional[int] = ..., slots_max: _Optional[int] = ...) -> None: ...

class ReservationRecord(_message.Message):
    __slots__ = ("name", "kind", "holders", "hosts", "begins_at", "ends_at", "windows", "is_active", "is_open", "whole_hosts", "queues", "description", "creator", "leaves_others", "waiting", "running", "stretches")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    BEGINS_AT_FIELD_NUMBER: _ClassVar[int]
    ENDS_AT_FIELD_NUMBER: _ClassVar[int]
    WINDOWS_FIELD_NUMBER: _ClassVar[int]
    IS_ACTIVE_FIELD_NUMBER: _ClassVar[int]
    IS_OPEN_FIELD_NUMBER: _ClassVar[int]
    WHOLE_HOSTS_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    CREATOR_FIELD_NUMBER: _ClassVar[int]
    LEAVES_OTHERS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    STRETCHES_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    holders: _containers.RepeatedScalarFieldContainer[str]
    hosts: _containers.RepeatedCompositeFieldContainer[ReservationHost]
    begins_at: float
    ends_at: float
    windows: str
    is_active: bool
    is_open: bool
    whole_hosts: bool
    queues: _containers.RepeatedScalarFieldContainer[str]
    description: str
    creator: str
    leaves_others: bool
    waiting: _containers.RepeatedScalarFieldContainer[int]
    running: _containers.RepeatedScalarFieldContainer[int]
    stretches: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., holders: _Optional[_Iterable[str]] = ..., hosts: _Optional[_Iterable[_Union[ReservationHost, _Mapping]]] = ..., begins_at: _Optional[float] = ..., ends_at: _Optional[float] = ..., windows: _Optional[str] = ..., is_active: _Optional[bool] = ..., is_open: _Optional[bool] = ..., whole_hosts: _Optional[bool] = ..., queues: _Optional[_Iterable[str]] = ..., description: _Optional[str] = ..., creator: _Optional[str] = ..., leaves_others: _Optional[bool] = ..., waiting: _Optional[_Iterable[int]] = ..., running: _Optional[_Iterable[int]] = ..., stretches: _Optional[_Iterable[float]] = ...) -> None: ...

class ReservationRule(_message.Message):
    __slots__ = ("name", "users", "hosts", "windows")
    NAME_FIELD_NUMBER: _ClassVar[int]
    USERS_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    WINDOWS_FIELD_NUMBER: _ClassVar[int]
    name: str
    users: str
    hosts: str
    windows: str
    def __init__(self, name: _Optional[str] = ..., users: _Optional[str] = ..., hosts: _Optional[str] = ..., windows: _Optional[str] = ...) -> None: ...

class ReservationsReply(_message.Message):
    __slots__ = ("reservations", "missing", "rules")
    RESERVATIONS_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    reservations: _containers.RepeatedCompositeFieldContainer[ReservationRecord]
    missing: _containers.RepeatedScalarFieldContainer[str]
    rules: _containers.RepeatedCompositeFieldContainer[ReservationRule]
    def __init__(self, reservations: _Optional[_Iterable[_Union[ReservationRecord, _Mapping]]] = ..., missing: _Optional[_Iterable[str]] = ..., rules: _Optional[_Iterable[_Union[ReservationRule, _Mapping]]] = ...) -> None: ...

class JobGroupRequest(_message.Message):
    __slots__ = ("action", "name", "limit")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    action: JobGroupAction
    name: str
    limit: int
    def __init__(self, action: _Optional[_Union[JobGroupAction, str]] = ..., name: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class JobGroupReply(_message.Message):
    __slots__ = ("paths",)
    PATHS_FIELD_NUMBER: _ClassVar[int]
    paths: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, paths: _Optional[_Iterable[str]] = ...) -> None: ...

class JobGroupsRequest(_message.Message):
    __slots__ = ("names", "slots")
    NAMES_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    slots: bool
    def __init__(self, names: _Optional[_Iterable[str]] = ..., slots: _Optional[bool] = ...) -> None: ...

class JobGroupRecord(_message.Message):
    __slots__ = ("path", "owner", "pend", "run", "ssusp", "ususp", "finish", "started", "limit", "reserved")
    PATH_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    PEND_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    SSUSP_FIELD_NUMBER: _ClassVar[int]
    USUSP_FIELD_NUMBER: _ClassVar[int]
    FINISH_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    RESERVED_FIELD_NUMBER: _ClassVar[int]
    path: str
    owner: str
    pend: int
    run: int
    ssusp: int
    ususp: int
    finish: int
    started: int
    limit: int
    reserved: int
    def __init__(self, path: _Optional[str] = ..., owner: _Optional[str] = ..., pend: _Optional[int] = ..., run: _Optional[int] = ..., ssusp: _Optional[int] = ..., ususp: _Optional[int] = ..., finish: _Optional[int] = ..., started: _Optional[int] = ..., limit: _Optional[int] = ..., reserved: _Optional[int] = ...) -> None: ...

class JobGroupsReply(_message.Message):
    __slots__ = ("groups", "missing")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[JobGroupRecord]
    missing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, groups: _Optional[_Iterable[_Union[JobGroupRecord, _Mapping]]] = ..., missing: _Optional[_Iterable[str]] = ...) -> None: ...

class ApplicationsRequest(_message.Message):
    __slots__ = ("names", "allocated")
    NAMES_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    allocated: bool
    def __init__(self, names: _Optional[_Iterable[str]] = ..., allocated: _Optional[bool] = ...) -> None: ...

class ApplicationParameter(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class ApplicationRecord(_message.Message):
    __slots__ = ("name", "description", "pend", "run", "ssusp", "ususp", "rsv", "is_default", "parameters", "limits", "default_limits")
    class LimitsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class DefaultLimitsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    PEND_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    SSUSP_FIELD_NUMBER: _ClassVar[int]
    USUSP_FIELD_NUMBER: _ClassVar[int]
    RSV_FIELD_NUMBER: _ClassVar[int]
    IS_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_LIMITS_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    pend: int
    run: int
    ssusp: int
    ususp: int
    rsv: int
    is_default: bool
    parameters: _containers.RepeatedCompositeFieldContainer[ApplicationParameter]
    limits: _containers.ScalarMap[str, str]
    default_limits: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., pend: _Optional[int] = ..., run: _Optional[int] = ..., ssusp: _Optional[int] = ..., ususp: _Optional[int] = ..., rsv: _Optional[int] = ..., is_default: _Optional[bool] = ..., parameters: _Optional[_Iterable[_Union[ApplicationParameter, _Mapping]]] = ..., limits: _Optional[_Mapping[str, str]] = ..., default_limits: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ApplicationsReply(_message.Message):
    __slots__ = ("applications", "missing")
    APPLICATIONS_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    applications: _containers.RepeatedCompositeFieldContainer[ApplicationRecord]
    missing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, applications: _Optional[_Iterable[_Union[ApplicationRecord, _Mapping]]] = ..., missing: _Optional[_Iterable[str]] = ...) -> None: ...

class HostPartitionsRequest(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class HostPartitionRecord(_message.Message):
    __slots__ = ("name", "hosts", "share_tree")
    NAME_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    SHARE_TREE_FIELD_NUMBER: _ClassVar[int]
    name: str
    hosts: _containers.RepeatedScalarFieldContainer[str]
    share_tree: _containers.RepeatedCompositeFieldContainer[ShareRecord]
    def __init__(self, name: _Optional[str] = ..., hosts: _Optional[_Iterable[str]] = ..., share_tree: _Optional[_Iterable[_Union[ShareRecord, _Mapping]]] = ...) -> None: ...

class HostPartitionsReply(_message.Message):
    __slots__ = ("partitions", "missing")
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[HostPartitionRecord]
    missing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, partitions: _Optional[_Iterable[_Union[HostPartitionRecord, _Mapping]]] = ..., missing: _Optional[_Iterable[str]] = ...) -> None: ...
