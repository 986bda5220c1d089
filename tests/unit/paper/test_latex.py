"""The paper compiles confined, prints what it is given, and has no number of its own."""

import re
from pathlib import Path

import pytest

from specmoe.analysis import number_text
from specmoe.errors import PaperError
from specmoe.paper import pdf
from specmoe.paper.latex import to_latex

from ...conftest import needs_tex
from ..rendered_tables import TABLES

PAPER = Path(__file__).parents[3] / "paper"
NOTE = r"\documentclass{article}%s\begin{document}%s\end{document}"

# Digits that are no results: formulas, years, names and numbers of others' equations.
_NO_RESULTS = [
    r"<<.*?>>|<%.*?%>|<#.*?#>",
    r"(?<!\\)%[^\n]*",
    r"\\begin\{equation\}.*?\\end\{equation\}",
    r"\$[^$]*\$",
    r"\\(?:cite[pt]?|ref|label|input|bibliography\w*)(?:\[[^]]*\])?\{[^}]*\}",
    r"\\documentclass\[[^]]*\]",
    r"\\setlength\{\\\w+\}\{[^}]*\}",
    # Simulated once, see tests/unit/analysis/test_coverage.py and tests/benchmarks/.
    r"\\begin\{(table|figure)\}.*?\\end\{\1\}",
    r"Over 300 simulated campaigns.*? an open end",
    # Names, and what quantities are.
    r"0\.8B|BF16|S2-MoE|EAGLE-3|Qwen3\.6-35B-A3B|RTX~3090|99th percentile",
    r"as 0\\,ms apart|to 0 where|2\.5\\,\\% for each",
    r"equation~\([12]\)",  # the study's
    # Its text (Section 2.3, Table 2), its files and its rows, see study/test_comparison.py.
    r"128 experts, of which a token uses two|256 and eight|UD-Q4\\_K\\_XL|Q4\\_K\\_M",
    r"one text of 156 words|those of 256, 512 and 1024 words|b8240 and b8280",
    r"April 2026",  # when llama.cpp learned to undo drafts on recurrent targets
    r"Apple M2 Ultra",  # the study's machine
    r"Qwen3\.5",
    r"-\{\}-cores 1",
]


def texts():
    """Return the documents, and the captions."""
    documents = [(PAPER / name).read_text() for name in ("main.tex.j2", "supplement.tex.j2")]
    return [*documents, "\n".join(about.caption for about in TABLES.values())]


def test_every_number_of_the_texts_is_computed():
    for text in texts():
        for pattern in _NO_RESULTS:
            text = re.sub(pattern, " ", text, flags=re.DOTALL)
        assert [line for line in text.splitlines() if re.search(r"\d", line)] == []


def test_every_work_that_is_cited_is_in_the_bibliography():
    known = re.findall(r"^@\w+\{([^,]+),", (PAPER / "references.bib").read_text(), re.MULTILINE)
    cited = {
        key.strip()
        for keys in re.findall(r"\\cite[pt]?\{([^}]*)\}", "".join(texts()))
        for key in keys.split(",")
    }
    assert cited - set(known) == set()
    assert len(known) == len(set(known))


def compiled(tmp_path, body, preamble=""):
    """Compile a document of that text; return its file and the log."""
    document, out, log = (tmp_path / name for name in ("note.tex", "note.pdf", "tex.log"))
    document.write_text(NOTE % (preamble, body))
    pdf.render_pdf(document, (), log, out)
    return out, log.read_text()


@needs_tex
@pytest.mark.parametrize(
    "hostile",
    [
        r"\input{/etc/passwd}",
        r"\newread\x\openin\x=../note.tex \ifeof\x\errmessage{refused}\fi",
        r"\newwrite\x\immediate\openout\x=../pwned",
    ],
)
def test_a_document_reaches_nothing_outside_its_folder(tmp_path, hostile):
    with pytest.raises(PaperError, match=r"note\.tex: .*TeX's log is"):
        compiled(tmp_path, hostile)
    assert not list(tmp_path.rglob("pwned*"))


@needs_tex
def test_a_document_is_in_its_place_and_runs_no_command(tmp_path):
    out, _ = compiled(tmp_path, r"\immediate\write18{touch pwned}Words.")
    assert out.read_bytes().startswith(b"%PDF")
    assert not list(tmp_path.rglob("pwned"))


def test_without_tex_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PaperError, match=r"note\.pdf needs latexmk; on Debian or Ubuntu `apt-get"):
        compiled(tmp_path, "Words.")


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
    preamble = r"\usepackage[utf8]{inputenc}\usepackage[T1]{fontenc}\usepackage{mathpazo}"
    preamble += r"\DeclareUnicodeCharacter{03B3}{\ensuremath{\gamma}}"
    _, log = compiled(tmp_path, "\n".join(kept), preamble)
    assert "Missing character" not in log
