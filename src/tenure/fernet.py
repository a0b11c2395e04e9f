"""Encryption at rest with Fernet. The only module that imports `cryptography`, and on demand.

A token is the id of its key, a colon, and Fernet's own token (AES-128-CBC and HMAC-SHA256, see
https://github.com/fernet/spec). The id tells a key that is missing here from data that is damaged,
which Fernet by itself cannot. Must never show a key, in errors neither.
"""

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, cast

from tenure.errors import InvalidConfiguration, SerializationError, UnknownKey

if TYPE_CHECKING:
    from cryptography.fernet import Fernet as Token

__all__ = ["Fernet"]

_ID_BYTES = 6


class Fernet:
    """A `PayloadCodec`: encrypts payloads, results and progress; extra `[crypto]`.

        queue = tenure.connect(url, codec=tenure.Fernet(keys))

    `keys` is one key, or several: the first encrypts, all decrypt. To rotate, give every process
    `[old, new]`, then `[new, old]`, and drop the old one when no stored job needs it any more. The
    last key also keys the digest by which a repeated dispatch is told; when that is dropped, a
    dispatch repeated under an id of before is refused as a duplicate.

    A key is what `Fernet.generate_key()` gives, text or bytes. Raises `InvalidConfiguration` for
    anything else, and where the package `cryptography` is not installed.
    """

    __slots__ = ("_digest_key", "_first", "_tokens")

    def __init__(self, keys: str | bytes | Sequence[str | bytes]) -> None:
        given = _listed(keys)
        raw = [_key(index, key) for index, key in enumerate(given)]
        token = _import()
        self._tokens: dict[bytes, Token] = {
            _key_id(key): token(urlsafe_b64encode(key)) for key in raw
        }
        self._first = _key_id(raw[0])
        self._digest_key = blake2b(raw[-1], digest_size=32, person=b"tenure content").digest()

    @staticmethod
    def generate_key() -> str:
        """A new random key, as text. Keep it where secrets are kept; lost, so are the payloads."""
        return urlsafe_b64encode(os.urandom(32)).decode("ascii")

    @property
    def digest_key(self) -> bytes:
        """See `PayloadCodec.digest_key`; derived from the last key, and no help to find it."""
        return self._digest_key

    def encode(self, data: bytes) -> bytes:
        """Encrypt with the first key."""
        return self._first + b":" + self._tokens[self._first].encrypt(data)

    def decode(self, data: bytes) -> bytes:
        """Decrypt; raises `UnknownKey`, and `SerializationError` for what is damaged."""
        key_id, colon, token = data.partition(b":")
        if not colon or not _is_id(key_id):
            raise SerializationError("not encrypted as expected: it names no key")
        fernet = self._tokens.get(key_id)
        if fernet is None:
            raise UnknownKey(key_id.decode("ascii"))
        from cryptography.fernet import InvalidToken

        try:
            return fernet.decrypt(token)
        except InvalidToken:
            raise SerializationError(
                "damaged: it does not decrypt under the key it names"
            ) from None

    def __repr__(self) -> str:
        ids = ", ".join(key_id.decode("ascii") for key_id in self._tokens)
        return f"<Fernet with the keys of the ids {ids}>"


def _import() -> "type[Token]":
    try:
        from cryptography.fernet import Fernet as Token
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "cryptography":
            raise
        raise InvalidConfiguration(
            "codec",
            "Fernet",
            "needs the package cryptography, which is not installed: pip install 'tenure[crypto]'",
        ) from error
    return Token


def _listed(keys: object) -> Sequence[object]:
    if isinstance(keys, str | bytes):
        return (keys,)
    kind = type(keys).__name__
    if not isinstance(keys, Sequence) or not keys:
        rule = "must be a key or a list of keys, as Fernet.generate_key() makes them"
        raise InvalidConfiguration("keys", kind, rule)
    return cast("Sequence[object]", keys)


def _key(index: int, key: object) -> bytes:
    """The 32 bytes of a key."""
    if isinstance(key, str | bytes):
        try:
            text = key.encode("ascii") if isinstance(key, str) else key
            raw = urlsafe_b64decode(text)
        except ValueError:  # that of base64 and that of ASCII are such
            raw = text = b""
        # Decoding passes over what it does not know, and stops at the first "=".
        if len(raw) == 32 and urlsafe_b64encode(raw) == text:
            return raw
    raise InvalidConfiguration(
        f"keys[{index}]",
        _kind(key),
        "must be 32 bytes in url-safe base64, as Fernet.generate_key() makes them",
    )


def _kind(value: object) -> str:
    """What a refused value was, without showing it: it may be a key with a typing error."""
    return f"{type(value).__name__} (not shown)"


def _key_id(key: bytes) -> bytes:
    """Names a key without telling it."""
    digest = blake2b(key, digest_size=_ID_BYTES, person=b"tenure key id")
    return digest.hexdigest().encode("ascii")


def _is_id(text: bytes) -> bool:
    return len(text) == 2 * _ID_BYTES and all(char in b"0123456789abcdef" for char in text)
