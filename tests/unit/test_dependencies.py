"""The files a script runs are found, so that an edit to one of them reruns its rule."""

import subprocess
import sys

from specmoe.dependencies import files_of


def names(root, script):
    scripts = root / "workflow/scripts"
    return {str(file.relative_to(scripts)) for file in files_of(scripts / f"{script}.py")}


def test_imports_are_followed_through_other_modules(tmp_path):
    package = tmp_path / "specmoe"
    package.mkdir()
    (tmp_path / "go.py").write_text("from specmoe.a import x\nimport json\n")
    (package / "a.py").write_text("def f():\n    from specmoe.b import y\n")
    (package / "b.py").write_text("from specmoe import c\nfrom specmoe.a import z\n")
    (package / "c.py").write_text("from specmoe.room.d import x\n")
    (package / "room").mkdir()
    (package / "room/d.py").write_text("from specmoe.room import e\n")
    (package / "room/e.py").write_text("")
    (package / "unused.py").write_text("")
    found = [file.name for file in files_of(tmp_path / "go.py")]
    assert sorted(found) == ["a.py", "b.py", "c.py", "d.py", "e.py", "go.py"]


def test_measuring_runs_nothing_of_the_analysis_or_the_configuration(root):
    measuring = names(root, "measure_block")
    assert {
        *("specmoe/measure/paired.py", "specmoe/engine/server.py", "specmoe/engine/supervise.py")
    } <= measuring
    rooms = {name.split("/")[1] for name in measuring if name.count("/") > 1}
    assert rooms == {"config", "engine", "measure", "plan"}
    assert {name for name in measuring if name.startswith("specmoe/config/")} == {
        f"specmoe/config/{name}.py"
        for name in (
            *("backend", "base", "block", "environment", "gate", "methods", "option_words"),
            *("parse", "prompt_lines", "shuffle"),
        )
    }


def test_measuring_imports_nothing_heavy(root):
    code = (
        "import sys; import measure_block;"
        "print([m for m in ('pandas', 'numpy', 'pyarrow', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root / "workflow/scripts",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_every_script_can_say_what_it_takes(root):
    for script in (root / "workflow/scripts").glob("*.py"):
        done = subprocess.run(
            [sys.executable, str(script), "--help"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
