# From runs to the tables that the paper is rendered from.
REPORTED = sorted(Path(shipped("resources/reported")).glob("*.csv"))


rule analyse_runs:
    """Compute every table of the analysis."""
    input:
        modules("analyse_runs"),
        audit="<campaign>/audit",
        beside=expand("results/{campaign}/analysis", campaign=CONFIG.beside),
        claims=shipped("config/claims.yaml"),
        config="<campaign>/config.json",
        host="<data>/host.json",
        models="<data>/models.json",
        passage=shipped(PUBLISHED_PASSAGE),
        reported=REPORTED,
        runs="<data>/runs.parquet",
        script=script("analyse_runs"),
    output:
        directory("<campaign>/analysis"),
    log:
        "<logs>/analyse_runs.log",
    benchmark:
        "<benchmarks>/analyse_runs.tsv"
    conda:
        "../envs/analysis.yaml"
    params:
        reported=lambda wildcards, input: Path(input.reported[0]).parent,
    message:
        "Analysing the runs"
    shell:
        "python {input.script} --runs {input.runs} --config {input.config} --host {input.host}"
        " --models {input.models} --audit {input.audit} --reported {params.reported}"
        " --passage {input.passage} --beside {input.beside} --claims {input.claims} --out {output} 2>&1 | tee {log}"
