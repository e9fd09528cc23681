"""Messages fit Python and the command line: they name an argument, which the option of the same name sets."""

import ast
import re
from pathlib import Path

import pytest
import typer

import causal_shaping
from causal_shaping.cli import app

LIBRARY = Path(causal_shaping.__file__).parent
COMMANDS = typer.main.get_command(app).commands.values()
OPTIONS = {name for command in COMMANDS for item in command.params for name in item.opts if name.startswith("--")}
ARGUMENTS = "|".join(sorted(option[2:].replace("-", "_") for option in OPTIONS))
ASSIGNED = re.compile(rf"(?<![\w'\"/.-])({ARGUMENTS})=")
CALL = re.compile(r"\w\((?:[^()]|\([^()]*\))*\)")
SPOKEN = re.compile(r"(Error|warn|Problem|Rule)$")


def template(node):
    """Return the text that an expression makes, with 3 for each value that is filled in."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(template, parts))
        case ast.BinOp(op=ast.Add()):
            return template(node.left) + template(node.right)
        case ast.IfExp():
            return template(node.body) + " " + template(node.orelse)
    return "3"


def name_of(function):
    """Return the last part of the name of what is called; none if it has no name."""
    return getattr(function, "attr", getattr(function, "id", ""))


def messages():
    """Yield every message of an error or a warning in the library, and where it is made."""
    for path in sorted(LIBRARY.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and SPOKEN.search(name_of(node.func)):
                texts = [template(argument) for argument in [*node.args, *(item.value for item in node.keywords)]]
                for text in texts:
                    if " " in text:
                        yield pytest.param(text, id=f"{path.relative_to(LIBRARY).as_posix()}:{node.lineno}")


@pytest.mark.parametrize("message", [*messages()])
def test_a_message_spells_an_argument_as_python_does_only_beside_its_option(message):
    for name in ASSIGNED.findall(CALL.sub("", message)):
        assert f"--{name.replace('_', '-')}" in message


@pytest.mark.parametrize("message", [*messages()])
def test_every_option_that_a_message_names_exists(message):
    assert set(re.findall(r"(?<!\w)--[a-z][a-z-]*", message)) <= OPTIONS


def test_a_message_that_a_command_could_not_follow_would_be_found():
    assert ASSIGNED.findall(CALL.sub("", "reward_max is 0. Pass reward_max=0.1.")) == ["reward_max"]
    assert not ASSIGNED.findall(CALL.sub("", "reward_max is 0. Use value_ceilings(counts, reward_max=0.1)."))
