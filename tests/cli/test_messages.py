"""Messages that a command shows speak in options, not in Python."""

import ast
import re
from pathlib import Path

import pytest

import causal_shaping
from causal_shaping.cli import app
from causal_shaping.cli._messages import OPTIONS, in_options

LIBRARY = Path(causal_shaping.__file__).parent
PYTHON = re.compile(r"(?<![\w/.'-])[a-z_]\w*=|\b[a-z]\w*_\w+|\w\((?!s\))|\w\[['\"]|\b(?:True|False|None)\b")
"""What a user of the command should not have to read, outside of quotes."""

ONLY_PYTHON = [
    "bonus",
    "discrete_rewards",
    "edges",
    "floors",
    "observe",
    "quantiles",
    "True",
    "render_mode",
    "shaped",
    "time_limit",
    "value_floors",
    "None",
]
"""Words of messages about arguments and objects that no command makes."""

SPOKEN = re.compile(r"(Error|warn|Problem|Rule)$")


def template(node):
    """Return the text that an expression makes, with 3 for each value that is filled in."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(template, parts))
        case ast.FormattedValue(conversion=114):
            return "'3'"
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
        where = path.relative_to(LIBRARY).as_posix()
        if where.startswith("cli/") or where == "__init__.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and SPOKEN.search(name_of(node.func)):
                texts = [template(argument) for argument in [*node.args, *(item.value for item in node.keywords)]]
                for text in texts:
                    if " " in text:
                        yield pytest.param(text, id=f"{where}:{node.lineno}")


@pytest.mark.parametrize("message", [*messages()])
def test_no_message_of_the_library_shows_python_to_a_user_of_the_command(message):
    shown = in_options(message, [])
    assert shown.strip(), message
    found = PYTHON.findall(re.sub(r"'[^']*'|\"[^\"]*\"", "''", shown))
    assert all(word.strip("=") in ONLY_PYTHON for word in found), (message, shown)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "reward_max is 0.0, but ... pass reward_max=0.1 or more.",
            "--reward-max is 0.0, but ... pass --reward-max 0.1 or more.",
        ),
        ("Pass horizon=30 or more, or pool the steps.", "Pass --horizon 30 or more, or pool the steps."),
        ("Declare all of them: count(..., actions=[...]).", "Declare all of them: --actions A,B,C."),
        ("Cut it: bins={'age': Bins(quantiles=8)}, or --bins age=8.", "Cut it: --bins age=8."),
        (
            "Say read_logs(..., state=['x', 'y'], action='a'); on the command line --state x,y --action a.",
            "Say --state x,y --action a.",
        ),
        ("Pass terminated={'outcome': ['died', 'cured']}.", "Pass --terminated outcome=died,cured."),
        ("Use support='any'.", "Use --support any."),
        (
            "It does not say where its rows come from: pass source=.",
            "It does not say where its rows come from: write NAME=FILE.",
        ),
        ("Pass a potential that bounds the value, or clip='none'.", "Pass a potential that bounds the value."),
        ("This is wrong. Pass label=, a function.", "This is wrong."),
        ("column 'reward_max' holds 'horizon=3'", "column 'reward_max' holds 'horizon=3'"),
        ("wards/state=3/reward_max.csv is empty.", "wards/state=3/reward_max.csv is empty."),
        ("The state is missing.", "The state is missing."),
    ],
)
def test_arguments_are_spelled_as_options(message, expected):
    assert in_options(message, []) == expected


def test_what_the_user_typed_is_left_as_it_is():
    name = "state=3,reward_max=(1).csv"
    assert in_options(f"{name} does not exist.", [name]) == f"{name} does not exist."


def test_every_option_that_messages_name_exists():
    import typer

    known = {
        text
        for command in typer.main.get_command(app).commands.values()
        for item in command.params
        for text in item.opts
    }
    for name in OPTIONS:
        assert "--" + name.replace("_", "-") in known
