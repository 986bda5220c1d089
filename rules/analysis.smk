# From runs to the tables that the paper is rendered from.
rule analyse_runs:
    """Compute every table of the analysis."""
    input:
        modules("analyse_runs"),
        cards=expand("<models>/{model}.json", model=CONFIG.measured_models),
        config="<campaign>/config.json",
        host="<campaign>/host.json",
        runs="<campaign>/runs.parquet",
        script=script("analyse_runs"),
    output:
        directory("<campaign>/analysis"),
    log:
        "<logs>/analyse_runs.log",
    benchmark:
        "<benchmarks>/analyse_runs.tsv"
    conda:
        "../envs/analysis.yaml"
    message:
        "Analysing the runs"
    shell:
        "python {input.script} --runs {input.runs} --config {input.config} --host {input.host}"
        " --cards {input.cards} --out {output} 2>&1 | tee {log}"
