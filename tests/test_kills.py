"""The attack by kills finds what it is there to find, and nothing where nothing is."""

import importlib
import json
from pathlib import Path

import forked

from causal_shaping.io.inputs import with_checksum

KILLS = Path(__file__).parents[1] / "attack" / "kills.py"
PROGRAM = """
import importlib.util, random, sys
from pathlib import Path
spec = importlib.util.spec_from_file_location("kills", sys.argv[1])
kills = sys.modules["kills"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kills)
import causal_shaping.cli
from causal_shaping.io import files
kills.COMMANDS = {"one": "worlds walking-robot -o out/w.csv"}
whole = files._Write.finish
def finish(write):
    write.place.write_bytes(write.temporary.read_bytes()[:10])
    whole(write)
if sys.argv[3] == "planted":
    files._Write.finish = finish
found = kills.Found()
kills.kills(kills.Case("one", Path(sys.argv[2]), found), 1, random.Random(0))
print(dict(found.tried), found.defects)
"""


def attacked(folder, how):
    ran = forked.run(PROGRAM, KILLS, folder, how)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_a_file_that_is_written_in_place_is_a_defect_and_one_that_is_renamed_is_none(tmp_path):
    tried = "{'kills at renames': 2, 'kills at random moments': 1}"
    assert attacked(tmp_path, "as it is") == f"{tried} []"
    assert "w.csv is neither the old nor the complete file" in attacked(tmp_path, "planted")


def test_parts_of_the_study_are_the_same_whatever_they_took_and_others_if_they_were_damaged(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(KILLS.parent))
    kills = importlib.import_module("kills")

    def held(content):
        path = tmp_path / "parts" / "a.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))
        return kills.contents(tmp_path)

    sound = with_checksum({"regret": 1.5, "seconds": 3.0})
    assert held(sound) == held(with_checksum({"regret": 1.5, "seconds": 4.0}))
    assert held(sound) != held(with_checksum({"regret": 1.6, "seconds": 3.0}))
    assert held(sound) != held(sound | {"seconds": 4.0})
