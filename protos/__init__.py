"""The wire: messages, services, frames of the local socket, and the trust between daemons. Imports no other package
here.
"""


def __getattr__(name: str) -> str:
    """Return ``__version__``, which is looked for when it is asked for: commands start without it."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from protos.version import version

    return version()
