from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class InfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class InfoReply(_message.Message):
    __slots__ = ("cluster", "master_host", "version", "term", "conf_dir", "administrators", "default_queue")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    MASTER_HOST_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    CONF_DIR_FIELD_NUMBER: _ClassVar[int]
    ADMINISTRATORS_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_QUEUE_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    master_host: str
    version: str
    term: int
    conf_dir: str
    administrators: _containers.RepeatedScalarFieldContainer[str]
    default_queue: str
    def __init__(self, cluster: _Optional[str] = ..., master_host: _Optional[str] = ..., version: _Optional[str] = ..., term: _Optional[int] = ..., conf_dir: _Optional[str] = ..., administrators: _Optional[_Iterable[str]] = ..., default_queue: _Optional[str] = ...) -> None: ...

class HostsRequest(_message.Message):
    __slots__ = ("names", "clients_too")
    NAMES_FIELD_NUMBER: _ClassVar[int]
    CLIENTS_TOO_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    clients_too: bool
    def __init__(self, names: _Optional[_Iterable[str]] = ..., clients_too: _Optional[bool] = ...) -> None: ...

class Gpu(_message.Message):
    __slots__ = ("index", "uuid", "model", "driver", "memory_mib", "memory_used_mib", "utilisation", "memory_utilisation", "temperature_c", "ecc_errors", "numa_node", "pids", "bus_id", "status", "nvlink_peers", "power_w", "mode", "mig", "allocated_jobs")
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
    def __init__(self, index: _Optional[int] = ..., uuid: _Optional[str] = ..., model: _Optional[str] = ..., driver: _Optional[str] = ..., memory_mib: _Optional[int] = ..., memory_used_mib: _Optional[int] = ..., utilisation: _Optional[float] = ..., memory_utilisation: _Optional[float] = ..., temperature_c: _Optional[int] = ..., ecc_errors: _Optional[int] = ..., numa_node: _Optional[int] = ..., pids: _Optional[_Iterable[int]] = ..., bus_id: _Optional[str] = ..., status: _Optional[str] = ..., nvlink_peers: _Optional[_Iterable[int]] = ..., power_w: _Optional[float] = ..., mode: _Optional[str] = ..., mig: _Optional[bool] = ..., allocated_jobs: _Optional[int] = ...) -> None: ...

class Load(_message.Message):
    __slots__ = ("r15s", "r1m", "r15m", "ut", "pg", "io", "ls", "it", "tmp_mib", "swp_mib", "mem_mib", "gpus")
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
    def __init__(self, r15s: _Optional[float] = ..., r1m: _Optional[float] = ..., r15m: _Optional[float] = ..., ut: _Optional[float] = ..., pg: _Optional[float] = ..., io: _Optional[float] = ..., ls: _Optional[int] = ..., it: _Optional[int] = ..., tmp_mib: _Optional[int] = ..., swp_mib: _Optional[int] = ..., mem_mib: _Optional[int] = ..., gpus: _Optional[_Iterable[_Union[Gpu, _Mapping]]] = ...) -> None: ...

class HostFacts(_message.Message):
    __slots__ = ("name", "type", "model", "cpu_factor", "cpus", "cores", "sockets", "memory_mib", "swap_mib", "tmp_mib", "resources", "boot_id", "slots", "server", "peer_address", "version", "gpus", "cgroups")
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
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., model: _Optional[str] = ..., cpu_factor: _Optional[float] = ..., cpus: _Optional[int] = ..., cores: _Optional[int] = ..., sockets: _Optional[int] = ..., memory_mib: _Optional[int] = ..., swap_mib: _Optional[int] = ..., tmp_mib: _Optional[int] = ..., resources: _Optional[_Iterable[str]] = ..., boot_id: _Optional[str] = ..., slots: _Optional[int] = ..., server: _Optional[bool] = ..., peer_address: _Optional[str] = ..., version: _Optional[str] = ..., gpus: _Optional[_Iterable[_Union[Gpu, _Mapping]]] = ..., cgroups: _Optional[bool] = ...) -> None: ...

class HostRecord(_message.Message):
    __slots__ = ("facts", "load", "status", "slots_max", "njobs", "run", "ssusp", "ususp", "rsv", "memory_reserved_mib", "last_seen", "comment", "gpu_use")
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
    def __init__(self, facts: _Optional[_Union[HostFacts, _Mapping]] = ..., load: _Optional[_Union[Load, _Mapping]] = ..., status: _Optional[str] = ..., slots_max: _Optional[int] = ..., njobs: _Optional[int] = ..., run: _Optional[int] = ..., ssusp: _Optional[int] = ..., ususp: _Optional[int] = ..., rsv: _Optional[int] = ..., memory_reserved_mib: _Optional[int] = ..., last_seen: _Optional[float] = ..., comment: _Optional[str] = ..., gpu_use: _Optional[_Iterable[_Union[GpuUse, _Mapping]]] = ...) -> None: ...

class GpuUse(_message.Message):
    __slots__ = ("index", "njobs", "run", "susp", "memory_reserved_mib")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    NJOBS_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    SUSP_FIELD_NUMBER: _ClassVar[int]
    MEMORY_RESERVED_MIB_FIELD_NUMBER: _ClassVar[int]
    index: int
    njobs: int
    run: int
    susp: int
    memory_reserved_mib: int
    def __init__(self, index: _Optional[int] = ..., njobs: _Optional[int] = ..., run: _Optional[int] = ..., susp: _Optional[int] = ..., memory_reserved_mib: _Optional[int] = ...) -> None: ...

class HostsPage(_message.Message):
    __slots__ = ("hosts", "missing")
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    hosts: _containers.RepeatedCompositeFieldContainer[HostRecord]
    missing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, hosts: _Optional[_Iterable[_Union[HostRecord, _Mapping]]] = ..., missing: _Optional[_Iterable[str]] = ...) -> None: ...

class QueuesRequest(_message.Message):
    __slots__ = ("names", "user", "host")
    NAMES_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    user: str
    host: str
    def __init__(self, names: _Optional[_Iterable[str]] = ..., user: _Optional[str] = ..., host: _Optional[str] = ...) -> None: ...

class QueueRecord(_message.Message):
    __slots__ = ("name", "priority", "description", "open", "active", "njobs", "pend", "run", "ssusp", "ususp", "rsv", "is_default", "parameters", "max", "per_user", "per_host", "per_processor", "comment")
    class ParametersEntry(_message.Message):
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
    def __init__(self, name: _Optional[str] = ..., priority: _Optional[int] = ..., description: _Optional[str] = ..., open: _Optional[bool] = ..., active: _Optional[bool] = ..., njobs: _Optional[int] = ..., pend: _Optional[int] = ..., run: _Optional[int] = ..., ssusp: _Optional[int] = ..., ususp: _Optional[int] = ..., rsv: _Optional[int] = ..., is_default: _Optional[bool] = ..., parameters: _Optional[_Mapping[str, str]] = ..., max: _Optional[int] = ..., per_user: _Optional[int] = ..., per_host: _Optional[int] = ..., per_processor: _Optional[float] = ..., comment: _Optional[str] = ...) -> None: ...

class QueuesReply(_message.Message):
    __slots__ = ("queues", "missing")
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedCompositeFieldContainer[QueueRecord]
    missing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, queues: _Optional[_Iterable[_Union[QueueRecord, _Mapping]]] = ..., missing: _Optional[_Iterable[str]] = ...) -> None: ...
