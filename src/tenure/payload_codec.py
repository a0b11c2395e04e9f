"""What a queue may put between its values and its store, for encryption at rest. An interface only.

It sees the JSON bytes of payloads, results and progress; never names, headers, keys or errors.
"""

from typing import Protocol

__all__ = ["PayloadCodec"]


class PayloadCodec(Protocol):
    """Turns JSON bytes into what is stored, and back. `Fernet` is one.

    Called on event loops and in handlers' threads, several at a time: it must not wait for anything
    and must be safe to share. Its `repr` must not show a key.
    """

    @property
    def digest_key(self) -> bytes:
        """A secret of 16 to 64 bytes, the same in all processes that share a store.

        A store tells the repeat of a dispatch by a digest of its content, which this keys: so that
        equal contents can be found equal though they are encoded differently each time, and what a
        job carries can not be guessed from its digest. When it changes, a dispatch repeated under
        an id that is stored already is refused as a duplicate.
        """
        ...

    def encode(self, data: bytes) -> bytes:
        """What is stored in place of `data`."""
        ...

    def decode(self, data: bytes) -> bytes:
        """What `encode` was given.

        Raises `UnknownKey` for data under a key that it does not have: jobs that carry such are
        left to other workers. Anything else that it raises means that `data` is damaged.
        """
        ...
