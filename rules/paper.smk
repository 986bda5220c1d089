# From the analysis to the tables, figures and numbers that main.tex includes.
import yaml

PAPER = Path(shipped("paper"))
# The columns, headings and notes of all tables.
TABLES_YAML = PAPER / "tables.yaml"
TABLES = yaml.load(TABLES_YAML.read_text(encoding="utf-8"), yaml.CSafeLoader)["tables"]
TABLE_FILES = expand("paper/tables/{table}.tex", table=TABLES)
CAPTIONS = {caption.stem: caption for caption in sorted(PAPER.glob("captions/*.rst"))}
FIGURE_FILES = expand(
    "paper/figures/{figure}.{end}", figure=CAPTIONS, end=["pdf", "png"]
)
# TeX switches that leave out figures without data.
FIGURE_SWITCHES = "paper/figures/switches.tex"
DOCUMENTS = ["main", "supplement"]
PDF_FILES = expand("paper/{document}.pdf", document=DOCUMENTS)


rule claim_paper:
    """Claim paper/ for this campaign, and keep the files of another one that are rendered there."""
    input:
        script=script("claim_paper"),
        # paper/ changes hands only when there is something to render.
        analysis="<campaign>/analysis",
    output:
        update("paper/campaign.txt"),
    log:
        "<logs>/claim_paper.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("claim_paper"),
        campaign=CONFIG.campaign.name,
    message:
        "Claiming paper/ for campaign {params.campaign}"
    shell:
        "python {input.script} --campaign {params.campaign} --results results --out {output}"
        " 2>&1 | tee {log}"


rule render_tables:
    """Render the paper's tables, and the numbers its text cites."""
    input:
        script=script("render_tables"),
        analysis="<campaign>/analysis",
        owner="paper/campaign.txt",
        tables=TABLES_YAML,
    output:
        tables=TABLE_FILES,
        macros="paper/macros.tex",
    log:
        "<logs>/render_tables.log",
    benchmark:
        "<benchmarks>/render_tables.tsv"
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("render_tables"),
        paper=PAPER,
    message:
        "Rendering the paper's tables"
    shell:
        "python {input.script} --analysis {input.analysis} --paper {params.paper}"
        " --out paper/tables --macros {output.macros} 2>&1 | tee {log}"


rule plot_figures:
    """Plot the paper's figures."""
    input:
        script=script("plot_figures"),
        analysis="<campaign>/analysis",
        owner="paper/campaign.txt",
    output:
        expand("paper/figures/{figure}.pdf", figure=CAPTIONS),
        [
            report(
                f"paper/figures/{figure}.png",
                caption=caption.resolve(),
                category="Figures",
                labels={"figure": figure.replace("_", " ")},
            )
            for figure, caption in CAPTIONS.items()
        ],
        switches=FIGURE_SWITCHES,
    log:
        "<logs>/plot_figures.log",
    benchmark:
        "<benchmarks>/plot_figures.tsv"
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("plot_figures"),
    message:
        "Plotting the paper's figures"
    shell:
        "python {input.script} --analysis {input.analysis} --out paper/figures"
        " --switches {output.switches} 2>&1 | tee {log}"


rule render_pdf:
    """Compile the paper, or its supplement."""
    input:
        FIGURE_FILES,
        FIGURE_SWITCHES,
        TABLE_FILES,
        script=script("render_pdf"),
        bibliography=PAPER / "references.bib",
        document=PAPER / "{document}.tex",
        macros="paper/macros.tex",
        preamble=PAPER / "preamble.tex",
    output:
        "paper/{document}.pdf",
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
        " --parts {input.preamble} {input.bibliography} {input.macros} paper/tables paper/figures"
        " 2>&1 | tee {log.text}"
