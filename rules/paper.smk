# From the analysis to what main.tex includes.
PAPER = Path(shipped("paper"))
TEMPLATES = sorted(PAPER.glob("templates/*.tex.j2"))
TABLE_FILES = expand(
    "paper/tables/{table}", table=[template.stem for template in TEMPLATES]
)
FIGURE_FILES = expand(
    "paper/figures/{figure}.{end}",
    figure=sorted(caption.stem for caption in PAPER.glob("captions/*.rst")),
    end=["pdf", "png"],
)


rule render_tables:
    """Render the paper's tables, and the numbers its text cites."""
    input:
        modules("render_tables"),
        analysis="<campaign>/analysis",
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
        script=script("plot_figures"),
    output:
        FIGURE_FILES,
    log:
        "<logs>/plot_figures.log",
    benchmark:
        "<benchmarks>/plot_figures.tsv"
    conda:
        "../envs/analysis.yaml"
    message:
        "Plotting the paper's figures"
    shell:
        "python {input.script} --analysis {input.analysis} --out paper/figures 2>&1 | tee {log}"
