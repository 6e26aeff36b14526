"""Settings common to both ends of a gRPC channel: protocol version, metadata keys, channel options.

The keepalive settings detect a dead link or a stopped peer within about 8 s; the defaults would take hours.
"""

PROTOCOL = 1

# Metadata by which an agent identifies the user of a command. Accepted from agents only.
CALLER_USER = "lava-user"
CALLER_UID = "lava-uid"
CALLER_GID = "lava-gid"

# In Welcome.settings: seconds for which a kept task waits for its caller.
TASK_PATIENCE = "LAVA_TASK_PATIENCE"

# In Welcome.settings of revocable hosts: the program that knows when they are taken away, and its interval in seconds.
REVOCATION_NOTICE = "LAVA_REVOCATION_NOTICE"
REVOCATION_INTERVAL = "LAVA_REVOCATION_INTERVAL"
# In Welcome.settings: seconds after which a host without a process of a job on several hosts is reported, 0: never;
# name or path of py-spy.
UNUSED_HOST = "LAVA_UNUSED_HOST"
DEBUGGER = "LAVA_PY_SPY"

# In Welcome.settings: optional kinds of reports that this master understands, separated by blanks.
REPORTS_UNDERSTOOD = "LAVA_REPORTS"
LATER_REPORTS = (
    "limit_reached",
    "wanted",
)

AGENT_MESSAGE_MAX = 32 << 20
WRITE_FAILED = "Internal error from Core"  # gRPC's text where a message is written to a call that breaks meanwhile

KEEPALIVE = [
    ("grpc.keepalive_time_ms", 5000),
    ("grpc.keepalive_timeout_ms", 3000),
    # Without it the library waits a minute for a peer that is stopped, whose kernel still answers.
    ("grpc.http2.ping_timeout_ms", 3000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
]

CHANNEL_OPTIONS = [
    *KEEPALIVE,
    ("grpc.max_receive_message_length", AGENT_MESSAGE_MAX),
    ("grpc.max_send_message_length", AGENT_MESSAGE_MAX),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 5000),
    ("grpc.use_local_subchannel_pool", 1),
]

# Anyone may connect; who says nothing holds a descriptor that others need (2 minutes if the library had its way).
HANDSHAKE_MS = 15_000

SERVER_OPTIONS = [
    *KEEPALIVE,
    ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
    ("grpc.http2.min_ping_interval_without_data_ms", 4000),
    ("grpc.max_receive_message_length", AGENT_MESSAGE_MAX),
    ("grpc.max_send_message_length", AGENT_MESSAGE_MAX),
    ("grpc.so_reuseport", 0),
]
