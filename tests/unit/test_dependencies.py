"""The files a script runs are found, so that an edit to one of them reruns its rule."""

import ast
import re
import runpy
import subprocess
import sys

import pytest

from specmoe.dependencies import _read, digest_of_modules, files_of, without_prose


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


def test_what_the_pattern_finds_is_what_python_imports(root):
    scripts = root / "workflow/scripts"
    for file in scripts.rglob("*.py"):
        meant = set()
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "specmoe":
                module = scripts / node.module.replace(".", "/")
                meant |= {module, *(module / alias.name for alias in node.names)}
            elif isinstance(node, ast.Import):
                assert not any(alias.name.startswith("specmoe") for alias in node.names)
        there = {path.with_suffix(".py") for path in meant}
        assert set(_read(file, scripts)[1]) == {path for path in there if path.is_file()}, file


@pytest.mark.parametrize("clone", ["specmoe", "elsewhere"])
def test_a_clone_may_have_the_name_of_the_package(clone, tmp_path):
    scripts = tmp_path / clone / "workflow/scripts"
    (scripts / "specmoe/room").mkdir(parents=True)
    (scripts / "specmoe/__init__.py").write_text("")
    (scripts / "go.py").write_text("from specmoe.room import a\n")
    (scripts / "specmoe/room/a.py").write_text("from specmoe.b import x\n")
    (scripts / "specmoe/b.py").write_text("")
    assert [file.name for file in files_of(scripts / "go.py")] == ["go.py", "b.py", "a.py"]
    inside = files_of(scripts / "specmoe/room/a.py")
    assert [file.name for file in inside] == ["b.py", "a.py"]


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
            *("parse", "prompt_lines"),
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


def test_every_script_can_say_what_it_takes(root, monkeypatch, capsys):
    for script in (root / "workflow/scripts").glob("*.py"):
        monkeypatch.setattr(sys, "argv", [str(script), "--help"])
        with pytest.raises(SystemExit, match="0"):
            runpy.run_path(str(script), run_name="__main__")
        assert capsys.readouterr().out.startswith(f"usage: {script.name}")


@pytest.fixture
def modules(tmp_path):
    """Write a script that imports a module, which imports another; return the digest of both."""
    package = tmp_path / "specmoe"
    package.mkdir()
    (tmp_path / "go.py").write_text("from specmoe.a import x\n")
    (package / "a.py").write_text("from specmoe.b import y\nfrom specmoe.errors import z\n")
    for name in ("b", "errors", "unused"):
        (package / f"{name}.py").write_text("")

    def digest():
        files_of.cache_clear()
        _read.cache_clear()
        digest_of_modules.cache_clear()
        return digest_of_modules(tmp_path / "go.py", without=(package / "errors.py",))

    return digest


@pytest.mark.parametrize(
    ("file", "text", "changes"),
    [
        ("specmoe/b.py", "y = 1\n", True),
        ("specmoe/a.py", "from specmoe.errors import z\n", True),
        ("specmoe/b.py", '"""What it is."""\n\n# Why.\n', False),
        ("specmoe/b.py", 'y = """# a"""\n', True),
        ("specmoe/errors.py", "z = 1\n", False),
        ("specmoe/unused.py", "x = 1\n", False),
        ("go.py", "from specmoe.a import x  # an input of its rule by itself\n", False),
    ],
)
def test_the_digest_changes_with_the_modules_that_the_script_runs(
    modules, tmp_path, file, text, changes
):
    before = modules()
    assert modules() == before
    (tmp_path / file).write_text(text)
    assert (modules() != before) == changes


class Bare(ast.NodeTransformer):
    """Leave out docstrings."""

    def generic_visit(self, node):
        super().generic_visit(node)
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [
                one for one in body
                if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
            ]  # fmt: skip
        return node


def test_what_is_left_out_as_prose_is_no_code(root):
    for file in (root / "workflow/scripts").rglob("*.py"):
        text = file.read_text()
        # A class may have nothing but its docstring.
        code = re.sub(r"^(class .*:)\n(?=\S|\Z)", r"\1 ...\n", without_prose(text), flags=re.M)
        bare = [ast.unparse(Bare().visit(ast.parse(one))) for one in (text, code)]
        assert bare[0] == bare[1], file
    assert without_prose("x = 1  # why\n# so\ny = '#'\n") == "\nx = 1\ny = '#'\n"
    assert without_prose('x = """\n# a\n"""\n') == '\nx = """\n# a\n"""\n'


def test_a_rule_with_an_output_has_the_digest_of_its_script(root):
    rules = "\n".join(file.read_text() for file in sorted((root / "rules").glob("*.smk")))
    made = 0
    for rule in re.split(r"^ *(?:use )?rule ", rules, flags=re.MULTILINE)[1:]:
        named = re.findall(r'script=script\("(\w+)"\)', rule)
        modules = (
            {*files_of(root / f"workflow/scripts/{name}.py")} if (name := "".join(named)) else {}
        )
        ours = {file.name for file in modules} - {f"{name}.py", "errors.py"}
        if ours and "output:" in rule:
            assert f'code=code("{name}")' in rule, name
            made += 1
    assert made > 20
