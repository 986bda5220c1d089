# From the analysis to what main.tex includes.
PAPER = Path(shipped("paper"))
TEMPLATES = sorted(PAPER.glob("templates/*.tex.j2"))
TABLE_FILES = expand(
    "paper/tables/{table}", table=[template.stem for template in TEMPLATES]
)
CAPTIONS = {caption.stem: caption for caption in sorted(PAPER.glob("captions/*.rst"))}
FIGURE_FILES = expand(
    "paper/figures/{figure}.{end}", figure=CAPTIONS, end=["pdf", "png"]
)
# Which of them have anything to show.
FIGURE_SWITCHES = "paper/figures/switches.tex"
DOCUMENTS = ["main", "supplement"]
PDF_FILES = expand("paper/{document}.pdf", document=DOCUMENTS)
# Without TeX the paper is its tables, figures and numbers.
MISSING_TEX = missing_tex()


rule claim_paper:
    """Make paper/ this campaign's own, keeping what is rendered there of another."""
    input:
        modules("claim_paper"),
        # Before there is something to render, paper/ stays as it is.
        analysis="<campaign>/analysis",
        script=script("claim_paper"),
    output:
        update("paper/campaign.txt"),
    log:
        "<logs>/claim_paper.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        campaign=CONFIG.campaign.name,
    message:
        "Making paper/ campaign {params.campaign}'s"
    shell:
        "python {input.script} --campaign {params.campaign} --results results --out {output}"
        " 2>&1 | tee {log}"


rule render_tables:
    """Render the paper's tables, and the numbers its text cites."""
    input:
        modules("render_tables"),
        analysis="<campaign>/analysis",
        owner="paper/campaign.txt",
        script=script("render_tables"),
        templates=TEMPLATES,
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
        templates=PAPER / "templates",
    message:
        "Rendering the paper's tables"
    shell:
        "python {input.script} --analysis {input.analysis} --templates {params.templates}"
        " --out paper/tables --macros {output.macros} 2>&1 | tee {log}"


rule plot_figures:
    """Plot the paper's figures."""
    input:
        modules("plot_figures"),
        analysis="<campaign>/analysis",
        owner="paper/campaign.txt",
        script=script("plot_figures"),
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
    message:
        "Plotting the paper's figures"
    shell:
        "python {input.script} --analysis {input.analysis} --out paper/figures"
        " --switches {output.switches} 2>&1 | tee {log}"


rule render_pdf:
    """Compile the paper, or its supplement."""
    input:
        modules("render_pdf"),
        FIGURE_FILES,
        FIGURE_SWITCHES,
        TABLE_FILES,
        bibliography=PAPER / "references.bib",
        document=PAPER / "{document}.tex",
        macros="paper/macros.tex",
        preamble=PAPER / "preamble.tex",
        script=script("render_pdf"),
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
    message:
        "Compiling {output}"
    shell:
        "python {input.script} --document {input.document} --log {log.tex} --out {output}"
        " --parts {input.preamble} {input.bibliography} {input.macros} paper/tables paper/figures"
        " 2>&1 | tee {log.text}"
