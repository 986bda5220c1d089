"""What is missing is said, and where to look."""

import pytest

from specmoe.progress import describe_missing

BLOCKS = ["A/t/none/g0/r0", "B/t/d/g4/r0", "B/t/d/g8/r0"]


@pytest.fixture
def folders(tmp_path):
    def touch(folder, block, end):
        path = tmp_path / folder / f"{block}.{end}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    touch("blocks", BLOCKS[0], "json")
    touch("logs", BLOCKS[0], "log")
    touch("logs", BLOCKS[1], "log")
    return tmp_path / "blocks", tmp_path / "logs"


def test_failed_blocks_are_named_with_their_log_and_others_counted(folders):
    text = describe_missing(BLOCKS, *folders)
    assert text.startswith("2 of 3 blocks are not measured")
    assert "1 failed or were interrupted, 1 were not started" in text
    assert f"B/t/d/g4/r0: see {folders[1]}/B/t/d/g4/r0.log" in text


def test_a_complete_campaign_lacks_nothing(folders):
    assert describe_missing(BLOCKS[:1], *folders) == ""
