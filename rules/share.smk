# From the analysis to what one pastes elsewhere, and to what Snakemake's report has of any campaign.
rule render_share:
    """Render one captioned picture, one table and every table's cells, to be pasted elsewhere."""
    input:
        modules("render_share"),
        analysis="<campaign>/analysis",
        script=script("render_share"),
    output:
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
        table="<campaign>/share/speedup.md",
    log:
        "<logs>/render_share.log",
    benchmark:
        "<benchmarks>/render_share.tsv"
    conda:
        "../envs/analysis.yaml"
    params:
        words=table_words,
    message:
        "Rendering what can be pasted elsewhere: {output.picture}, {output.table}"
    shell:
        "python {input.script} --analysis {input.analysis} --picture {output.picture}"
        " --table {output.table} --cells {output.cells} 2>&1 | tee {log}"
