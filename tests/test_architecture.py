"""The map of the code is what the imports say: no arrow to the right, no circle."""

from pathlib import Path

import pytest
from layers import DELEGATING, STAGES, backward, cycles, imports, modules, unused_exceptions


def test_every_module_belongs_to_a_stage():
    assert {name.split(".")[0] for name in modules()} == set(STAGES)


def test_nothing_imports_from_the_right_but_the_methods_that_are_named():
    assert backward() == []


def test_every_named_exception_is_needed():
    assert not unused_exceptions()
    assert all("." in function for _, function, _ in DELEGATING), "only methods delegate"


def test_no_module_imports_itself_in_a_circle():
    assert cycles() == []


def test_late_imports_are_seen(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "cli").mkdir()
    (tmp_path / "cli" / "x.py").write_text("from causal_shaping.data import y\n")
    (tmp_path / "data" / "y.py").write_text("class A:\n    def f(self):\n        import causal_shaping.cli.x\n")
    monkeypatch.setattr("layers.SOURCE", Path(tmp_path))
    assert ("data.y", "A.f", "cli.x") in list(imports())
    assert [one.stages for one in backward()] == [("data", "cli")]
    assert set(cycles()) == {"cli.x", "data.y"}


@pytest.mark.parametrize("name", ["matplotlib", "jinja2", "minigrid", "torch", "pandas"])
def test_optional_packages_are_imported_at_the_top_only_where_their_extra_is_needed(name):
    allowed = {
        "matplotlib": ("plot", "demo.page"),
        "jinja2": ("plot",),
        "minigrid": ("worlds.environments",),
        "torch": (),
        "pandas": (),
    }[name]
    for module, path in modules().items():
        top = [line for line in path.read_text().splitlines() if line.startswith((f"import {name}", f"from {name}"))]
        assert not top or module.startswith(allowed), f"{module}: {top[0]}"
