# The published study's rows as a campaign.
rule fetch_published:
    """Get the authors' own rows and check their digest."""
    input:
        script=ancient(script("fetch_published")),
    output:
        "<campaign>/imported/runs.csv",
    log:
        "<logs>/fetch_published.log",
    localrule: True
    conda:
        "../envs/measure.yaml"
    params:
        entry=lambda wildcards: CONFIG.published.model_dump_json(),
    message:
        "Getting the published rows"
    shell:
        "python {input.script} --entry {params.entry:q} --out {output} 2>&1 | tee {log}"


rule import_published:
    """Convert the authors' rows to our schema, with what is known of their models and machine."""
    input:
        script=script("import_published"),
        package=PACKAGE,
        config="<campaign>/config.json",
        csv="<campaign>/imported/runs.csv",
    output:
        host="<campaign>/imported/host.json",
        models="<campaign>/imported/models.json",
        runs="<campaign>/imported/runs.parquet",
    log:
        "<logs>/import_published.log",
    benchmark:
        "<benchmarks>/import_published.tsv"
    conda:
        "../envs/analysis.yaml"
    params:
        given=lambda wildcards: CONFIG.host.model_dump_json(exclude_none=True),
    message:
        "Importing the published rows"
    shell:
        "python {input.script} --csv {input.csv} --config {input.config} --given {params.given:q}"
        " --host {output.host} --models {output.models} --runs {output.runs} 2>&1 | tee {log}"
