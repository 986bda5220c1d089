"""The study's commands and their results, checked with recorded output of the engine of March."""

from dataclasses import replace
from pathlib import Path

import pytest

from specmoe.config.block import Block, PromptSource, Protocol
from specmoe.engine.process import count_failures
from specmoe.errors import MeasurementError
from specmoe.measure.study_commands import read_bench, read_speculative

from ...blocks import ALONE, DRAFTED, alone, compared, drafted, job_of, measured, rows
from ...processes import write_program

# Recorded on a two-core Linux machine: the synthetic moe_q4 with draft_0.8b, γ = 4, 64 tokens. The
# table is without the columns of llama-bench that nothing here reads.
MARCH_FAILURE, MARCH_RESULT, BENCH = (
    (Path(__file__).parent / "recorded" / name).read_text()
    for name in ("failure.log", "result.log", "bench.csv")
)


def test_speed_acceptance_and_counters_are_read_from_a_log():
    assert read_speculative(MARCH_FAILURE + MARCH_RESULT) == dict(
        n_prompt=235,
        prompt_ms=1095,
        generated=65,
        decode_ms=15888,
        tokens_per_second=4.091,
        drafted=208,
        accepted=12,
        acceptance_percent=5.769,
    )


# Later engines log the cause alone.
@pytest.mark.parametrize(
    "failure", [MARCH_FAILURE, "0.18.293.903 E decode: failed to initialize batch\n"]
)
def test_a_failed_decode_is_counted_once(failure):
    assert count_failures(failure * 3 + MARCH_RESULT) == 3
    assert count_failures(MARCH_RESULT) == 0


def test_a_result_that_lacks_a_line_is_none_and_the_acceptance_of_an_empty_draft_is_unknown():
    assert read_speculative(MARCH_RESULT.replace("n_drafted", "?")) is None
    assert read_bench(BENCH.rsplit("\n", 2)[0]) is None
    nothing = MARCH_RESULT.replace("208", "0").replace(" 12", " 0").replace("5.769", "-nan")
    assert read_speculative(nothing)["acceptance_percent"] is None


def test_a_baselines_rate_is_that_of_the_generation():
    assert read_bench(f"ggml_cuda_init: found 1 device\n{BENCH}") == dict(
        n_prompt=64,
        prompt_ms=234.083553,
        generated=64,
        decode_ms=8364.462623,
        tokens_per_second=7.651418,
    )


BASELINE = alone(
    suite="F",
    prompts=(PromptSource("passage-8", "topic.txt", 8),),
    n_predict=64,
    threads=2,
    protocol=Protocol.STUDY,
)
SPECULATIVE = compared(
    BASELINE, arms=(DRAFTED,), prompts=(*BASELINE.prompts, PromptSource("code", "code.txt"))
)
OLD_MANUAL = "--draft, --draft-n, --draft-max N   number of tokens to draft"
NEW_MANUAL = "--spec-draft-n-max N   number of tokens to draft\n--draft N   has been removed"


@pytest.fixture
def do(tmp_path):
    """Measure a block with stand-ins for the engine's tools; returns its record."""

    def tool(name: str, behaviour: str, manual: str) -> None:
        told = f'if [ "$1" = --help ]; then cat <<END\n{manual}\nEND'
        write_program(tmp_path / name, f"{told}\nelse {behaviour}\nfi")

    def run(block: Block, behaviour: str | None = None, *, limit_s=60.0, manual=OLD_MANUAL):
        (tmp_path / "topic.txt").write_text("one two three  four five six seven eight nine\n")
        (tmp_path / "code.txt").write_text("write\ncode\n")
        (tmp_path / "result").write_text(MARCH_FAILURE + MARCH_RESULT)
        (tmp_path / "bench").write_text(BENCH)
        tool("llama-bench", behaviour or f"cat {tmp_path}/bench", "")
        tool("llama-speculative", behaviour or f"echo text; cat {tmp_path}/result >&2", manual)
        models = {"target": Path("t.gguf"), "drafts": {"draft": Path("d.gguf")}}
        return measured(block, job_of(tmp_path, time_limit_s=limit_s, **models))

    return run


def arguments(record, run=0):
    return " ".join(record["runs"][run]["command"][1:])


def test_runs_are_the_studys_commands_on_a_length_the_first_words_or_a_whole_text(do):
    assert arguments(do(BASELINE)) == "-m t.gguf -n 64 -t 2 -r 1 -o csv -p 8"
    longer = PromptSource("passage-512", "topic.txt", 512)  # than its text
    record = do(replace(SPECULATIVE, prompts=(*SPECULATIVE.prompts, longer)))
    common = "-m t.gguf -n 64 -t 2 -md d.gguf --draft 4 --temp 0.0 -p"
    assert [arguments(record, run) for run in (0, 1, 2)] == [
        f"{common} one two three four five six seven eight",
        f"{common} write\ncode",
        f"{common} one two three four five six seven eight nine",
    ]


def test_flags_have_the_names_that_the_engine_knows_and_layers_are_those_of_both_models(do):
    record = do(replace(SPECULATIVE, gpu_layers=99), manual=NEW_MANUAL)
    assert "-ngl 99 -ngld 99 -md d.gguf --spec-draft-n-max 4" in arguments(record)


def test_the_target_alone_is_measured_first_and_then_each_gamma(do):
    block = replace(SPECULATIVE, arms=(ALONE, DRAFTED, drafted(8)), prompts=BASELINE.prompts)
    record = do(block)
    assert [run["run"].split("/", 3)[-1] for run in record["runs"]] == [
        f"{arm}/passage-8/p0" for arm in ("baseline", "draft/g4", "draft/g8")
    ]
    assert [run["order"] for run in record["runs"]] == [0, 1, 2]
    assert record["schedule"] == "sequential"
    assert "--draft 8" in arguments(record, 2)
    alone, four, eight = rows(record)
    assert (alone["draft"], alone["drafted"], alone["baseline"]) == ("none", None, None)
    assert four["baseline"] == eight["baseline"] == alone["run"]
    assert [row["gamma"] for row in (alone, four, eight)] == [0, 4, 8]
    assert (four["drafted"], four["accepted"], four["decode_ms"]) == (208, 12, 15888)
    assert four["rounds"] is four["tokens"] is four["seed"] is None  # no tool prints them


@pytest.mark.parametrize(
    ("behaviour", "fault"),
    [
        ("exec sleep 600", r"timeout: llama-spec.* longer than 2 s"),
        ("kill -SEGV $$", "llama-speculative failed \\(killed by SIGSEGV\\)"),
        ("echo no such model >&2; exit 3", "exit code 3\\); the end of .*\n  \\| no such model"),
        ("echo done >&2", "r0/draft/g4/passage-8/p0: no result; the end of .*\n  \\| done"),
    ],
)
def test_a_tool_that_hangs_fails_or_prints_no_result_ends_the_block_with_its_log(
    do, behaviour, fault
):
    with pytest.raises(MeasurementError, match=fault):
        do(SPECULATIVE, behaviour, limit_s=2.0)


def test_a_tool_that_ends_before_its_result_is_written_is_run_again(do, tmp_path):
    third = f"echo x >>{tmp_path}/runs; test $(wc -l <{tmp_path}/runs) -lt 3"
    block = replace(SPECULATIVE, prompts=SPECULATIVE.prompts[:1])
    record = do(block, f"{third} || cat {tmp_path}/result >&2")
    assert len((tmp_path / "runs").read_text().split()) == 3
    assert [run["decode_failures"] for run in record["runs"]] == [1]
    assert [run["output"] for run in record["runs"]] == [""]
