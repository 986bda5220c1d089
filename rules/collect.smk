# From the records of blocks to tables of runs. Scripts get the folder of records, because a command line
# holds the names of some ten thousands only.
rule record_config:
    """Record the configuration with which the campaign is measured."""
    input:
        shipped("Snakefile"),
    output:
        "<campaign>/config.json",
    log:
        "<logs>/record_config.log",
    # Before any model is made: campaigns look there for the models that others have measured.
    priority: 20
    localrule: True
    conda:
        "../envs/measure.yaml"
    params:
        config=lambda wildcards: RECORDED,
    message:
        "Recording the configuration"
    shell:
        "printf '%s\\n' {params.config:q} > {output} 2> {log}"


rule collect_models:
    """Collect the cards of the campaign's models."""
    input:
        cards=expand("<models>/{model}.json", model=CONFIG.measured_networks),
        script=script("collect_models"),
    output:
        "<campaign>/models.json",
    log:
        "<logs>/collect_models.log",
    localrule: True
    conda:
        "../envs/measure.yaml"
    message:
        "Collecting {output}"
    shell:
        "python {input.script} --cards {input.cards} --out {output} 2>&1 | tee {log}"


rule collect_runs:
    """Collect every run of the campaign."""
    input:
        script=script("collect_runs"),
        package=COLLECTING,
        cards=cards_of(CONFIG.campaign.suites),
        config="<campaign>/config.json",
        engines=engines_of(CONFIG.campaign.suites),
        records=records(CAMPAIGN.blocks),
    output:
        "<campaign>/runs.parquet",
    log:
        "<logs>/collect_runs.log",
    benchmark:
        "<benchmarks>/collect_runs.tsv"
    conda:
        "../envs/analysis.yaml"
    params:
        folder=lambda wildcards: BLOCK_RECORDS,
        suite="",
    message:
        "Collecting {output}"
    shell:
        "python {input.script} --config {input.config} --engines {input.engines} --cards {input.cards}"
        " --records {params.folder} {params.suite} --out {output} 2>&1 | tee {log}"


rule collect_pass_times:
    """Collect the times of passes that were measured by themselves."""
    input:
        script=script("collect_pass_times"),
        package=COLLECTING,
        config="<campaign>/config.json",
        engine="<engine>/engine.json",
        records=expand(
            "<campaign>/pass_times/{model}/r{repeat}.json",
            model=CAMPAIGN.timed_passes,
            repeat=CAMPAIGN.first_blocks,
        ),
    output:
        "<campaign>/pass_times.parquet",
    log:
        "<logs>/collect_pass_times.log",
    conda:
        "../envs/analysis.yaml"
    params:
        folder=lambda wildcards: str(CAMPAIGN.folder / "pass_times"),
    message:
        "Collecting {output}"
    shell:
        "python {input.script} --config {input.config} --engine {input.engine}"
        " --records {params.folder} --out {output} 2>&1 | tee {log}"


use rule collect_runs as collect_suite with:
    input:
        script=script("collect_runs"),
        package=COLLECTING,
        cards=lambda wildcards: cards_of([wildcards.suite]),
        config="<campaign>/config.json",
        engines=lambda wildcards: engines_of([wildcards.suite]),
        records=lambda wildcards: records(CAMPAIGN.blocks_of_suite(wildcards.suite)),
    output:
        "<campaign>/suites/{suite}.parquet",
    log:
        "<logs>/collect_suite/{suite}.log",
    benchmark:
        "<benchmarks>/collect_suite/{suite}.tsv"
    params:
        folder=lambda wildcards: BLOCK_RECORDS,
        suite=lambda wildcards: f"--suite {wildcards.suite}",


rule summarise_suite:
    """Summarise the runs of one suite."""
    input:
        script=script("summarise_suite"),
        package=PACKAGE,
        config="<campaign>/config.json",
        runs="<campaign>/suites/{suite}.parquet",
    output:
        "<campaign>/suites/{suite}.txt",
    log:
        "<logs>/summarise_suite/{suite}.log",
    benchmark:
        "<benchmarks>/summarise_suite/{suite}.tsv"
    conda:
        "../envs/analysis.yaml"
    message:
        "Summarising suite {wildcards.suite}"
    shell:
        "python {input.script} --config {input.config} --suite {wildcards.suite}"
        " --runs {input.runs} --out {output} 2>&1 | tee {log}"


# Only a campaign that is measured here has these targets. They print to the terminal, so they have
# no output and run at every call.
for suite in CONFIG.campaign.suites if CAMPAIGN.measured else []:

    rule:
        """Measure one suite, and print its summary."""
        name:
            f"suite_{suite}"
        input:
            f"<campaign>/suites/{suite}.txt",
        log:
            f"<logs>/suite_{suite}.log",
        localrule: True
        conda:
            "../envs/analysis.yaml"
        message:
            "Printing the summary of a suite"
        shell:
            "tee {log} < {input}"
