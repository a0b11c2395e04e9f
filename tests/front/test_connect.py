"""`tenure.connect`: what a URL and its options name, refused before anything is touched."""

import sys
from typing import Any

import pytest

import tenure

STORES = [
    "memory://",
    "sqlite:///jobs.db",
    "sqlite:///:memory:",
    "redis://localhost/1",
    "rediss://user:hidden@localhost",
    "unix:///run/redis.sock",
    "postgresql://user:hidden@localhost/app?sslmode=require",
]


@pytest.mark.parametrize("url", STORES)
def test_a_url_makes_an_unopened_queue_of_its_store(url: str) -> None:
    """Nothing is connected to, so that a program may do it when it is imported."""
    assert not tenure.connect(url).closed


@pytest.mark.parametrize("url", STORES)
@pytest.mark.parametrize("migrate", [True, "false"])
def test_every_store_takes_migrate(url: str, migrate: Any) -> None:
    """A user changes the URL and nothing else."""
    tenure.connect(url, migrate=migrate)
    with pytest.raises(tenure.InvalidConfiguration, match="migrate must be true or false"):
        tenure.connect(url, migrate="perhaps")


@pytest.mark.parametrize(
    ("url", "options", "message"),
    [
        ("jobs.db", {}, "url must start with memory:// or"),
        ("postgres+psycopg://h/d", {}, "url must start with"),
        ("sqlit:///jobs.db", {}, "did you mean sqlite://"),
        ("sqlite://jobs.db", {}, "must be 'sqlite:///relative.db'"),
        ("sqlite:///jobs.db?synchronous=OFF", {}, "synchronous must be FULL or NORMAL, got 'OFF'"),
        ("sqlite:///jobs.db?busy_timout=3", {}, "did you mean 'busy_timeout'"),
        ("sqlite:///jobs.db?busy_timeout=soon", {}, "busy_timeout must be a number of seconds"),
        ("sqlite:///jobs.db?busy_timeout=3", {"busy_timeout": 4}, "must be given once"),
        ("sqlite:///jobs.db?busy_timeout=3&busy_timeout=4", {}, "must be given once"),
        ("sqlite://host//jobs.db", {}, "got 'sqlite://host//jobs.db'"),
        ("sqlite:///", {}, "got 'sqlite:///'"),
        ("memory:///x", {}, "got 'memory:///x'"),
        ("memory://host", {}, "must be just 'memory://'"),
        ("memory://", {"synchronous": "FULL"}, "it has none"),
        ("redis://localhost", {"namespace": "{a}"}, "namespace must be 1 to 64 characters"),
        ("redis://localhost", {"timeout": 0}, "timeout must be more than 0"),
        ("postgresql://localhost/app", {"schema": "public"}, "schema must be a schema of tenure"),
        ("postgresql://localhost/app", {"pool_size": 1.5}, "pool_size must be a whole number"),
        (7, {}, "url must be a store URL such as"),
        ("memory://", {"payload_limit": 0}, "payload_limit must be at least 1 byte"),
    ],
)
def test_what_is_wrong_is_named(url: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(tenure.InvalidConfiguration, match=message.replace("(", r"\(")):
        tenure.connect(url, **options)


@pytest.mark.parametrize(
    "url",
    [
        "redis://user:hidden@localhost?nonsense=1",
        "postgresql://user:hidden@localhost/app?pool_size=no",
        "mysql://user:hidden@localhost/app",
    ],
)
def test_no_message_shows_a_password(url: str) -> None:
    with pytest.raises(tenure.InvalidConfiguration) as caught:
        tenure.connect(url)
    assert "hidden" not in str(caught.value)
    assert "hidden" not in repr(caught.value.value)


@pytest.mark.parametrize(
    ("package", "module", "url", "extra"),
    [
        ("redis", "tenure.drivers.redis", "redis://localhost", "tenure[redis]"),
        ("asyncpg", "tenure.drivers.postgres", "postgresql://localhost/app", "tenure[postgres]"),
    ],
)
def test_a_package_that_is_not_installed_is_named_with_its_extra(
    package: str, module: str, url: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):
        if name.partition(".")[0] == package or name.startswith(module):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(tenure.InvalidConfiguration) as caught:
        tenure.connect(url)
    assert f"pip install '{extra}'" in str(caught.value)
    assert f"the package {package}," in str(caught.value)
