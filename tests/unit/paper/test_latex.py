"""Text becomes LaTeX that prints it and does nothing else."""

import pytest

from specmoe.errors import ConfigError
from specmoe.paper.latex import command_name, to_latex
from specmoe.tables import number_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Qwen3.5-35B-A3B", "Qwen3.5-35B-A3B"),
        (r"\input{/etc/passwd}", r"\textbackslash{}input\{/etc/passwd\}"),
        ("%&#_", r"\%\&\#\_"),
        ("$x$", r"\$x\$"),
        ("^^5c", r"\textasciicircum{}\textasciicircum{}5c"),
        ("~", r"\textasciitilde{}"),
        ("<γ> 通", "<γ> 通"),
    ],
)
def test_special_characters_are_printed_and_others_kept(text, expected):
    assert to_latex(text) == expected


def test_a_pair_of_hyphens_stays_two_hyphens():
    assert to_latex("a--b---c") == "a-{}-b-{}--c"


def test_line_ends_and_control_characters_do_not_reach_tex():
    assert to_latex("one\n\n\\par\ttwo\x00\x1b\N{LINE SEPARATOR}") == r"one \textbackslash{}par two"


def test_the_signs_of_numbers_have_their_latex():
    assert to_latex(number_text.fixed(-0.25, 2)) == "$-$0.25"
    assert to_latex(number_text.fixed(float("inf"))) == r"$\infty$"
    assert to_latex(number_text.thousands(1234567)) == r"1\,234\,567"
    assert to_latex(number_text.plus_minus(0.25, 2)) == r"$\pm$\,0.25"
    assert to_latex(number_text.interval(1.0, None)) == "[1.00, --]"
    assert to_latex(None) == "--"


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        (("speedup", "moe_q4", "draft_0.8b"), "SpeedupMoeQFourDraftZeroPointEightB"),
        (("gamma", 16), "GammaOneSix"),
        (("dense-4B",), "DenseFourB"),
    ],
)
def test_a_command_is_named_by_letters_alone(parts, name):
    assert command_name(*parts) == name


def test_an_id_without_letters_or_digits_names_no_command():
    with pytest.raises(ConfigError, match="name"):
        command_name("--")
