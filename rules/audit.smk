# Whether a campaign's rows can be measurements of what they say they measure.
rule judge_divergences:
    """Ask the baselines of a target about every run that left their tokens."""
    input:
        modules("judge_divergences"),
        engine="<engine>/engine.json",
        prompts=lambda wildcards: prompts_of_target(wildcards.target),
        records=lambda wildcards: baseline_records(wildcards.target),
        runs="<campaign>/runs.parquet",
        script=script("judge_divergences"),
        target="<models>/{target}.gguf",
    output:
        "<campaign>/divergences/{target}.json",
    log:
        judge="<logs>/judge_divergences/{target}.log",
        server="<logs>/judge_divergences/{target}.server.log",
    benchmark:
        "<benchmarks>/judge_divergences/{target}.tsv"
    conda:
        "../envs/analysis.yaml"
    threads: workflow.cores
    resources:
        measuring=1,
        start_limit_s=CONFIG.measurement.start_limit_s,
        run_limit_s=CONFIG.measurement.run_limit_s,
    params:
        host=HOST,
        root=shipped("."),
    message:
        "Asking {wildcards.target} about runs that left its tokens"
    shell:
        "python {input.script} --runs {input.runs} --target-id {wildcards.target}"
        " --target {input.target} --records {input.records} --root {params.root}"
        " --engine {input.engine} --host {params.host}"
        " --start-limit-s {resources.start_limit_s} --run-limit-s {resources.run_limit_s}"
        " --workflow-pid $PPID --server-log {log.server} --out {output} 2>&1 | tee {log.judge}"


rule audit_runs:
    """Hold every run against what no true run can do."""
    input:
        modules("audit_runs"),
        config="<campaign>/config.json",
        divergences=expand("<data>/divergences/{target}.json", target=JUDGED_TARGETS),
        host="<data>/host.json",
        models="<data>/models.json",
        runs="<data>/runs.parquet",
        script=script("audit_runs"),
    output:
        directory("<campaign>/audit"),
    log:
        "<logs>/audit_runs.log",
    benchmark:
        "<benchmarks>/audit_runs.tsv"
    conda:
        "../envs/analysis.yaml"
    message:
        "Auditing the runs"
    shell:
        "python {input.script} --runs {input.runs} --config {input.config} --models {input.models}"
        " --host {input.host} --divergences {input.divergences} --out {output} 2>&1 | tee {log}"
