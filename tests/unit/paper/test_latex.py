"""What a template prints is text, never LaTeX, unless it was marked."""

import jinja2
import pytest

from specmoe.errors import ConfigError
from specmoe.paper import latex
from specmoe.paper.latex import Raw, command_name, environment, escape


@pytest.fixture
def render(tmp_path):
    """Return a function that renders a template's text with values."""

    def render_text(template, /, **values):
        (tmp_path / "template.tex.j2").write_text(template)
        return environment(tmp_path).get_template("template.tex.j2").render(values)

    return render_text


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
    assert escape(text) == expected


def test_text_at_the_start_of_a_row_is_no_argument_of_the_line_end_before_it():
    assert escape("[9cm]") == "{[}9cm{]}"
    assert escape("*") == "{*}"


def test_a_pair_of_hyphens_stays_two_hyphens():
    assert escape("a--b---c") == "a-{}-b-{}--c"


def test_line_ends_and_control_characters_do_not_reach_tex():
    assert escape("one\n\n\\par\ttwo\x00\x1b") == r"one \textbackslash{}par two"


def test_escaping_yields_marked_text_so_it_happens_once(render):
    assert render(r"\VAR{value}", value=escape("a_b")) == r"a\_b"


def test_a_printed_value_is_escaped_without_being_asked(render):
    assert render(r"\textbf{\VAR{value}}", value=r"\end{x}") == (
        r"\textbf{\textbackslash{}end\{x\}}"
    )


def test_joining_raw_with_text_is_not_raw(render):
    assert render(r"\VAR{raw ~ text}", raw=Raw(r"\a"), text="_") == r"\textbackslash{}a\_"


def test_an_undefined_name_is_an_error(render):
    with pytest.raises(jinja2.UndefinedError):
        render(r"\VAR{missing}")


def test_latex_around_statements_is_left_alone(render):
    loop = "%% for x in rows\n{\\VAR{x}} \\\\ % kept {}\n%% endfor\n"
    inline = r"\#{gone}\BLOCK{if rows}!\BLOCK{endif}"
    assert render(loop + inline, rows=[1, 2]) == "{1} \\\\ % kept {}\n{2} \\\\ % kept {}\n!"


@pytest.mark.parametrize("null", [None, float("nan")])
def test_what_was_not_measured_is_a_dash_and_not_zero(render, null):
    assert render(r"\VAR{value}", value=null) == "--"
    for show in (
        latex.fixed,
        latex.percent,
        latex.thousands,
        latex.parameters,
        latex.size,
        latex.memory,
    ):
        assert show(null) == "--"
    assert latex.plus_minus(null) == ""
    assert latex.interval(null, null) == ""
    assert latex.interval(1.0, null) == "[1.00, --]"


def test_numbers_have_the_digits_asked_for():
    assert latex.fixed(1.005e2, 2) == "100.50"
    assert latex.fixed(-0.25, 2) == "$-$0.25"
    assert latex.percent(0.0254) == "2.5"
    assert latex.thousands(1234567) == r"1\,234\,567"
    assert latex.parameters(35_000_000_000) == r"35.0\,B"
    assert latex.parameters(800_000_000) == r"0.8\,B"
    assert latex.parameters(21_300_000) == r"21.3\,M"
    assert latex.size(20_600_000_000) == r"20.6\,GB"
    assert latex.size(43_000_000) == r"43.0\,MB"
    assert latex.memory(192 * 2**30) == r"192.0\,GiB"
    assert latex.plus_minus(0.25, 2) == r"$\pm$\,0.25"
    assert latex.interval(1.234, 1.5) == "[1.23, 1.50]"


def test_bold_escapes_text_and_keeps_latex():
    assert latex.bold("a_b") == r"\textbf{a\_b}"
    assert latex.bold(Raw(r"1\,0")) == r"\textbf{1\,0}"
    assert latex.bold("a_b", when=False) == r"a\_b"


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
    with pytest.raises(ConfigError, match="named"):
        command_name("--")
