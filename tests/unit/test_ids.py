"""Job ids: UUID version 7, in the order of time, never twice."""

import os
import random
import uuid

from hypothesis import given
from hypothesis import strategies as st

from tenure.ids import JobIds

milliseconds = st.integers(0, 2**48 - 1)


@given(milliseconds)
def test_an_id_is_a_uuid_of_version_7_with_its_time(instant: int) -> None:
    """RFC 9562, section 5.7."""
    text = JobIds().new(instant)
    value = uuid.UUID(text)
    assert str(value) == text
    assert value.version == 7
    assert value.variant == uuid.RFC_4122
    assert value.int >> 80 == instant


@given(milliseconds, milliseconds)
def test_ids_sort_by_the_time_they_were_made(one: int, other: int) -> None:
    """As text too."""
    ids = JobIds()
    if one != other:
        assert (ids.new(one) < ids.new(other)) == (one < other)


def test_ids_of_one_instant_differ() -> None:
    """74 random bits each."""
    ids = JobIds()
    made = {ids.new(1_900_000_000_000) for _ in range(20_000)}
    assert len(made) == 20_000


def test_every_random_bit_is_used() -> None:
    """None is fixed but those of version and variant."""
    ids = JobIds()
    ones = zeros = 0
    for _ in range(200):
        value = uuid.UUID(ids.new(0)).int
        ones |= value
        zeros |= ~value
    varying = ones & zeros & (2**128 - 1)
    assert varying.bit_count() == 74


def test_two_makers_never_agree_also_when_the_program_seeds_random() -> None:
    """The generator is its own, seeded by the kernel."""
    made: list[str] = []
    for _ in range(3):
        random.seed(1)
        made.append(JobIds().new(5))
    assert len(set(made)) == 3


def test_making_ids_leaves_the_programs_random_alone() -> None:
    """A program that seeds `random` gets its own numbers."""
    random.seed(1)
    expected = random.random()
    random.seed(1)
    JobIds().new(5)
    assert random.random() == expected


def test_a_forked_child_makes_other_ids_than_its_parent() -> None:
    """The fork is noticed at the next id."""
    ids = JobIds()
    ids.new(0)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        try:
            os.write(write, ids.new(0).encode())
        finally:
            os._exit(0)
    os.close(write)
    theirs = os.read(read, 100).decode()
    os.close(read)
    os.waitpid(child, 0)
    assert len(theirs) == 36
    assert theirs != ids.new(0)
