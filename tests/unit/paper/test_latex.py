"""Text becomes LaTeX that prints it and does nothing else."""

import pytest

from specmoe.analysis import number_text
from specmoe.paper.latex import to_latex
from specmoe.paper.pdf import compile_pdf

from ...conftest import needs_tex


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Qwen3.5-35B-A3B", "Qwen3.5-35B-A3B"),
        (r"\input{/etc/passwd}", r"\textbackslash{}input\{/etc/passwd\}"),
        ("%&#_", r"\%\&\#\_"),
        ("$x$", r"\$x\$"),
        ("^^5c", r"\textasciicircum{}\textasciicircum{}5c"),
        ("~", r"\textasciitilde{}"),
        ("<γ> é", "<γ> é"),
        ("通 🙂", "[U+901A] [U+1F642]"),
        ("a--b---c", "a-{}-b-{}--c"),
        ("one\n\n\\par\ttwo\x00\x1b\N{LINE SEPARATOR}", r"one \textbackslash{}par two"),
        (number_text.fixed(-0.25, 2), "$-$0.25"),
        (number_text.fixed(float("inf")), r"$\infty$"),
        (number_text.thousands(1234567), r"1\,234\,567"),
        (number_text.plus_minus(0.25, 2), r"$\pm$\,0.25"),
        (None, "--"),
    ],
)
def test_special_characters_are_printed_and_others_kept(text, expected):
    assert to_latex(text) == expected


@needs_tex
def test_every_character_that_is_kept_has_a_font(tmp_path):
    kept = [chr(code) for code in range(0x20, 0x2200) if to_latex(chr(code)) == chr(code)]
    assert {"a", "ß", "ő", "γ", "’"} <= set(kept)
    document = tmp_path / "kept.tex"
    preamble = r"\documentclass{article}\usepackage[utf8]{inputenc}\usepackage[T1]{fontenc}"
    preamble += r"\usepackage{mathpazo}"
    gamma = r"\DeclareUnicodeCharacter{03B3}{\ensuremath{\gamma}}"
    lines = "\n".join(kept)
    document.write_text(f"{preamble}{gamma}\\begin{{document}}{lines}\\end{{document}}")
    log = tmp_path / "kept.log"
    assert compile_pdf(document, [], tmp_path / "kept.pdf", log) == []
    assert "Missing character" not in log.read_text()
