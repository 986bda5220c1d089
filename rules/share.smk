# From the analysis to the files to share, which Snakemake's report of any campaign includes.
rule render_share:
    """Render a captioned picture and a table to paste elsewhere, and the cells of every table."""
    input:
        script=script("render_share"),
        analysis="<campaign>/analysis",
        tables=TABLES_YAML,
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
        code=code("render_share"),
        # In the report a table has the title and the note that it has on the page.
        words={
            name: {"title": about["title"][0], "note": about["note"][0]}
            for name, about in TABLES.items()
        },
    message:
        "Rendering files to share: {output.picture}, {output.table}"
    shell:
        "python {input.script} --analysis {input.analysis} --tables {input.tables}"
        " --picture {output.picture} --table {output.table}"
        " --cells {output.cells} 2>&1 | tee {log}"
