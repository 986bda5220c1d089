# From the analysis to the page: index.html and the data behind its tables.


rule render_site:
    """Render the campaign's page, in one file, with the data behind its tables."""
    input:
        **RENDERING,
        **EXHIBITS,
        analysis="<campaign>/analysis",
        citation=shipped("CITATION.cff"),
        figures=rules.render_paper.output.figures,
        sources=sorted(PAPER.glob("site/*.*")),
        trace=TRACE if PAGED else [],
    output:
        data=directory("<campaign>/site/data"),
        page="<campaign>/site/index.html",
    log:
        "<logs>/render_site.log",
    params:
        out=subpath(output.page, parent=True),
    shell:
        "python {input.specmoe} render_site --analysis {input.analysis} --figures {input.figures}"
        " --trace {input.trace} --out {params.out} 2>&1 | tee {log}"
