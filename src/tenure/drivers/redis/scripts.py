"""The Lua of this driver, by name, and the keys that a namespace gives to it.

Each script is a file that says what it takes and answers; lines `-- uses: a, b` put the parts of
those names before it. Loads text and nothing else: no value ever becomes part of a script, so that
a server keeps each one under its digest.

*Constants.* A server runs the whole text for each call, and there a function costs as much as the
locals that it captures: with the constants among them, making the functions took half of the time
of a dispatch of one job. So they, and the names of keys, are written into the places that name
them; a script that writes to a key for each job of a batch asks for it once (`batch_of`).

*Seldom.* Making its functions is a third of what a call for one job costs. So the parts named by a
line `-- seldom: a, b` are put into one function, and made when the first of theirs is called: most
calls have usual jobs only, and need none of them.

*Keys.* All keys of a store share the hash tag `{namespace}`, and so one slot: every script may
touch any of them, on a single server and in a cluster. Which ones it touches depends on what it
reads (the queue of a job, say), so they cannot all be declared; the slot of those that are declared
is theirs too, and that is what a cluster goes by. Beside `schema` a key is declared that never
exists. While a slot is moved to another node, its keys are partly here and partly there, and a
script that ran in between would take what has left for missing. A node that moves or receives a
slot refuses commands of several keys of which one is missing (ASK, TRYAGAIN), so no script ever
runs then: the store is unavailable until the slot has arrived.
"""

import re
from hashlib import sha1
from pathlib import Path

from msgspec import Struct

__all__ = ["OLDEST", "SCHEMA_VERSION", "Keys", "Script", "script"]

SCHEMA_VERSION = 1
# The oldest that the scripts work with: during a deployment the one of the version before.
OLDEST = 1

_HERE = Path(__file__).parent / "lua"
_USES, _SELDOM = "-- uses:", "-- seldom:"
_FUNCTION = re.compile(r"^local function (\w+)", re.M)
_CALL = re.compile(r"(?<![\w.])(\w+)\(")

# "local FIRST, SECOND = 1, base .. 'jobs'": literals and names of keys alone on the right.
_LITERAL = r"(?:\d[\de]*|(?:base \.\. )?'[^'\\]*')"
_CONSTANTS = re.compile(
    rf"^local ([A-Z][A-Z_]*(?:, [A-Z][A-Z_]*)*) = ({_LITERAL}(?:, {_LITERAL})*)(?: --.*)?$", re.M
)
_NAME = re.compile(r"\b[A-Z][A-Z_]*\b")
_COMMENT = re.compile(r"^ *--.*\n", re.M)


class Script(Struct, frozen=True):
    """A script's text, and the digest under which a server keeps it."""

    name: str
    text: str
    digest: str


class Keys:
    """The names of the keys of one store that are needed outside of scripts."""

    def __init__(self, namespace: str) -> None:
        self._base = f"{{{namespace}}}:"
        self.declared: tuple[str, str] = (f"{self._base}schema", f"{self._base}absent")

    def wake(self, queue: str) -> str:
        """The stream that tells of jobs in a queue."""
        return f"{self._base}wake:{queue}"


def script(name: str) -> Script:
    """Compose `lua/<name>.lua` with the parts that it uses."""
    text = (_HERE / f"{name}.lua").read_text(encoding="utf-8")
    always: list[str] = []
    seldom: list[str] = []
    for line in text.splitlines():
        if line.startswith(_USES):
            always += _parts(line.removeprefix(_USES))
        elif line.startswith(_SELDOM):
            seldom += _parts(line.removeprefix(_SELDOM))
            always.append(_SELDOM)  # where they come
    whole = "\n".join([*always, text])
    if seldom:
        whole = _with_seldom(whole, "\n".join(seldom))
    whole = _inlined(_COMMENT.sub("", whole))
    return Script(name, whole, sha1(whole.encode(), usedforsecurity=False).hexdigest())


def _parts(names: str) -> list[str]:
    return [
        (_HERE / "parts" / f"{name.strip()}.lua").read_text(encoding="utf-8")
        for name in names.split(",")
    ]


def _with_seldom(text: str, parts: str) -> str:
    """Put these parts into a function, and let those who call theirs ask it for them."""
    called = set(_CALL.findall(text))
    names = [name for name in _FUNCTION.findall(parts) if name in called]
    asking = re.compile(rf"(?<![\w.])({'|'.join(names)})\(")
    before, after = text.split(_SELDOM + "\n", 1)
    made = ", ".join(f"{name} = {name}" for name in names)
    function = f"""
local seldom_made
local function seldom()
    if not seldom_made then
{parts}
        seldom_made = {{ {made} }}
    end
    return seldom_made
end
"""
    return before + function + asking.sub(r"seldom().\1(", after)


def _inlined(text: str) -> str:
    """Put constants in the places of their names."""
    values = {
        name: f"({value})" if value.startswith("base") else value
        for names, literals in _CONSTANTS.findall(text)
        for name, value in zip(names.split(", "), literals.split(", "), strict=True)
    }
    without = _CONSTANTS.sub("", text)
    return _NAME.sub(lambda found: values.get(found[0], found[0]), without)
