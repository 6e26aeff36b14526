"""Database URL: LAVA_DATABASE parsed, and its form for display."""

from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from lavad.store.errors import StoreRefused

_POSTGRES = frozenset({"postgres", "postgresql", "postgresql+psycopg"})


def parse(text: str, name: str = "LAVA_DATABASE") -> URL:
    """Convert a path, ``sqlite:///...`` or ``postgresql://...`` to a URL with the driver in use.

    Args:
        text: what the site wrote.
        name: what messages call it.

    Raises:
        StoreRefused: another database, a relative path, or no URL at all.
    """
    if "://" not in text:
        return _sqlite(text, name)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise StoreRefused(f"{name} is not a database URL.") from None
    if url.drivername in _POSTGRES:
        return url.set(drivername="postgresql+psycopg")
    if url.drivername == "sqlite":
        return _sqlite(url.database or "", name)
    raise StoreRefused(f"{name} names {url.drivername}; sqlite and postgresql are supported.")


def _sqlite(path: str, name: str) -> URL:
    if not Path(path).is_absolute():
        raise StoreRefused(f"{name} must name an absolute path, not {path!r}.")
    return URL.create("sqlite", database=path)


def shown(url: URL) -> str:
    """Return the URL without its password, for logs and messages."""
    return url.render_as_string(hide_password=True)
