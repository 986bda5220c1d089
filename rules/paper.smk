# From the analysis to the tables, figures and numbers that main.tex includes.
from specmoe.tables.exhibits import read_yaml

PAPER = Path(shipped("paper"))
# What is said of all tables and figures.
TABLES_YAML = PAPER / "tables.yaml"
FIGURES_YAML = PAPER / "figures.yaml"
EXHIBITS = {
    "table": read_yaml(TABLES_YAML)["tables"],
    "figure": read_yaml(FIGURES_YAML),
}
DOCUMENTS = ["main", "supplement"]
PDF_FILES = expand("paper/{document}.pdf", document=DOCUMENTS)


rule render_paper:
    """Render tables, numbers and figures: for the paper and for the page."""
    input:
        specmoe=SPECMOE,
        package=PACKAGE,
        analysis="<campaign>/analysis",
        specifications=TABLES_YAML,
        captions=FIGURES_YAML,
    output:
        tables=directory("<campaign>/paper/tables"),
        figures=report(
            directory("<campaign>/paper/figures"),
            patterns=["{figure}.png"],
            caption=(PAPER / "captions/figure.rst").resolve(),
            category="Figures",
            labels=lambda wildcards: {"figure": wildcards.figure.replace("_", " ")},
        ),
        macros="<campaign>/paper/macros.tex",
        exhibits="<campaign>/paper/exhibits.tex",
        page="<campaign>/paper/page_figures.json",
        cells=report(
            directory("<campaign>/tables"),
            patterns=["{table}.csv"],
            caption=(PAPER / "captions/table.rst").resolve(),
            category="Tables",
            labels={"table": "{table}"},
        ),
    log:
        "<logs>/render_paper.log",
    params:
        out=subpath(output.macros, parent=True),
        # In the report they have their title and their note in English.
        words={
            kind: {
                name: (one["title"][0], one["note"][0]) for name, one in about.items()
            }
            for kind, about in EXHIBITS.items()
        },
    shell:
        "python {input.specmoe} render_paper --analysis {input.analysis}"
        " --cells {output.cells} --out {params.out} 2>&1 | tee {log}"


rule fill_paper:
    """Copy what is rendered of this campaign into paper/, in place of another one's."""
    input:
        rules.render_paper.output.tables,
        rules.render_paper.output.figures,
        rules.render_paper.output.macros,
        rules.render_paper.output.exhibits,
    output:
        directory("paper/tables"),
        directory("paper/figures"),
        "paper/macros.tex",
        "paper/exhibits.tex",
        owner="paper/campaign.txt",
    log:
        "<logs>/fill_paper.log",
    localrule: True
    params:
        campaign=CONFIG.campaign.name,
    shell:
        "(cp -R {input} paper/ && echo {params.campaign} > {output.owner}) 2>&1 | tee {log}"


rule render_pdf:
    """Compile the paper, or its supplement."""
    input:
        specmoe=SPECMOE,
        document=PAPER / "{document}.tex",
        parts=[
            PAPER / "references.bib",
            PAPER / "preamble.tex",
            *rules.fill_paper.input,
        ],
    output:
        "<campaign>/paper/{document}.pdf",
    log:
        text="<logs>/render_pdf/{document}.log",
        tex="<logs>/render_pdf/{document}.tex.log",
    wildcard_constraints:
        document="|".join(DOCUMENTS),
    shell:
        "python {input.specmoe} render_pdf --document {input.document} --log {log.tex} --out {output}"
        " --parts {input.parts} 2>&1 | tee {log.text}"


rule fill_pdf:
    """Copy the campaign's PDFs into paper/."""
    input:
        # It is the campaign's own by then.
        owner="paper/campaign.txt",
        pdf=expand("<campaign>/paper/{document}.pdf", document=DOCUMENTS),
    output:
        PDF_FILES,
    log:
        "<logs>/fill_pdf.log",
    localrule: True
    shell:
        "cp {input.pdf} paper/ 2>&1 | tee {log}"
