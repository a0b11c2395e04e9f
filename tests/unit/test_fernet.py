"""`Fernet`: what it encrypts, what it refuses, and what it never shows."""

import subprocess
import sys
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenure
from tenure.call import new_job
from tenure.clock import SystemClock
from tenure.codec import SEAL, decode, encode, sealed
from tenure.ids import JobIds
from tenure.types import NewJob, content_digest

# Always the same, since they are part of the names of tests.
OLD, NEW = (urlsafe_b64encode(bytes(range(n, n + 32))).decode() for n in (1, 101))


@given(st.binary(max_size=4096))
def test_what_is_encrypted_decrypts_and_is_never_the_same_twice(data: bytes) -> None:
    codec = tenure.Fernet(OLD)
    first, second = codec.encode(data), codec.encode(data)
    assert first != second
    assert codec.decode(first) == codec.decode(second) == data


def test_the_first_key_encrypts_and_every_key_decrypts() -> None:
    """Rotation: `[old, new]` everywhere, then `[new, old]`, then `new` alone."""
    old, both, rotated, new = (
        tenure.Fernet(keys) for keys in (OLD, [OLD, NEW], (NEW, OLD), NEW.encode())
    )
    before, after = both.encode(b"1"), rotated.encode(b"2")
    assert old.decode(before) == both.decode(before) == rotated.decode(before) == b"1"
    assert both.decode(after) == rotated.decode(after) == new.decode(after) == b"2"
    with pytest.raises(tenure.UnknownKey) as caught:
        new.decode(before)
    assert caught.value.key_id is not None
    assert caught.value.key_id in str(caught.value)
    with pytest.raises(tenure.UnknownKey):
        old.decode(after)


def test_a_generated_key_is_new_each_time_and_is_a_key() -> None:
    keys = {tenure.Fernet.generate_key() for _ in range(9)}
    assert len(keys) == 9
    tenure.Fernet([*keys])


@given(st.data())
def test_damage_is_not_taken_for_a_missing_key(data: st.DataObject) -> None:
    """I12: any byte changed in what follows the id of a known key."""
    codec = tenure.Fernet(OLD)
    token = bytearray(codec.encode(b'{"to": 1}'))
    index = data.draw(st.integers(13, len(token) - 4))
    token[index] = data.draw(st.integers(0, 255).filter(lambda byte: byte != token[index]))
    with pytest.raises(tenure.SerializationError) as caught:
        codec.decode(bytes(token))
    assert not isinstance(caught.value, tenure.UnknownKey)


@pytest.mark.parametrize("data", [b"", b":", b"token", b"ABCDEF012345:x", b"0123:x", b"\xff" * 40])
def test_what_names_no_key_is_damaged(data: bytes) -> None:
    with pytest.raises(tenure.SerializationError) as caught:
        tenure.Fernet(OLD).decode(data)
    assert not isinstance(caught.value, tenure.UnknownKey)


@pytest.mark.parametrize(
    "keys", [[], (), None, 5, "", b"short", OLD[:-5], [OLD, NEW + "AAAA"], [1]]
)
def test_what_is_no_key_is_refused_and_not_shown(keys: Any) -> None:
    with pytest.raises(tenure.InvalidConfiguration) as caught:
        tenure.Fernet(keys)
    assert caught.value.option.startswith("keys")
    for part in (OLD, NEW):
        assert part[:-6] not in str(caught.value)


def test_no_key_is_shown() -> None:
    """Not by the codec, a queue that has it, its digest key, or the errors."""
    codec = tenure.Fernet([OLD, NEW])
    queue = tenure.connect("memory://", codec=codec)
    with pytest.raises(tenure.UnknownKey) as caught:
        tenure.Fernet(NEW).decode(codec.encode(b"1"))
    texts = [repr(codec), str(codec), repr(queue), repr(codec.digest_key), str(caught.value)]
    for text in texts:
        assert OLD[:-2] not in text
        assert NEW[:-2] not in text


def test_the_digest_key_is_that_of_the_last_key() -> None:
    """Keys that are put in front leave it as it is."""
    assert tenure.Fernet(OLD).digest_key == tenure.Fernet([NEW, OLD]).digest_key
    assert tenure.Fernet(OLD).digest_key != tenure.Fernet(NEW).digest_key


def test_the_digest_is_of_the_plain_content_and_keyed() -> None:
    """The same for each dispatch of a content, another without the key or with other content."""

    def made(payload: object, codec: tenure.Fernet | None) -> NewJob:
        return new_job(
            tenure.Call("send", payload, id="a"),
            ids=JobIds(),
            now=SystemClock().now(),
            payload_limit=100,
            codec=codec,
        )

    first, second = made([1], tenure.Fernet(OLD)), made([1], tenure.Fernet([NEW, OLD]))
    assert first.payload != second.payload
    assert content_digest(first) == content_digest(second) == first.content
    assert content_digest(first) != content_digest(made([1], None))
    assert content_digest(first) != content_digest(made([2], tenure.Fernet(OLD)))
    assert content_digest(first) != content_digest(made([1], tenure.Fernet(NEW)))
    assert len(content_digest(first)) == 8


def test_the_limit_is_on_the_json_and_not_on_what_is_stored() -> None:
    codec = tenure.Fernet(OLD)
    text = "x" * 98
    data = encode(text, root="payload", limit=100, codec=codec)
    assert len(data) > 100
    assert decode(data, codec) == text
    with pytest.raises(tenure.SerializationError, match="at most 100 bytes"):
        encode(text + "x", root="payload", limit=100, codec=codec)


@pytest.mark.parametrize("value", [None, True, False, 0, -1, "sealed:", [], {}, "", 1.5])
def test_no_json_is_taken_for_sealed(value: object) -> None:
    """Plain JSON is read as it is, with a codec too: a store may be older than its encryption."""
    plain = encode(value, root="payload", limit=100)
    assert not plain.startswith(SEAL)
    assert decode(plain, tenure.Fernet(OLD)) == value


def test_without_a_codec_what_is_sealed_needs_a_key() -> None:
    """I12: no damage, also for a worker that has no codec at all."""
    with pytest.raises(tenure.UnknownKey):
        decode(sealed(b"1", tenure.Fernet(OLD)))


class Broken:
    """A codec of the user's own with a defect."""

    digest_key = b"k" * 16

    def encode(self, data: bytes) -> bytes:
        return data

    def decode(self, data: bytes) -> bytes:
        raise LookupError("no such thing")


def test_whatever_a_codec_raises_for_damaged_data_is_a_serialization_error() -> None:
    with pytest.raises(tenure.SerializationError) as caught:
        decode(SEAL + b"1", Broken())
    assert isinstance(caught.value.__cause__, LookupError)


class Short(Broken):
    digest_key = b""


@pytest.mark.parametrize("codec", [OLD, OLD.encode(), tenure.Fernet, Short(), object()])
def test_what_is_no_codec_is_refused_and_not_shown(codec: Any) -> None:
    """A key in its place is a likely mistake."""
    with pytest.raises(tenure.InvalidConfiguration) as caught:
        tenure.connect("memory://", codec=codec)
    assert caught.value.option == "codec"
    assert OLD not in str(caught.value)


def test_a_missing_package_is_told_with_its_extra() -> None:
    program = (
        "import sys; sys.modules['cryptography'] = None\n"
        "import tenure\n"
        "try: tenure.Fernet(tenure.Fernet.generate_key())\n"
        "except tenure.InvalidConfiguration as error: print(error)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert "pip install 'tenure[crypto]'" in ran.stdout
