"""Two measurements never share the machine."""

import subprocess
import sys

from specmoe.engine.measuring_lock import alone


def test_a_second_measurement_waits_for_the_first(root, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    code = (
        "import sys; from specmoe.engine.measuring_lock import alone\n"
        "from specmoe.progress_lines import lines_to\n"
        "with lines_to(sys.stdout), alone(): print('measuring', flush=True)"
    )
    with alone():
        second = subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=root / "workflow/scripts",
            stdout=subprocess.PIPE,
            text=True,
        )
        assert "waiting for another measurement" in second.stdout.readline()
        assert second.poll() is None
    assert second.stdout.readline() == "measuring\n"
    assert second.wait(60) == 0
