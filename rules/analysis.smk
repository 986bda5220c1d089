# From runs to the tables of the analysis, and to advice.
REPORTED = sorted(Path(shipped("resources/reported")).glob("*.csv"))


rule analyse_runs:
    """Compute every table of the analysis."""
    input:
        script=script("analyse_runs"),
        package=PACKAGE,
        agreement=CAMPAIGN.agreement,
        audit="<campaign>/audit",
        compare_with=expand("results/{campaign}/analysis", campaign=CONFIG.compare_with),
        config="<campaign>/config.json",
        host="<data>/host.json",
        models="<data>/models.json",
        pass_times=CAMPAIGN.pass_times,
        reported=REPORTED,
        runs="<data>/runs.parquet",
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
        " --compare-with {input.compare_with}"
        " --pass-times {input.pass_times} --agreement {input.agreement}"
        " --out {output} 2>&1 | tee {log}"


# What follows prints to the terminal, so it has no output and runs at every call.
rule advise:
    """Say what to switch on: for each target the best draft and γ, or why to leave it off."""
    input:
        script=script("advise"),
        analysis="<campaign>/analysis",
    log:
        "<logs>/advise.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        out=CAMPAIGN.folder / "advice.json",
    message:
        "Advising"
    shell:
        "python {input.script} --analysis {input.analysis} --out {params.out} 2>&1 | tee {log}"


rule more_repeats:
    """Say which comparisons need more repeats for intervals as narrow as the config asks."""
    input:
        **AUDITED,
        script=script("more_repeats"),
        config="<campaign>/config.json",
        runs="<data>/runs.parquet",
    log:
        "<logs>/more_repeats.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        out=CAMPAIGN.folder / "more_repeats.yaml",
    message:
        "Counting the repeats that are needed"
    shell:
        "python {input.script} --runs {input.runs} --config {input.config}"
        " --out {params.out} 2>&1 | tee {log}"
