from protos import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SignalAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TERMINATE: _ClassVar[SignalAction]
    SEND: _ClassVar[SignalAction]
    STOP: _ClassVar[SignalAction]
    RESUME: _ClassVar[SignalAction]
    REMOVE: _ClassVar[SignalAction]
    REQUEUE: _ClassVar[SignalAction]
    TERMINATE_DONE: _ClassVar[SignalAction]
    MIGRATE: _ClassVar[SignalAction]
    TERMINATE_IN_STATES: _ClassVar[SignalAction]
    CHECKPOINT: _ClassVar[SignalAction]

class ResizeAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESIZE_RELEASE: _ClassVar[ResizeAction]
    RESIZE_REQUEST: _ClassVar[ResizeAction]
    RESIZE_CANCEL: _ClassVar[ResizeAction]
    RESIZE_SCALE: _ClassVar[ResizeAction]
    RESIZE_RELEASE_HOSTS: _ClassVar[ResizeAction]

class WaitVerdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WAITING: _ClassVar[WaitVerdict]
    HOLDS: _ClassVar[WaitVerdict]
    NEVER_HOLDS: _ClassVar[WaitVerdict]

class AccountForm(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACCOUNT_SUMMARY: _ClassVar[AccountForm]
    ACCOUNT_BRIEF: _ClassVar[AccountForm]
    ACCOUNT_LONG: _ClassVar[AccountForm]

class UsageKey(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    USAGE_USER: _ClassVar[UsageKey]
    USAGE_GROUP: _ClassVar[UsageKey]
    USAGE_PROJECT: _ClassVar[UsageKey]
    USAGE_QUEUE: _ClassVar[UsageKey]
    USAGE_PERIOD: _ClassVar[UsageKey]
TERMINATE: SignalAction
SEND: SignalAction
STOP: SignalAction
RESUME: SignalAction
REMOVE: SignalAction
REQUEUE: SignalAction
TERMINATE_DONE: SignalAction
MIGRATE: SignalAction
TERMINATE_IN_STATES: SignalAction
CHECKPOINT: SignalAction
RESIZE_RELEASE: ResizeAction
RESIZE_REQUEST: ResizeAction
RESIZE_CANCEL: ResizeAction
RESIZE_SCALE: ResizeAction
RESIZE_RELEASE_HOSTS: ResizeAction
WAITING: WaitVerdict
HOLDS: WaitVerdict
NEVER_HOLDS: WaitVerdict
ACCOUNT_SUMMARY: AccountForm
ACCOUNT_BRIEF: AccountForm
ACCOUNT_LONG: AccountForm
USAGE_USER: UsageKey
USAGE_GROUP: UsageKey
USAGE_PROJECT: UsageKey
USAGE_QUEUE: UsageKey
USAGE_PERIOD: UsageKey

class JobSpec(_message.Message):
    __slots__ = ("name", "command", "is_script", "queues", "project", "cwd", "submit_cwd", "input", "output", "error", "output_overwrite", "error_overwrite", "environment", "roles", "run_limit_s", "memory_limit_mib", "hosts", "hold", "exclusive", "rerunnable", "not_rerunnable", "array", "array_limit", "umask_plus_one", "submit_host", "description", "user_group", "dependency", "begin_time", "terminate_time", "priority", "notify_end", "shell", "rlimits", "pre_exec", "post_exec", "output_dir", "requeue_exit_values", "host_file", "success_exit_values", "resizable", "runtime_estimate_s", "job_group", "reservation", "requirement_text", "environment_base", "ends_orphan", "environment_unset", "resize_notify", "tasks", "warning_action", "warning_time_s", "hang", "slurm", "application", "file_copies", "checkpoint", "interactive", "input_spooled", "input_data", "esub_output", "mail_user", "mail_begin", "mail_end", "mail_failure", "mail_events", "script_arguments", "service_class", "migration_min_plus_one", "command_bytes", "absolute_priority")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    IS_SCRIPT_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    SUBMIT_CWD_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_OVERWRITE_FIELD_NUMBER: _ClassVar[int]
    ERROR_OVERWRITE_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    RUN_LIMIT_S_FIELD_NUMBER: _ClassVar[int]
    MEMORY_LIMIT_MIB_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    EXCLUSIVE_FIELD_NUMBER: _ClassVar[int]
    RERUNNABLE_FIELD_NUMBER: _ClassVar[int]
    NOT_RERUNNABLE_FIELD_NUMBER: _ClassVar[int]
    ARRAY_FIELD_NUMBER: _ClassVar[int]
    ARRAY_LIMIT_FIELD_NUMBER: _ClassVar[int]
    UMASK_PLUS_ONE_FIELD_NUMBER: _ClassVar[int]
    SUBMIT_HOST_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    USER_GROUP_FIELD_NUMBER: _ClassVar[int]
    DEPENDENCY_FIELD_NUMBER: _ClassVar[int]
    BEGIN_TIME_FIELD_NUMBER: _ClassVar[int]
    TERMINATE_TIME_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    NOTIFY_END_FIELD_NUMBER: _ClassVar[int]
    SHELL_FIELD_NUMBER: _ClassVar[int]
    RLIMITS_FIELD_NUMBER: _ClassVar[int]
    PRE_EXEC_FIELD_NUMBER: _ClassVar[int]
    POST_EXEC_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_DIR_FIELD_NUMBER: _ClassVar[int]
    REQUEUE_EXIT_VALUES_FIELD_NUMBER: _ClassVar[int]
    HOST_FILE_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_EXIT_VALUES_FIELD_NUMBER: _ClassVar[int]
    RESIZABLE_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_ESTIMATE_S_FIELD_NUMBER: _ClassVar[int]
    JOB_GROUP_FIELD_NUMBER: _ClassVar[int]
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    REQUIREMENT_TEXT_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_BASE_FIELD_NUMBER: _ClassVar[int]
    ENDS_ORPHAN_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_UNSET_FIELD_NUMBER: _ClassVar[int]
    RESIZE_NOTIFY_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    WARNING_ACTION_FIELD_NUMBER: _ClassVar[int]
    WARNING_TIME_S_FIELD_NUMBER: _ClassVar[int]
    HANG_FIELD_NUMBER: _ClassVar[int]
    SLURM_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_FIELD_NUMBER: _ClassVar[int]
    FILE_COPIES_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    INTERACTIVE_FIELD_NUMBER: _ClassVar[int]
    INPUT_SPOOLED_FIELD_NUMBER: _ClassVar[int]
    INPUT_DATA_FIELD_NUMBER: _ClassVar[int]
    ESUB_OUTPUT_FIELD_NUMBER: _ClassVar[int]
    MAIL_USER_FIELD_NUMBER: _ClassVar[int]
    MAIL_BEGIN_FIELD_NUMBER: _ClassVar[int]
    MAIL_END_FIELD_NUMBER: _ClassVar[int]
    MAIL_FAILURE_FIELD_NUMBER: _ClassVar[int]
    MAIL_EVENTS_FIELD_NUMBER: _ClassVar[int]
    SCRIPT_ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    SERVICE_CLASS_FIELD_NUMBER: _ClassVar[int]
    MIGRATION_MIN_PLUS_ONE_FIELD_NUMBER: _ClassVar[int]
    COMMAND_BYTES_FIELD_NUMBER: _ClassVar[int]
    ABSOLUTE_PRIORITY_FIELD_NUMBER: _ClassVar[int]
    name: str
    command: str
    is_script: bool
    queues: _containers.RepeatedScalarFieldContainer[str]
    project: str
    cwd: str
    submit_cwd: str
    input: str
    output: str
    error: str
    output_overwrite: bool
    error_overwrite: bool
    environment: _containers.RepeatedScalarFieldContainer[bytes]
    roles: _containers.RepeatedCompositeFieldContainer[_common_pb2.Role]
    run_limit_s: int
    memory_limit_mib: int
    hosts: _containers.RepeatedScalarFieldContainer[str]
    hold: bool
    exclusive: bool
    rerunnable: bool
    not_rerunnable: bool
    array: _containers.RepeatedCompositeFieldContainer[_common_pb2.IndexRange]
    array_limit: int
    umask_plus_one: int
    submit_host: str
    description: str
    user_group: str
    dependency: str
    begin_time: float
    terminate_time: float
    priority: int
    notify_end: bool
    shell: str
    rlimits: _containers.RepeatedCompositeFieldContainer[Rlimit]
    pre_exec: str
    post_exec: str
    output_dir: str
    requeue_exit_values: str
    host_file: HostFile
    success_exit_values: str
    resizable: bool
    runtime_estimate_s: int
    job_group: str
    reservation: str
    requirement_text: str
    environment_base: bytes
    ends_orphan: bool
    environment_unset: _containers.RepeatedScalarFieldContainer[bytes]
    resize_notify: str
    tasks: TaskRules
    warning_action: str
    warning_time_s: float
    hang: HangRule
    slurm: SlurmTerms
    application: str
    file_copies: _containers.RepeatedScalarFieldContainer[str]
    checkpoint: Checkpoint
    interactive: str
    input_spooled: bool
    input_data: bytes
    esub_output: bytes
    mail_user: str
    mail_begin: bool
    mail_end: bool
    mail_failure: bool
    mail_events: str
    script_arguments: _containers.RepeatedScalarFieldContainer[str]
    service_class: str
    migration_min_plus_one: int
    command_bytes: bytes
    absolute_priority: str
    def __init__(self, name: _Optional[str] = ..., command: _Optional[str] = ..., is_script: _Optional[bool] = ..., queues: _Optional[_Iterable[str]] = ..., project: _Optional[str] = ..., cwd: _Optional[str] = ..., submit_cwd: _Optional[str] = ..., input: _Optional[str] = ..., output: _Optional[str] = ..., error: _Optional[str] = ..., output_overwrite: _Optional[bool] = ..., error_overwrite: _Optional[bool] = ..., environment: _Optional[_Iterable[bytes]] = ..., roles: _Optional[_Iterable[_Union[_common_pb2.Role, _Mapping]]] = ..., run_limit_s: _Optional[int] = ..., memory_limit_mib: _Optional[int] = ..., hosts: _Optional[_Iterable[str]] = ..., hold: _Optional[bool] = ..., exclusive: _Optional[bool] = ..., rerunnable: _Optional[bool] = ..., not_rerunnable: _Optional[bool] = ..., array: _Optional[_Iterable[_Union[_common_pb2.IndexRange, _Mapping]]] = ..., array_limit: _Optional[int] = ..., umask_plus_one: _Optional[int] = ..., submit_host: _Optional[str] = ..., description: _Optional[str] = ..., user_group: _Optional[str] = ..., dependency: _Optional[str] = ..., begin_time: _Optional[float] = ..., terminate_time: _Optional[float] = ..., priority: _Optional[int] = ..., notify_end: _Optional[bool] = ..., shell: _Optional[str] = ..., rlimits: _Optional[_Iterable[_Union[Rlimit, _Mapping]]] = ..., pre_exec: _Optional[str] = ..., post_exec: _Optional[str] = ..., output_dir: _Optional[str] = ..., requeue_exit_values: _Optional[str] = ..., host_file: _Optional[_Union[HostFile, _Mapping]] = ..., success_exit_values: _Optional[str] = ..., resizable: _Optional[bool] = ..., runtime_estimate_s: _Optional[int] = ..., job_group: _Optional[str] = ..., reservation: _Optional[str] = ..., requirement_text: _Optional[str] = ..., environment_base: _Optional[bytes] = ..., ends_orphan: _Optional[bool] = ..., environment_unset: _Optional[_Iterable[bytes]] = ..., resize_notify: _Optional[str] = ..., tasks: _Optional[_Union[TaskRules, _Mapping]] = ..., warning_action: _Optional[str] = ..., warning_time_s: _Optional[float] = ..., hang: _Optional[_Union[HangRule, _Mapping]] = ..., slurm: _Optional[_Union[SlurmTerms, _Mapping]] = ..., application: _Optional[str] = ..., file_copies: _Optional[_Iterable[str]] = ..., checkpoint: _Optional[_Union[Checkpoint, _Mapping]] = ..., interactive: _Optional[str] = ..., input_spooled: _Optional[bool] = ..., input_data: _Optional[bytes] = ..., esub_output: _Optional[bytes] = ..., mail_user: _Optional[str] = ..., mail_begin: _Optional[bool] = ..., mail_end: _Optional[bool] = ..., mail_failure: _Optional[bool] = ..., mail_events: _Optional[str] = ..., script_arguments: _Optional[_Iterable[str]] = ..., service_class: _Optional[str] = ..., migration_min_plus_one: _Optional[int] = ..., command_bytes: _Optional[bytes] = ..., absolute_priority: _Optional[str] = ...) -> None: ...

class SlurmTerms(_message.Message):
    __slots__ = ("array_base", "arguments", "command")
    ARRAY_BASE_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    array_base: int
    arguments: _containers.RepeatedScalarFieldContainer[str]
    command: str
    def __init__(self, array_base: _Optional[int] = ..., arguments: _Optional[_Iterable[str]] = ..., command: _Optional[str] = ...) -> None: ...

class HostFile(_message.Message):
    __slots__ = ("path", "hosts", "slots", "requirement")
    PATH_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    REQUIREMENT_FIELD_NUMBER: _ClassVar[int]
    path: str
    hosts: _containers.RepeatedScalarFieldContainer[str]
    slots: _containers.RepeatedScalarFieldContainer[int]
    requirement: str
    def __init__(self, path: _Optional[str] = ..., hosts: _Optional[_Iterable[str]] = ..., slots: _Optional[_Iterable[int]] = ..., requirement: _Optional[str] = ...) -> None: ...

class Checkpoint(_message.Message):
    __slots__ = ("directory", "period_s", "first_s", "method", "programs", "restarts_from", "forces_restart", "no_period", "names_minutes")
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    PERIOD_S_FIELD_NUMBER: _ClassVar[int]
    FIRST_S_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    RESTARTS_FROM_FIELD_NUMBER: _ClassVar[int]
    FORCES_RESTART_FIELD_NUMBER: _ClassVar[int]
    NO_PERIOD_FIELD_NUMBER: _ClassVar[int]
    NAMES_MINUTES_FIELD_NUMBER: _ClassVar[int]
    directory: str
    period_s: float
    first_s: float
    method: str
    programs: str
    restarts_from: str
    forces_restart: bool
    no_period: bool
    names_minutes: bool
    def __init__(self, directory: _Optional[str] = ..., period_s: _Optional[float] = ..., first_s: _Optional[float] = ..., method: _Optional[str] = ..., programs: _Optional[str] = ..., restarts_from: _Optional[str] = ..., forces_restart: _Optional[bool] = ..., no_period: _Optional[bool] = ..., names_minutes: _Optional[bool] = ...) -> None: ...

class HangRule(_message.Message):
    __slots__ = ("after_s", "first_s", "cpus", "network_bytes_s", "gpu_power", "no_stacks")
    AFTER_S_FIELD_NUMBER: _ClassVar[int]
    FIRST_S_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    NETWORK_BYTES_S_FIELD_NUMBER: _ClassVar[int]
    GPU_POWER_FIELD_NUMBER: _ClassVar[int]
    NO_STACKS_FIELD_NUMBER: _ClassVar[int]
    after_s: float
    first_s: float
    cpus: float
    network_bytes_s: float
    gpu_power: float
    no_stacks: bool
    def __init__(self, after_s: _Optional[float] = ..., first_s: _Optional[float] = ..., cpus: _Optional[float] = ..., network_bytes_s: _Optional[float] = ..., gpu_power: _Optional[float] = ..., no_stacks: _Optional[bool] = ...) -> None: ...

class TaskRules(_message.Message):
    __slots__ = ("policies", "restarts_max", "restarts_when_failed", "success_min", "succeeded_enough", "final_codes", "free_codes", "ttl_s", "has_ttl", "conventions", "origin", "owner_name", "secrets", "format", "has_replace", "replace_s", "restart_pause_s", "restart_pause_max_s", "stable_s", "autoscale", "needs_each")
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    RESTARTS_MAX_FIELD_NUMBER: _ClassVar[int]
    RESTARTS_WHEN_FAILED_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_MIN_FIELD_NUMBER: _ClassVar[int]
    SUCCEEDED_ENOUGH_FIELD_NUMBER: _ClassVar[int]
    FINAL_CODES_FIELD_NUMBER: _ClassVar[int]
    FREE_CODES_FIELD_NUMBER: _ClassVar[int]
    TTL_S_FIELD_NUMBER: _ClassVar[int]
    HAS_TTL_FIELD_NUMBER: _ClassVar[int]
    CONVENTIONS_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    OWNER_NAME_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    HAS_REPLACE_FIELD_NUMBER: _ClassVar[int]
    REPLACE_S_FIELD_NUMBER: _ClassVar[int]
    RESTART_PAUSE_S_FIELD_NUMBER: _ClassVar[int]
    RESTART_PAUSE_MAX_S_FIELD_NUMBER: _ClassVar[int]
    STABLE_S_FIELD_NUMBER: _ClassVar[int]
    AUTOSCALE_FIELD_NUMBER: _ClassVar[int]
    NEEDS_EACH_FIELD_NUMBER: _ClassVar[int]
    policies: _containers.RepeatedCompositeFieldContainer[_common_pb2.TaskPolicy]
    restarts_max: int
    restarts_when_failed: bool
    success_min: int
    succeeded_enough: int
    final_codes: _containers.RepeatedScalarFieldContainer[int]
    free_codes: _containers.RepeatedScalarFieldContainer[int]
    ttl_s: float
    has_ttl: bool
    conventions: _containers.RepeatedCompositeFieldContainer[Convention]
    origin: str
    owner_name: str
    secrets: _containers.RepeatedScalarFieldContainer[bytes]
    format: int
    has_replace: bool
    replace_s: float
    restart_pause_s: float
    restart_pause_max_s: float
    stable_s: float
    autoscale: Autoscale
    needs_each: bool
    def __init__(self, policies: _Optional[_Iterable[_Union[_common_pb2.TaskPolicy, _Mapping]]] = ..., restarts_max: _Optional[int] = ..., restarts_when_failed: _Optional[bool] = ..., success_min: _Optional[int] = ..., succeeded_enough: _Optional[int] = ..., final_codes: _Optional[_Iterable[int]] = ..., free_codes: _Optional[_Iterable[int]] = ..., ttl_s: _Optional[float] = ..., has_ttl: _Optional[bool] = ..., conventions: _Optional[_Iterable[_Union[Convention, _Mapping]]] = ..., origin: _Optional[str] = ..., owner_name: _Optional[str] = ..., secrets: _Optional[_Iterable[bytes]] = ..., format: _Optional[int] = ..., has_replace: _Optional[bool] = ..., replace_s: _Optional[float] = ..., restart_pause_s: _Optional[float] = ..., restart_pause_max_s: _Optional[float] = ..., stable_s: _Optional[float] = ..., autoscale: _Optional[_Union[Autoscale, _Mapping]] = ..., needs_each: _Optional[bool] = ...) -> None: ...

class Autoscale(_message.Message):
    __slots__ = ("role", "metric", "command", "least", "most", "cooldown_s", "interval_s", "limit_s", "target")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    LEAST_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    COOLDOWN_S_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_S_FIELD_NUMBER: _ClassVar[int]
    LIMIT_S_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    role: str
    metric: str
    command: str
    least: int
    most: int
    cooldown_s: float
    interval_s: float
    limit_s: float
    target: int
    def __init__(self, role: _Optional[str] = ..., metric: _Optional[str] = ..., command: _Optional[str] = ..., least: _Optional[int] = ..., most: _Optional[int] = ..., cooldown_s: _Optional[float] = ..., interval_s: _Optional[float] = ..., limit_s: _Optional[float] = ..., target: _Optional[int] = ...) -> None: ...

class Convention(_message.Message):
    __slots__ = ("name", "options")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    name: str
    options: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., options: _Optional[_Iterable[str]] = ...) -> None: ...

class Rlimit(_message.Message):
    __slots__ = ("name", "soft")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SOFT_FIELD_NUMBER: _ClassVar[int]
    name: str
    soft: int
    def __init__(self, name: _Optional[str] = ..., soft: _Optional[int] = ...) -> None: ...

class SubmitItem(_message.Message):
    __slots__ = ("request_id", "spec", "retry", "unique_name", "checkpoint_method", "checkpoint_programs")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_NAME_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_METHOD_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    request_id: bytes
    spec: JobSpec
    retry: bool
    unique_name: bool
    checkpoint_method: str
    checkpoint_programs: str
    def __init__(self, request_id: _Optional[bytes] = ..., spec: _Optional[_Union[JobSpec, _Mapping]] = ..., retry: _Optional[bool] = ..., unique_name: _Optional[bool] = ..., checkpoint_method: _Optional[str] = ..., checkpoint_programs: _Optional[str] = ...) -> None: ...

class SubmitBatch(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[SubmitItem]
    def __init__(self, items: _Optional[_Iterable[_Union[SubmitItem, _Mapping]]] = ...) -> None: ...

class SubmitResult(_message.Message):
    __slots__ = ("request_id", "job", "queue", "default_queue", "error", "retry_later", "retry_s")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_QUEUE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    RETRY_LATER_FIELD_NUMBER: _ClassVar[int]
    RETRY_S_FIELD_NUMBER: _ClassVar[int]
    request_id: bytes
    job: int
    queue: str
    default_queue: bool
    error: str
    retry_later: bool
    retry_s: int
    def __init__(self, request_id: _Optional[bytes] = ..., job: _Optional[int] = ..., queue: _Optional[str] = ..., default_queue: _Optional[bool] = ..., error: _Optional[str] = ..., retry_later: _Optional[bool] = ..., retry_s: _Optional[int] = ...) -> None: ...

class SubmitReplies(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[SubmitResult]
    def __init__(self, results: _Optional[_Iterable[_Union[SubmitResult, _Mapping]]] = ...) -> None: ...

class JobFilter(_message.Message):
    __slots__ = ("refs", "user", "queue", "host", "name", "project", "states", "finished_too", "job_group", "application", "service_class")
    REFS_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    FINISHED_TOO_FIELD_NUMBER: _ClassVar[int]
    JOB_GROUP_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_FIELD_NUMBER: _ClassVar[int]
    SERVICE_CLASS_FIELD_NUMBER: _ClassVar[int]
    refs: _containers.RepeatedCompositeFieldContainer[_common_pb2.JobRef]
    user: str
    queue: str
    host: str
    name: str
    project: str
    states: _containers.RepeatedScalarFieldContainer[_common_pb2.JobState]
    finished_too: bool
    job_group: str
    application: str
    service_class: str
    def __init__(self, refs: _Optional[_Iterable[_Union[_common_pb2.JobRef, _Mapping]]] = ..., user: _Optional[str] = ..., queue: _Optional[str] = ..., host: _Optional[str] = ..., name: _Optional[str] = ..., project: _Optional[str] = ..., states: _Optional[_Iterable[_Union[_common_pb2.JobState, str]]] = ..., finished_too: _Optional[bool] = ..., job_group: _Optional[str] = ..., application: _Optional[str] = ..., service_class: _Optional[str] = ...) -> None: ...

class ListJobsRequest(_message.Message):
    __slots__ = ("filter", "arrays", "details", "reasons", "shares_details", "basic_too", "columns", "hosts_alone", "end_columns", "time_unit_s", "absolute")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    ARRAYS_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    SHARES_DETAILS_FIELD_NUMBER: _ClassVar[int]
    BASIC_TOO_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    HOSTS_ALONE_FIELD_NUMBER: _ClassVar[int]
    END_COLUMNS_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIT_S_FIELD_NUMBER: _ClassVar[int]
    ABSOLUTE_FIELD_NUMBER: _ClassVar[int]
    filter: JobFilter
    arrays: bool
    details: bool
    reasons: bool
    shares_details: bool
    basic_too: bool
    columns: bool
    hosts_alone: bool
    end_columns: bool
    time_unit_s: int
    absolute: bool
    def __init__(self, filter: _Optional[_Union[JobFilter, _Mapping]] = ..., arrays: _Optional[bool] = ..., details: _Optional[bool] = ..., reasons: _Optional[bool] = ..., shares_details: _Optional[bool] = ..., basic_too: _Optional[bool] = ..., columns: _Optional[bool] = ..., hosts_alone: _Optional[bool] = ..., end_columns: _Optional[bool] = ..., time_unit_s: _Optional[int] = ..., absolute: _Optional[bool] = ...) -> None: ...

class JobRecord(_message.Message):
    __slots__ = ("job", "index", "user", "state", "queue", "from_host", "hosts", "name", "submit_time", "start_time", "end_time", "project", "exit_status", "exit_reason", "usage", "usage_by_host", "attempt", "pending_reasons", "spec", "slots_min", "slots_max", "array", "exec_cwd", "exec_home", "suspend_reason", "effective_requirement", "priority", "estimated_start", "start_reason", "load_bounds", "share_account", "tasks", "restarts", "progress", "autoscale_error", "exceptions", "hangs_since", "inactive_s", "stacks", "unused_hosts", "gpus", "warnings", "post", "posted_at", "messages", "outlook", "absolute")
    JOB_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    FROM_HOST_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SUBMIT_TIME_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    EXIT_STATUS_FIELD_NUMBER: _ClassVar[int]
    EXIT_REASON_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    USAGE_BY_HOST_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    PENDING_REASONS_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    SLOTS_MIN_FIELD_NUMBER: _ClassVar[int]
    SLOTS_MAX_FIELD_NUMBER: _ClassVar[int]
    ARRAY_FIELD_NUMBER: _ClassVar[int]
    EXEC_CWD_FIELD_NUMBER: _ClassVar[int]
    EXEC_HOME_FIELD_NUMBER: _ClassVar[int]
    SUSPEND_REASON_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVE_REQUIREMENT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_START_FIELD_NUMBER: _ClassVar[int]
    START_REASON_FIELD_NUMBER: _ClassVar[int]
    LOAD_BOUNDS_FIELD_NUMBER: _ClassVar[int]
    SHARE_ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    RESTARTS_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    AUTOSCALE_ERROR_FIELD_NUMBER: _ClassVar[int]
    EXCEPTIONS_FIELD_NUMBER: _ClassVar[int]
    HANGS_SINCE_FIELD_NUMBER: _ClassVar[int]
    INACTIVE_S_FIELD_NUMBER: _ClassVar[int]
    STACKS_FIELD_NUMBER: _ClassVar[int]
    UNUSED_HOSTS_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    POST_FIELD_NUMBER: _ClassVar[int]
    POSTED_AT_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    OUTLOOK_FIELD_NUMBER: _ClassVar[int]
    ABSOLUTE_FIELD_NUMBER: _ClassVar[int]
    job: int
    index: int
    user: str
    state: _common_pb2.JobState
    queue: str
    from_host: str
    hosts: _containers.RepeatedCompositeFieldContainer[_common_pb2.HostShare]
    name: str
    submit_time: float
    start_time: float
    end_time: float
    project: str
    exit_status: int
    exit_reason: str
    usage: _common_pb2.Usage
    usage_by_host: _containers.RepeatedCompositeFieldContainer[_common_pb2.Usage]
    attempt: int
    pending_reasons: _containers.RepeatedCompositeFieldContainer[PendingReason]
    spec: JobSpec
    slots_min: int
    slots_max: int
    array: ArrayCounts
    exec_cwd: str
    exec_home: str
    suspend_reason: str
    effective_requirement: str
    priority: int
    estimated_start: float
    start_reason: str
    load_bounds: _containers.RepeatedCompositeFieldContainer[LoadBound]
    share_account: str
    tasks: _containers.RepeatedCompositeFieldContainer[_common_pb2.TaskState]
    restarts: int
    progress: _common_pb2.Progress
    autoscale_error: str
    exceptions: _containers.RepeatedScalarFieldContainer[str]
    hangs_since: float
    inactive_s: float
    stacks: _containers.RepeatedScalarFieldContainer[str]
    unused_hosts: _containers.RepeatedCompositeFieldContainer[UnusedHost]
    gpus: _containers.RepeatedCompositeFieldContainer[_common_pb2.GpuUsage]
    warnings: _containers.RepeatedCompositeFieldContainer[JobNote]
    post: int
    posted_at: float
    messages: _containers.RepeatedCompositeFieldContainer[JobMessage]
    outlook: Outlook
    absolute: AbsolutePriority
    def __init__(self, job: _Optional[int] = ..., index: _Optional[int] = ..., user: _Optional[str] = ..., state: _Optional[_Union[_common_pb2.JobState, str]] = ..., queue: _Optional[str] = ..., from_host: _Optional[str] = ..., hosts: _Optional[_Iterable[_Union[_common_pb2.HostShare, _Mapping]]] = ..., name: _Optional[str] = ..., submit_time: _Optional[float] = ..., start_time: _Optional[float] = ..., end_time: _Optional[float] = ..., project: _Optional[str] = ..., exit_status: _Optional[int] = ..., exit_reason: _Optional[str] = ..., usage: _Optional[_Union[_common_pb2.Usage, _Mapping]] = ..., usage_by_host: _Optional[_Iterable[_Union[_common_pb2.Usage, _Mapping]]] = ..., attempt: _Optional[int] = ..., pending_reasons: _Optional[_Iterable[_Union[PendingReason, _Mapping]]] = ..., spec: _Optional[_Union[JobSpec, _Mapping]] = ..., slots_min: _Optional[int] = ..., slots_max: _Optional[int] = ..., array: _Optional[_Union[ArrayCounts, _Mapping]] = ..., exec_cwd: _Optional[str] = ..., exec_home: _Optional[str] = ..., suspend_reason: _Optional[str] = ..., effective_requirement: _Optional[str] = ..., priority: _Optional[int] = ..., estimated_start: _Optional[float] = ..., start_reason: _Optional[str] = ..., load_bounds: _Optional[_Iterable[_Union[LoadBound, _Mapping]]] = ..., share_account: _Optional[str] = ..., tasks: _Optional[_Iterable[_Union[_common_pb2.TaskState, _Mapping]]] = ..., restarts: _Optional[int] = ..., progress: _Optional[_Union[_common_pb2.Progress, _Mapping]] = ..., autoscale_error: _Optional[str] = ..., exceptions: _Optional[_Iterable[str]] = ..., hangs_since: _Optional[float] = ..., inactive_s: _Optional[float] = ..., stacks: _Optional[_Iterable[str]] = ..., unused_hosts: _Optional[_Iterable[_Union[UnusedHost, _Mapping]]] = ..., gpus: _Optional[_Iterable[_Union[_common_pb2.GpuUsage, _Mapping]]] = ..., warnings: _Optional[_Iterable[_Union[JobNote, _Mapping]]] = ..., post: _Optional[int] = ..., posted_at: _Optional[float] = ..., messages: _Optional[_Iterable[_Union[JobMessage, _Mapping]]] = ..., outlook: _Optional[_Union[Outlook, _Mapping]] = ..., absolute: _Optional[_Union[AbsolutePriority, _Mapping]] = ...) -> None: ...

class AbsolutePriority(_message.Message):
    __slots__ = ("value", "is_system", "factors")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    IS_SYSTEM_FIELD_NUMBER: _ClassVar[int]
    FACTORS_FIELD_NUMBER: _ClassVar[int]
    value: float
    is_system: bool
    factors: _containers.RepeatedCompositeFieldContainer[FactorValue]
    def __init__(self, value: _Optional[float] = ..., is_system: _Optional[bool] = ..., factors: _Optional[_Iterable[_Union[FactorValue, _Mapping]]] = ...) -> None: ...

class FactorValue(_message.Message):
    __slots__ = ("name", "value", "is_part")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    IS_PART_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: float
    is_part: bool
    def __init__(self, name: _Optional[str] = ..., value: _Optional[float] = ..., is_part: _Optional[bool] = ...) -> None: ...

class UnusedHost(_message.Message):
    __slots__ = ("host", "since")
    HOST_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    host: str
    since: float
    def __init__(self, host: _Optional[str] = ..., since: _Optional[float] = ...) -> None: ...

class LoadBound(_message.Message):
    __slots__ = ("index", "sched", "stop", "has_sched", "has_stop")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    SCHED_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    HAS_SCHED_FIELD_NUMBER: _ClassVar[int]
    HAS_STOP_FIELD_NUMBER: _ClassVar[int]
    index: str
    sched: float
    stop: float
    has_sched: bool
    has_stop: bool
    def __init__(self, index: _Optional[str] = ..., sched: _Optional[float] = ..., stop: _Optional[float] = ..., has_sched: _Optional[bool] = ..., has_stop: _Optional[bool] = ...) -> None: ...

class Outlook(_message.Message):
    __slots__ = ("ahead", "sureness", "remedies", "is_hopeless", "is_for_later", "costs", "reserved")
    AHEAD_FIELD_NUMBER: _ClassVar[int]
    SURENESS_FIELD_NUMBER: _ClassVar[int]
    REMEDIES_FIELD_NUMBER: _ClassVar[int]
    IS_HOPELESS_FIELD_NUMBER: _ClassVar[int]
    IS_FOR_LATER_FIELD_NUMBER: _ClassVar[int]
    COSTS_FIELD_NUMBER: _ClassVar[int]
    RESERVED_FIELD_NUMBER: _ClassVar[int]
    ahead: int
    sureness: str
    remedies: _containers.RepeatedScalarFieldContainer[str]
    is_hopeless: bool
    is_for_later: bool
    costs: _containers.RepeatedScalarFieldContainer[str]
    reserved: _containers.RepeatedCompositeFieldContainer[_common_pb2.HostShare]
    def __init__(self, ahead: _Optional[int] = ..., sureness: _Optional[str] = ..., remedies: _Optional[_Iterable[str]] = ..., is_hopeless: _Optional[bool] = ..., is_for_later: _Optional[bool] = ..., costs: _Optional[_Iterable[str]] = ..., reserved: _Optional[_Iterable[_Union[_common_pb2.HostShare, _Mapping]]] = ...) -> None: ...

class JobPage(_message.Message):
    __slots__ = ("jobs", "missing", "columns")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[JobRecord]
    missing: _containers.RepeatedCompositeFieldContainer[_common_pb2.JobRef]
    columns: JobColumns
    def __init__(self, jobs: _Optional[_Iterable[_Union[JobRecord, _Mapping]]] = ..., missing: _Optional[_Iterable[_Union[_common_pb2.JobRef, _Mapping]]] = ..., columns: _Optional[_Union[JobColumns, _Mapping]] = ...) -> None: ...

class JobColumns(_message.Message):
    __slots__ = ("kinds", "names", "job", "index", "submit_time", "kind", "name", "ended", "start_time", "end_time", "cpu_s", "count")
    KINDS_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    SUBMIT_TIME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    CPU_S_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    kinds: _containers.RepeatedCompositeFieldContainer[JobRecord]
    names: _containers.RepeatedScalarFieldContainer[str]
    job: _containers.RepeatedScalarFieldContainer[int]
    index: _containers.RepeatedScalarFieldContainer[int]
    submit_time: _containers.RepeatedScalarFieldContainer[float]
    kind: _containers.RepeatedScalarFieldContainer[int]
    name: _containers.RepeatedScalarFieldContainer[int]
    ended: _containers.RepeatedScalarFieldContainer[int]
    start_time: _containers.RepeatedScalarFieldContainer[float]
    end_time: _containers.RepeatedScalarFieldContainer[float]
    cpu_s: _containers.RepeatedScalarFieldContainer[float]
    count: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, kinds: _Optional[_Iterable[_Union[JobRecord, _Mapping]]] = ..., names: _Optional[_Iterable[str]] = ..., job: _Optional[_Iterable[int]] = ..., index: _Optional[_Iterable[int]] = ..., submit_time: _Optional[_Iterable[float]] = ..., kind: _Optional[_Iterable[int]] = ..., name: _Optional[_Iterable[int]] = ..., ended: _Optional[_Iterable[int]] = ..., start_time: _Optional[_Iterable[float]] = ..., end_time: _Optional[_Iterable[float]] = ..., cpu_s: _Optional[_Iterable[float]] = ..., count: _Optional[_Iterable[int]] = ...) -> None: ...

class ArrayCounts(_message.Message):
    __slots__ = ("total", "pend", "done", "run", "exit", "ssusp", "ususp", "psusp", "spec")
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    PEND_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    EXIT_FIELD_NUMBER: _ClassVar[int]
    SSUSP_FIELD_NUMBER: _ClassVar[int]
    USUSP_FIELD_NUMBER: _ClassVar[int]
    PSUSP_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    total: int
    pend: int
    done: int
    run: int
    exit: int
    ssusp: int
    ususp: int
    psusp: int
    spec: str
    def __init__(self, total: _Optional[int] = ..., pend: _Optional[int] = ..., done: _Optional[int] = ..., run: _Optional[int] = ..., exit: _Optional[int] = ..., ssusp: _Optional[int] = ..., ususp: _Optional[int] = ..., psusp: _Optional[int] = ..., spec: _Optional[str] = ...) -> None: ...

class PendingReason(_message.Message):
    __slots__ = ("code", "text", "hosts", "host_names", "advice", "rules_out", "is_ineligible")
    CODE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    HOST_NAMES_FIELD_NUMBER: _ClassVar[int]
    ADVICE_FIELD_NUMBER: _ClassVar[int]
    RULES_OUT_FIELD_NUMBER: _ClassVar[int]
    IS_INELIGIBLE_FIELD_NUMBER: _ClassVar[int]
    code: int
    text: str
    hosts: int
    host_names: _containers.RepeatedScalarFieldContainer[str]
    advice: str
    rules_out: bool
    is_ineligible: bool
    def __init__(self, code: _Optional[int] = ..., text: _Optional[str] = ..., hosts: _Optional[int] = ..., host_names: _Optional[_Iterable[str]] = ..., advice: _Optional[str] = ..., rules_out: _Optional[bool] = ..., is_ineligible: _Optional[bool] = ...) -> None: ...

class SignalRequest(_message.Message):
    __slots__ = ("filter", "action", "signal", "newest_only", "states", "hold", "role", "task_plus_one", "reason", "force", "ends", "hosts")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    NEWEST_ONLY_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    TASK_PLUS_ONE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    filter: JobFilter
    action: SignalAction
    signal: int
    newest_only: bool
    states: _containers.RepeatedScalarFieldContainer[_common_pb2.JobState]
    hold: bool
    role: str
    task_plus_one: int
    reason: str
    force: bool
    ends: bool
    hosts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, filter: _Optional[_Union[JobFilter, _Mapping]] = ..., action: _Optional[_Union[SignalAction, str]] = ..., signal: _Optional[int] = ..., newest_only: _Optional[bool] = ..., states: _Optional[_Iterable[_Union[_common_pb2.JobState, str]]] = ..., hold: _Optional[bool] = ..., role: _Optional[str] = ..., task_plus_one: _Optional[int] = ..., reason: _Optional[str] = ..., force: _Optional[bool] = ..., ends: _Optional[bool] = ..., hosts: _Optional[_Iterable[str]] = ...) -> None: ...

class SignalResult(_message.Message):
    __slots__ = ("job", "index", "error", "note")
    JOB_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    job: int
    index: int
    error: str
    note: str
    def __init__(self, job: _Optional[int] = ..., index: _Optional[int] = ..., error: _Optional[str] = ..., note: _Optional[str] = ...) -> None: ...

class SignalReply(_message.Message):
    __slots__ = ("results", "error")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[SignalResult]
    error: str
    def __init__(self, results: _Optional[_Iterable[_Union[SignalResult, _Mapping]]] = ..., error: _Optional[str] = ...) -> None: ...

class ModifyRequest(_message.Message):
    __slots__ = ("refs", "spec", "fields", "filter", "newest_only", "is_switch")
    REFS_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    NEWEST_ONLY_FIELD_NUMBER: _ClassVar[int]
    IS_SWITCH_FIELD_NUMBER: _ClassVar[int]
    refs: _containers.RepeatedCompositeFieldContainer[_common_pb2.JobRef]
    spec: JobSpec
    fields: _containers.RepeatedScalarFieldContainer[str]
    filter: JobFilter
    newest_only: bool
    is_switch: bool
    def __init__(self, refs: _Optional[_Iterable[_Union[_common_pb2.JobRef, _Mapping]]] = ..., spec: _Optional[_Union[JobSpec, _Mapping]] = ..., fields: _Optional[_Iterable[str]] = ..., filter: _Optional[_Union[JobFilter, _Mapping]] = ..., newest_only: _Optional[bool] = ..., is_switch: _Optional[bool] = ...) -> None: ...

class ModifyReply(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[SignalResult]
    def __init__(self, results: _Optional[_Iterable[_Union[SignalResult, _Mapping]]] = ...) -> None: ...

class JobMessage(_message.Message):
    __slots__ = ("number", "user", "time", "text", "level", "size", "data")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    number: int
    user: str
    time: float
    text: str
    level: str
    size: int
    data: bytes
    def __init__(self, number: _Optional[int] = ..., user: _Optional[str] = ..., time: _Optional[float] = ..., text: _Optional[str] = ..., level: _Optional[str] = ..., size: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class PostRequest(_message.Message):
    __slots__ = ("ref", "filter", "message")
    REF_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ref: _common_pb2.JobRef
    filter: JobFilter
    message: JobMessage
    def __init__(self, ref: _Optional[_Union[_common_pb2.JobRef, _Mapping]] = ..., filter: _Optional[_Union[JobFilter, _Mapping]] = ..., message: _Optional[_Union[JobMessage, _Mapping]] = ...) -> None: ...

class PostReply(_message.Message):
    __slots__ = ("error", "job", "index")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    error: str
    job: int
    index: int
    def __init__(self, error: _Optional[str] = ..., job: _Optional[int] = ..., index: _Optional[int] = ...) -> None: ...

class ReadRequest(_message.Message):
    __slots__ = ("ref", "filter", "number", "with_data")
    REF_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    WITH_DATA_FIELD_NUMBER: _ClassVar[int]
    ref: _common_pb2.JobRef
    filter: JobFilter
    number: int
    with_data: bool
    def __init__(self, ref: _Optional[_Union[_common_pb2.JobRef, _Mapping]] = ..., filter: _Optional[_Union[JobFilter, _Mapping]] = ..., number: _Optional[int] = ..., with_data: _Optional[bool] = ...) -> None: ...

class ReadReply(_message.Message):
    __slots__ = ("error", "job", "index", "message")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    error: str
    job: int
    index: int
    message: JobMessage
    def __init__(self, error: _Optional[str] = ..., job: _Optional[int] = ..., index: _Optional[int] = ..., message: _Optional[_Union[JobMessage, _Mapping]] = ...) -> None: ...

class MoveRequest(_message.Message):
    __slots__ = ("ref", "place", "among_own")
    REF_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    AMONG_OWN_FIELD_NUMBER: _ClassVar[int]
    ref: _common_pb2.JobRef
    place: int
    among_own: bool
    def __init__(self, ref: _Optional[_Union[_common_pb2.JobRef, _Mapping]] = ..., place: _Optional[int] = ..., among_own: _Optional[bool] = ...) -> None: ...

class MoveReply(_message.Message):
    __slots__ = ("error", "place")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    error: str
    place: int
    def __init__(self, error: _Optional[str] = ..., place: _Optional[int] = ...) -> None: ...

class ForceRequest(_message.Message):
    __slots__ = ("ref", "hosts", "is_unconstrained")
    REF_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    IS_UNCONSTRAINED_FIELD_NUMBER: _ClassVar[int]
    ref: _common_pb2.JobRef
    hosts: _containers.RepeatedCompositeFieldContainer[_common_pb2.HostShare]
    is_unconstrained: bool
    def __init__(self, ref: _Optional[_Union[_common_pb2.JobRef, _Mapping]] = ..., hosts: _Optional[_Iterable[_Union[_common_pb2.HostShare, _Mapping]]] = ..., is_unconstrained: _Optional[bool] = ...) -> None: ...

class RoleSize(_message.Message):
    __slots__ = ("role", "tasks")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    role: str
    tasks: int
    def __init__(self, role: _Optional[str] = ..., tasks: _Optional[int] = ...) -> None: ...

class ResizeRequest(_message.Message):
    __slots__ = ("ref", "action", "what", "tasks", "notify", "sizes")
    REF_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    NOTIFY_FIELD_NUMBER: _ClassVar[int]
    SIZES_FIELD_NUMBER: _ClassVar[int]
    ref: _common_pb2.JobRef
    action: ResizeAction
    what: str
    tasks: int
    notify: str
    sizes: _containers.RepeatedCompositeFieldContainer[RoleSize]
    def __init__(self, ref: _Optional[_Union[_common_pb2.JobRef, _Mapping]] = ..., action: _Optional[_Union[ResizeAction, str]] = ..., what: _Optional[str] = ..., tasks: _Optional[int] = ..., notify: _Optional[str] = ..., sizes: _Optional[_Iterable[_Union[RoleSize, _Mapping]]] = ...) -> None: ...

class ResizeReply(_message.Message):
    __slots__ = ("error", "before", "after")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    error: str
    before: _containers.RepeatedCompositeFieldContainer[RoleSize]
    after: _containers.RepeatedCompositeFieldContainer[RoleSize]
    def __init__(self, error: _Optional[str] = ..., before: _Optional[_Iterable[_Union[RoleSize, _Mapping]]] = ..., after: _Optional[_Iterable[_Union[RoleSize, _Mapping]]] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("refs", "only_end")
    REFS_FIELD_NUMBER: _ClassVar[int]
    ONLY_END_FIELD_NUMBER: _ClassVar[int]
    refs: _containers.RepeatedCompositeFieldContainer[_common_pb2.JobRef]
    only_end: bool
    def __init__(self, refs: _Optional[_Iterable[_Union[_common_pb2.JobRef, _Mapping]]] = ..., only_end: _Optional[bool] = ...) -> None: ...

class JobChange(_message.Message):
    __slots__ = ("job", "index", "state", "exit_status", "exit_reason", "hosts", "attempt")
    JOB_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    EXIT_STATUS_FIELD_NUMBER: _ClassVar[int]
    EXIT_REASON_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    job: int
    index: int
    state: _common_pb2.JobState
    exit_status: int
    exit_reason: str
    hosts: _containers.RepeatedScalarFieldContainer[str]
    attempt: int
    def __init__(self, job: _Optional[int] = ..., index: _Optional[int] = ..., state: _Optional[_Union[_common_pb2.JobState, str]] = ..., exit_status: _Optional[int] = ..., exit_reason: _Optional[str] = ..., hosts: _Optional[_Iterable[str]] = ..., attempt: _Optional[int] = ...) -> None: ...

class WaitRequest(_message.Message):
    __slots__ = ("condition",)
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    condition: str
    def __init__(self, condition: _Optional[str] = ...) -> None: ...

class WaitReply(_message.Message):
    __slots__ = ("verdict",)
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    verdict: WaitVerdict
    def __init__(self, verdict: _Optional[_Union[WaitVerdict, str]] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("refs", "host_names")
    REFS_FIELD_NUMBER: _ClassVar[int]
    HOST_NAMES_FIELD_NUMBER: _ClassVar[int]
    refs: _containers.RepeatedCompositeFieldContainer[_common_pb2.JobRef]
    host_names: bool
    def __init__(self, refs: _Optional[_Iterable[_Union[_common_pb2.JobRef, _Mapping]]] = ..., host_names: _Optional[bool] = ...) -> None: ...

class Explanation(_message.Message):
    __slots__ = ("job", "index", "reasons", "estimated_start")
    JOB_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_START_FIELD_NUMBER: _ClassVar[int]
    job: int
    index: int
    reasons: _containers.RepeatedCompositeFieldContainer[PendingReason]
    estimated_start: float
    def __init__(self, job: _Optional[int] = ..., index: _Optional[int] = ..., reasons: _Optional[_Iterable[_Union[PendingReason, _Mapping]]] = ..., estimated_start: _Optional[float] = ...) -> None: ...

class ExplainReply(_message.Message):
    __slots__ = ("explanations",)
    EXPLANATIONS_FIELD_NUMBER: _ClassVar[int]
    explanations: _containers.RepeatedCompositeFieldContainer[Explanation]
    def __init__(self, explanations: _Optional[_Iterable[_Union[Explanation, _Mapping]]] = ...) -> None: ...

class EnvironmentRequest(_message.Message):
    __slots__ = ("ref",)
    REF_FIELD_NUMBER: _ClassVar[int]
    ref: _common_pb2.JobRef
    def __init__(self, ref: _Optional[_Union[_common_pb2.JobRef, _Mapping]] = ...) -> None: ...

class EnvironmentReply(_message.Message):
    __slots__ = ("error", "environment")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    error: str
    environment: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, error: _Optional[str] = ..., environment: _Optional[_Iterable[bytes]] = ...) -> None: ...

class SlotsRequest(_message.Message):
    __slots__ = ("requirement", "with_hosts")
    REQUIREMENT_FIELD_NUMBER: _ClassVar[int]
    WITH_HOSTS_FIELD_NUMBER: _ClassVar[int]
    requirement: str
    with_hosts: bool
    def __init__(self, requirement: _Optional[str] = ..., with_hosts: _Optional[bool] = ...) -> None: ...

class SlotWindow(_message.Message):
    __slots__ = ("until", "slots", "hosts")
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    until: float
    slots: int
    hosts: _containers.RepeatedCompositeFieldContainer[_common_pb2.HostShare]
    def __init__(self, until: _Optional[float] = ..., slots: _Optional[int] = ..., hosts: _Optional[_Iterable[_Union[_common_pb2.HostShare, _Mapping]]] = ...) -> None: ...

class JobNote(_message.Message):
    __slots__ = ("time", "text", "state")
    TIME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    time: float
    text: str
    state: _common_pb2.JobState
    def __init__(self, time: _Optional[float] = ..., text: _Optional[str] = ..., state: _Optional[_Union[_common_pb2.JobState, str]] = ...) -> None: ...

class HistoryRequest(_message.Message):
    __slots__ = ("filter", "details", "shares_details", "between", "submitted", "dispatched", "completed", "normalized_to")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    SHARES_DETAILS_FIELD_NUMBER: _ClassVar[int]
    BETWEEN_FIELD_NUMBER: _ClassVar[int]
    SUBMITTED_FIELD_NUMBER: _ClassVar[int]
    DISPATCHED_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    NORMALIZED_TO_FIELD_NUMBER: _ClassVar[int]
    filter: JobFilter
    details: bool
    shares_details: bool
    between: TimeRange
    submitted: TimeRange
    dispatched: TimeRange
    completed: TimeRange
    normalized_to: str
    def __init__(self, filter: _Optional[_Union[JobFilter, _Mapping]] = ..., details: _Optional[bool] = ..., shares_details: _Optional[bool] = ..., between: _Optional[_Union[TimeRange, _Mapping]] = ..., submitted: _Optional[_Union[TimeRange, _Mapping]] = ..., dispatched: _Optional[_Union[TimeRange, _Mapping]] = ..., completed: _Optional[_Union[TimeRange, _Mapping]] = ..., normalized_to: _Optional[str] = ...) -> None: ...

class JobHistory(_message.Message):
    __slots__ = ("job", "index", "user", "name", "record", "notes", "seconds_by_state")
    class SecondsByStateEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    JOB_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    SECONDS_BY_STATE_FIELD_NUMBER: _ClassVar[int]
    job: int
    index: int
    user: str
    name: str
    record: JobRecord
    notes: _containers.RepeatedCompositeFieldContainer[JobNote]
    seconds_by_state: _containers.ScalarMap[str, float]
    def __init__(self, job: _Optional[int] = ..., index: _Optional[int] = ..., user: _Optional[str] = ..., name: _Optional[str] = ..., record: _Optional[_Union[JobRecord, _Mapping]] = ..., notes: _Optional[_Iterable[_Union[JobNote, _Mapping]]] = ..., seconds_by_state: _Optional[_Mapping[str, float]] = ...) -> None: ...

class HistoryPage(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[JobHistory]
    def __init__(self, jobs: _Optional[_Iterable[_Union[JobHistory, _Mapping]]] = ...) -> None: ...

class TimeRange(_message.Message):
    __slots__ = ("first", "last")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    first: float
    last: float
    def __init__(self, first: _Optional[float] = ..., last: _Optional[float] = ...) -> None: ...

class AccountsRequest(_message.Message):
    __slots__ = ("refs", "users", "queues", "projects", "hosts", "name", "states", "submitted", "dispatched", "completed", "reservation", "hung", "normalized_to", "form", "application", "service_class")
    REFS_FIELD_NUMBER: _ClassVar[int]
    USERS_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    PROJECTS_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    SUBMITTED_FIELD_NUMBER: _ClassVar[int]
    DISPATCHED_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    HUNG_FIELD_NUMBER: _ClassVar[int]
    NORMALIZED_TO_FIELD_NUMBER: _ClassVar[int]
    FORM_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_FIELD_NUMBER: _ClassVar[int]
    SERVICE_CLASS_FIELD_NUMBER: _ClassVar[int]
    refs: _containers.RepeatedCompositeFieldContainer[_common_pb2.JobRef]
    users: _containers.RepeatedScalarFieldContainer[str]
    queues: _containers.RepeatedScalarFieldContainer[str]
    projects: _containers.RepeatedScalarFieldContainer[str]
    hosts: _containers.RepeatedScalarFieldContainer[str]
    name: str
    states: _containers.RepeatedScalarFieldContainer[_common_pb2.JobState]
    submitted: TimeRange
    dispatched: TimeRange
    completed: TimeRange
    reservation: str
    hung: bool
    normalized_to: str
    form: AccountForm
    application: str
    service_class: str
    def __init__(self, refs: _Optional[_Iterable[_Union[_common_pb2.JobRef, _Mapping]]] = ..., users: _Optional[_Iterable[str]] = ..., queues: _Optional[_Iterable[str]] = ..., projects: _Optional[_Iterable[str]] = ..., hosts: _Optional[_Iterable[str]] = ..., name: _Optional[str] = ..., states: _Optional[_Iterable[_Union[_common_pb2.JobState, str]]] = ..., submitted: _Optional[_Union[TimeRange, _Mapping]] = ..., dispatched: _Optional[_Union[TimeRange, _Mapping]] = ..., completed: _Optional[_Union[TimeRange, _Mapping]] = ..., reservation: _Optional[str] = ..., hung: _Optional[bool] = ..., normalized_to: _Optional[str] = ..., form: _Optional[_Union[AccountForm, str]] = ..., application: _Optional[str] = ..., service_class: _Optional[str] = ...) -> None: ...

class AccountRecord(_message.Message):
    __slots__ = ("record",)
    RECORD_FIELD_NUMBER: _ClassVar[int]
    record: JobRecord
    def __init__(self, record: _Optional[_Union[JobRecord, _Mapping]] = ...) -> None: ...

class Spread(_message.Message):
    __slots__ = ("count", "total", "least", "most")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    LEAST_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    count: int
    total: float
    least: float
    most: float
    def __init__(self, count: _Optional[int] = ..., total: _Optional[float] = ..., least: _Optional[float] = ..., most: _Optional[float] = ...) -> None: ...

class AccountSummary(_message.Message):
    __slots__ = ("done", "exited", "cpu_s", "wait_s", "turnaround_s", "hog_factor", "expansion_factor", "run_s", "first_end", "last_end", "slot_s", "revocable_slot_s")
    DONE_FIELD_NUMBER: _ClassVar[int]
    EXITED_FIELD_NUMBER: _ClassVar[int]
    CPU_S_FIELD_NUMBER: _ClassVar[int]
    WAIT_S_FIELD_NUMBER: _ClassVar[int]
    TURNAROUND_S_FIELD_NUMBER: _ClassVar[int]
    HOG_FACTOR_FIELD_NUMBER: _ClassVar[int]
    EXPANSION_FACTOR_FIELD_NUMBER: _ClassVar[int]
    RUN_S_FIELD_NUMBER: _ClassVar[int]
    FIRST_END_FIELD_NUMBER: _ClassVar[int]
    LAST_END_FIELD_NUMBER: _ClassVar[int]
    SLOT_S_FIELD_NUMBER: _ClassVar[int]
    REVOCABLE_SLOT_S_FIELD_NUMBER: _ClassVar[int]
    done: int
    exited: int
    cpu_s: Spread
    wait_s: Spread
    turnaround_s: Spread
    hog_factor: Spread
    expansion_factor: Spread
    run_s: Spread
    first_end: float
    last_end: float
    slot_s: float
    revocable_slot_s: float
    def __init__(self, done: _Optional[int] = ..., exited: _Optional[int] = ..., cpu_s: _Optional[_Union[Spread, _Mapping]] = ..., wait_s: _Optional[_Union[Spread, _Mapping]] = ..., turnaround_s: _Optional[_Union[Spread, _Mapping]] = ..., hog_factor: _Optional[_Union[Spread, _Mapping]] = ..., expansion_factor: _Optional[_Union[Spread, _Mapping]] = ..., run_s: _Optional[_Union[Spread, _Mapping]] = ..., first_end: _Optional[float] = ..., last_end: _Optional[float] = ..., slot_s: _Optional[float] = ..., revocable_slot_s: _Optional[float] = ...) -> None: ...

class AccountPage(_message.Message):
    __slots__ = ("jobs", "summary")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[AccountRecord]
    summary: AccountSummary
    def __init__(self, jobs: _Optional[_Iterable[_Union[AccountRecord, _Mapping]]] = ..., summary: _Optional[_Union[AccountSummary, _Mapping]] = ...) -> None: ...

class UsageRequest(_message.Message):
    __slots__ = ("keys", "bounds", "users", "groups", "projects", "queues")
    KEYS_FIELD_NUMBER: _ClassVar[int]
    BOUNDS_FIELD_NUMBER: _ClassVar[int]
    USERS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    PROJECTS_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedScalarFieldContainer[UsageKey]
    bounds: _containers.RepeatedScalarFieldContainer[float]
    users: _containers.RepeatedScalarFieldContainer[str]
    groups: _containers.RepeatedScalarFieldContainer[str]
    projects: _containers.RepeatedScalarFieldContainer[str]
    queues: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, keys: _Optional[_Iterable[_Union[UsageKey, str]]] = ..., bounds: _Optional[_Iterable[float]] = ..., users: _Optional[_Iterable[str]] = ..., groups: _Optional[_Iterable[str]] = ..., projects: _Optional[_Iterable[str]] = ..., queues: _Optional[_Iterable[str]] = ...) -> None: ...

class UsageRow(_message.Message):
    __slots__ = ("user", "group", "project", "queue", "period", "done", "exited", "cpu_s", "slot_s", "gpu_s", "wait_s", "memory_mib_max")
    USER_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    EXITED_FIELD_NUMBER: _ClassVar[int]
    CPU_S_FIELD_NUMBER: _ClassVar[int]
    SLOT_S_FIELD_NUMBER: _ClassVar[int]
    GPU_S_FIELD_NUMBER: _ClassVar[int]
    WAIT_S_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_MAX_FIELD_NUMBER: _ClassVar[int]
    user: str
    group: str
    project: str
    queue: str
    period: int
    done: int
    exited: int
    cpu_s: float
    slot_s: float
    gpu_s: float
    wait_s: float
    memory_mib_max: int
    def __init__(self, user: _Optional[str] = ..., group: _Optional[str] = ..., project: _Optional[str] = ..., queue: _Optional[str] = ..., period: _Optional[int] = ..., done: _Optional[int] = ..., exited: _Optional[int] = ..., cpu_s: _Optional[float] = ..., slot_s: _Optional[float] = ..., gpu_s: _Optional[float] = ..., wait_s: _Optional[float] = ..., memory_mib_max: _Optional[int] = ...) -> None: ...

class UsagePage(_message.Message):
    __slots__ = ("rows",)
    ROWS_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedCompositeFieldContainer[UsageRow]
    def __init__(self, rows: _Optional[_Iterable[_Union[UsageRow, _Mapping]]] = ...) -> None: ...

class PeekTicketRequest(_message.Message):
    __slots__ = ("ref", "filter", "role", "task", "run")
    REF_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    ref: _common_pb2.JobRef
    filter: JobFilter
    role: str
    task: int
    run: int
    def __init__(self, ref: _Optional[_Union[_common_pb2.JobRef, _Mapping]] = ..., filter: _Optional[_Union[JobFilter, _Mapping]] = ..., role: _Optional[str] = ..., task: _Optional[int] = ..., run: _Optional[int] = ...) -> None: ...

class PeekTicketReply(_message.Message):
    __slots__ = ("error", "key", "host", "address", "ticket", "has_error_file", "has_tasks", "task")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    HAS_ERROR_FILE_FIELD_NUMBER: _ClassVar[int]
    HAS_TASKS_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    error: str
    key: _common_pb2.AttemptKey
    host: str
    address: str
    ticket: bytes
    has_error_file: bool
    has_tasks: bool
    task: _common_pb2.TaskRun
    def __init__(self, error: _Optional[str] = ..., key: _Optional[_Union[_common_pb2.AttemptKey, _Mapping]] = ..., host: _Optional[str] = ..., address: _Optional[str] = ..., ticket: _Optional[bytes] = ..., has_error_file: _Optional[bool] = ..., has_tasks: _Optional[bool] = ..., task: _Optional[_Union[_common_pb2.TaskRun, _Mapping]] = ...) -> None: ...

class AttachTicketRequest(_message.Message):
    __slots__ = ("key", "host")
    KEY_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    key: _common_pb2.AttemptKey
    host: str
    def __init__(self, key: _Optional[_Union[_common_pb2.AttemptKey, _Mapping]] = ..., host: _Optional[str] = ...) -> None: ...

class AttachTicketReply(_message.Message):
    __slots__ = ("error", "key", "host", "address", "ticket")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    error: str
    key: _common_pb2.AttemptKey
    host: str
    address: str
    ticket: bytes
    def __init__(self, error: _Optional[str] = ..., key: _Optional[_Union[_common_pb2.AttemptKey, _Mapping]] = ..., host: _Optional[str] = ..., address: _Optional[str] = ..., ticket: _Optional[bytes] = ...) -> None: ...

class CopyTicketRequest(_message.Message):
    __slots__ = ("key", "number", "back")
    KEY_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    BACK_FIELD_NUMBER: _ClassVar[int]
    key: _common_pb2.AttemptKey
    number: int
    back: bool
    def __init__(self, key: _Optional[_Union[_common_pb2.AttemptKey, _Mapping]] = ..., number: _Optional[int] = ..., back: _Optional[bool] = ...) -> None: ...

class CopyTicketReply(_message.Message):
    __slots__ = ("error", "key", "host", "address", "ticket", "user", "uid", "gid", "path", "mode")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    GID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    error: str
    key: _common_pb2.AttemptKey
    host: str
    address: str
    ticket: bytes
    user: str
    uid: int
    gid: int
    path: str
    mode: str
    def __init__(self, error: _Optional[str] = ..., key: _Optional[_Union[_common_pb2.AttemptKey, _Mapping]] = ..., host: _Optional[str] = ..., address: _Optional[str] = ..., ticket: _Optional[bytes] = ..., user: _Optional[str] = ..., uid: _Optional[int] = ..., gid: _Optional[int] = ..., path: _Optional[str] = ..., mode: _Optional[str] = ...) -> None: ...

class PeekRequest(_message.Message):
    __slots__ = ("job", "follow", "last_bytes")
    JOB_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    LAST_BYTES_FIELD_NUMBER: _ClassVar[int]
    job: PeekTicketRequest
    follow: bool
    last_bytes: int
    def __init__(self, job: _Optional[_Union[PeekTicketRequest, _Mapping]] = ..., follow: _Optional[bool] = ..., last_bytes: _Optional[int] = ...) -> None: ...

class DependenciesRequest(_message.Message):
    __slots__ = ("ref", "children", "depth")
    REF_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    ref: _common_pb2.JobRef
    children: bool
    depth: int
    def __init__(self, ref: _Optional[_Union[_common_pb2.JobRef, _Mapping]] = ..., children: _Optional[bool] = ..., depth: _Optional[int] = ...) -> None: ...

class DependencyLink(_message.Message):
    __slots__ = ("job", "relative", "index", "status", "name", "level")
    JOB_FIELD_NUMBER: _ClassVar[int]
    RELATIVE_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    job: int
    relative: int
    index: int
    status: str
    name: str
    level: int
    def __init__(self, job: _Optional[int] = ..., relative: _Optional[int] = ..., index: _Optional[int] = ..., status: _Optional[str] = ..., name: _Optional[str] = ..., level: _Optional[int] = ...) -> None: ...

class DependenciesReply(_message.Message):
    __slots__ = ("error", "condition", "links")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    error: str
    condition: str
    links: _containers.RepeatedCompositeFieldContainer[DependencyLink]
    def __init__(self, error: _Optional[str] = ..., condition: _Optional[str] = ..., links: _Optional[_Iterable[_Union[DependencyLink, _Mapping]]] = ...) -> None: ...
