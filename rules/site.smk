# From the analysis to the page that one publishes: index.html, and the data behind its tables.
SITE_SOURCES = Path(shipped("paper/site"))


rule render_site:
    """Render the campaign's page, in one file, with the data behind its tables."""
    input:
        modules("render_site"),
        analysis="<campaign>/analysis",
        captions=sorted(PAPER.glob("captions/*.rst")),
        citation=shipped("CITATION.cff"),
        script=script("render_site"),
        sources=sorted(SITE_SOURCES.glob("*.*")),
        trace=TRACE if DEMONSTRATION and (MEASURED or BROUGHT) else [],
    output:
        data=directory("<campaign>/site/data"),
        page="<campaign>/site/index.html",
    log:
        "<logs>/render_site.log",
    benchmark:
        "<benchmarks>/render_site.tsv"
    conda:
        "../envs/analysis.yaml"
    params:
        captions=PAPER / "captions",
        sources=SITE_SOURCES,
    message:
        "Rendering the page {output.page}"
    shell:
        "python {input.script} --analysis {input.analysis} --sources {params.sources}"
        " --captions {params.captions} --citation {input.citation} --trace {input.trace}"
        " --data {output.data} --out {output.page} 2>&1 | tee {log}"
