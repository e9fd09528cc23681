"""Messages of the library in words of the command line: options instead of Python.

The library tells its callers to pass `reward_max=0.1`; a user of the command passes `--reward-max 0.1`. What has no
option is left out of a message.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence

# fmt: off
OPTIONS = (
    "action", "actions", "admissible", "bins", "coins", "complete", "confidence", "confounding", "counted_in", "counts",
    "demonstrator", "discount", "episode", "episodes", "expectile", "first_step", "fixed", "fixed_length",
    "floors", "hidden", "horizon", "html", "ignore_rewards", "learner", "level", "mask", "members", "memory_limit",
    "method", "missing", "most_rows", "next_state", "plug_in", "potential", "rarest", "reward", "reward_bins",
    "reward_max", "reward_min", "seed", "seeds", "skip_bad_episodes", "smallest_cell", "state", "stationary",
    "step", "step_indexed", "steps", "support", "terminated", "trial", "truncated", "value_max", "wind", "workers",
)
"""Arguments in Python that an option of the same name sets."""

ONLY_PYTHON = (
    "bonus", "clip", "draws", "edges", "in_memory", "initial", "label", "numbers", "observation", "observe", "plug_in",
    "quantiles", "random", "record", "shape", "shaped", "source", "states", "terminal", "time_limit",
)
"""Arguments that no command can set: what a message says of them is left out."""
# fmt: on

_UNQUOTED = r"(?<![\w'\"/.=-])"
_VALUE = r"(?:'[^']*'|\[[^\]]*\]|\{(?:[^{}()]|\([^()]*\))*\}|[\w.+-]*\w)?"
_ARGUMENT = re.compile(rf"{_UNQUOTED}({'|'.join(OPTIONS)})=({_VALUE})")
_CALL = re.compile(r"\b[A-Za-z_][\w.]*\(\.\.\., ((?:[^()]|\([^()]*\))*)\)")
_SUBJECT = re.compile(rf"^({'|'.join(OPTIONS)})(?= (?:is|names|says) )")
_NAME = re.compile(rf"{_UNQUOTED}({'|'.join(name for name in OPTIONS if '_' in name)})\b(?!['\"/.]\w|=)")
_TWICE = re.compile(r"(--[a-z-]+(?: (?:[^\s;.,()]|[.,](?=\S))+)*)(?:, or |, | or |; on the command line )\1(?![\w-])")
_SOURCE = re.compile(r"(?:(with)|[Pp]ass) source=(?:'[^']*'|\w*)")
_NOT = re.compile(rf"([Pp])ass ({'|'.join(OPTIONS)})=False")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_PYTHON = re.compile(rf"{_UNQUOTED}(?:{'|'.join(ONLY_PYTHON)})=|\w\((?!s\))|\w\[['\"]")
_CLAUSE = re.compile(r"(?:,|;|:| or) [^,;:]*$")


def in_options(message: str, arguments: Sequence[str] | None = None) -> str:
    """Return a message of the library as the command line says it.

    Args:
        message: what an error or a warning says.
        arguments: what the user typed, which is left as it is; by default the arguments of this process.
    """
    message, kept = _without(message, sys.argv[1:] if arguments is None else arguments)
    message = _SOURCE.sub(lambda found: f"{found[1] or 'write'} NAME=FILE", message)
    message = _NOT.sub(lambda found: f"{'L' if found[1] == 'P' else 'l'}eave out {_spelled(found[2])}", message)
    message = _CALL.sub(lambda call: re.sub(r", (?=\w+=)", " ", call[1]), message)
    message = _ARGUMENT.sub(lambda found: _option(found[1], found[2]), message)
    message = _SUBJECT.sub(lambda found: _spelled(found[1]), message)
    message = _NAME.sub(lambda found: _spelled(found[1]), message)
    message = _TWICE.sub(r"\1", message)
    sentences = [_plain(sentence) for sentence in re.split(r"(?<=[.?!]) (?=[A-Z])", message)]
    message = " ".join(sentence for sentence in sentences if sentence) or message
    return re.sub("[\ue000-\uf8ff]", lambda sign: (kept[ord(sign[0]) - 0xE000 :] or [sign[0]])[0], message)


def python_words(message: str) -> list[str]:
    """Return what in a message is Python, outside of quotes."""
    return _PYTHON.findall(_QUOTED.sub("''", message))


def _without(message: str, arguments: Sequence[str]) -> tuple[str, list[str]]:
    """Return the message with a single sign for each argument that could be taken for Python, and these."""
    parts = {part for text in arguments for part in (text, text.rpartition("=")[2], *text.split(","))}
    kept = sorted((part for part in parts if re.search(r"\w[=_(\[]", part) and part[0] != "-"), key=len, reverse=True)
    for i, part in enumerate(kept[:6000]):
        message = message.replace(part, chr(0xE000 + i))
    return message, kept


def _spelled(name: str) -> str:
    return "--" + name.replace("_", "-")


def _option(name: str, value: str) -> str:
    """Return `reward_max=0.1` as `--reward-max 0.1`."""
    value = re.sub(r"Bins\((?:\w+=)?([^()]*)\)", r"\1", value)
    try:
        held = ast.literal_eval(value)
    except (SyntaxError, ValueError):
        held = value
    return f"{_spelled(name)} {_text(held)}".rstrip()


def _text(value: object) -> str:
    if value is True or value is ...:
        return "" if value is True else "..."
    if isinstance(value, dict):
        return ",".join(f"{key}={_text(held)}" for key, held in value.items())
    if isinstance(value, (list, tuple)):
        return ",".join("A,B,C" if part is ... else str(part) for part in value)
    return str(value)


def _plain(sentence: str) -> str:
    """Return a sentence without its clauses at the end that only Python understands; nothing if no more is left."""
    end = sentence[-1:] if sentence[-1:] in ".?!" else ""
    while python_words(sentence):
        shorter = _CLAUSE.sub("", sentence.removesuffix(end))
        if shorter == sentence.removesuffix(end):
            return ""
        sentence = shorter + end
    return sentence
