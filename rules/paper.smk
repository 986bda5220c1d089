# From the analysis to the tables, figures and numbers that main.tex includes.
import yaml

PAPER = Path(shipped("paper"))
# The columns, headings and notes of all tables.
TABLES_YAML = PAPER / "tables.yaml"
TABLES = yaml.load(TABLES_YAML.read_text(encoding="utf-8"), yaml.CSafeLoader)["tables"]
CAPTIONS = {
    file.stem: file.read_text(encoding="utf-8")
    for file in sorted(PAPER.glob("captions/*.rst"))
}
DOCUMENTS = ["main", "supplement"]
PDF_FILES = expand("paper/{document}.pdf", document=DOCUMENTS)


rule render_paper:
    """Render tables, numbers and figures: for the paper, for the page and to share."""
    input:
        script=script("render_paper"),
        analysis="<campaign>/analysis",
        specifications=TABLES_YAML,
    output:
        tables=directory("<campaign>/paper/tables"),
        figures=report(
            directory("<campaign>/paper/figures"),
            patterns=["{figure}.png"],
            caption=(PAPER / "captions/figures/figure.rst").resolve(),
            category="Figures",
            labels=lambda wildcards: {"figure": wildcards.figure.replace("_", " ")},
        ),
        macros="<campaign>/paper/macros.tex",
        page="<campaign>/paper/page_figures.json",
        cells=report(
            directory("<campaign>/tables"),
            patterns=["{table}.csv"],
            caption=(PAPER / "captions/tables/table.rst").resolve(),
            category="Tables",
            labels={"table": "{table}"},
        ),
        picture=report(
            "<campaign>/share/speedup.png",
            caption=(PAPER / "captions/share/speedup.rst").resolve(),
            category="To share",
            labels={"figure": "speedup"},
        ),
        answer="<campaign>/share/speedup.md",
    log:
        "<logs>/render_paper.log",
    benchmark:
        "<benchmarks>/render_paper.tsv"
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("render_paper"),
        # In the report a figure has its caption, a table the title and the note of the page.
        captions=CAPTIONS,
        words={
            name: {"title": about["title"][0], "note": about["note"][0]}
            for name, about in TABLES.items()
        },
    message:
        "Rendering tables, numbers and figures"
    shell:
        "python {input.script} --analysis {input.analysis}"
        " --specifications {input.specifications} --tables {output.tables}"
        " --figures {output.figures} --macros {output.macros} --page {output.page}"
        " --cells {output.cells} --picture {output.picture} --answer {output.answer}"
        " 2>&1 | tee {log}"


rule fill_paper:
    """Copy what is rendered of this campaign into paper/, in place of another one's."""
    input:
        rules.render_paper.output.tables,
        rules.render_paper.output.figures,
        rules.render_paper.output.macros,
    output:
        directory("paper/tables"),
        directory("paper/figures"),
        "paper/macros.tex",
        owner="paper/campaign.txt",
    log:
        "<logs>/fill_paper.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        campaign=CONFIG.campaign.name,
    message:
        "Filling paper/ with campaign {params.campaign}"
    shell:
        "(cp -R {input} paper/ && echo {params.campaign} > {output.owner}) 2>&1 | tee {log}"


rule render_pdf:
    """Compile the paper, or its supplement."""
    input:
        script=script("render_pdf"),
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
    benchmark:
        "<benchmarks>/render_pdf/{document}.tsv"
    wildcard_constraints:
        document="|".join(DOCUMENTS),
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("render_pdf"),
    message:
        "Compiling {output}"
    shell:
        "python {input.script} --document {input.document} --log {log.tex} --out {output}"
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
    conda:
        "../envs/analysis.yaml"
    message:
        "Copying the PDFs into paper/"
    shell:
        "cp {input.pdf} paper/ 2>&1 | tee {log}"
