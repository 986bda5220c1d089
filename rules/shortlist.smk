# The first of two steps to an answer: which settings are worth measuring? Each target writes its texts
# alone, once; passes are timed, once; and drafts read the texts.
ALONE = CAMPAIGN.alone if CAMPAIGN.measured else {}
ALONE_READINGS = list_readings(CONFIG, CAMPAIGN.contenders) if ALONE else {}


use rule collect_runs as collect_alone with:
    input:
        script=script("collect_runs"),
        cards=cards_of(CONFIG.campaign.suites),
        config="<campaign>/config.json",
        engines=engines_of(CONFIG.campaign.suites),
        records=records(ALONE),
    output:
        "<campaign>/shortlist/runs.parquet",
    log:
        "<logs>/shortlist/collect_runs.log",
    benchmark:
        "<benchmarks>/shortlist/collect_runs.tsv"
    params:
        code=code("collect_runs"),
        folder=lambda wildcards: BLOCK_RECORDS,
        second=lambda wildcards: SECOND_RECORDS,
        suite="--alone",


use rule collect_pass_times as collect_first_pass_times with:
    input:
        script=script("collect_pass_times"),
        config="<campaign>/config.json",
        engine="<engine>/engine.json",
        records=expand(
            "<campaign>/pass_times/{model}/r0.json", model=CAMPAIGN.timed_passes
        ),
    output:
        "<campaign>/shortlist/pass_times.parquet",
    log:
        "<logs>/shortlist/collect_pass_times.log",
    params:
        code=code("collect_pass_times"),
        folder=lambda wildcards: str(CAMPAIGN.folder / "pass_times"),
        repeats="--first",


use rule read_agreement as read_alone with:
    input:
        **READ_WITH,
        records=records(ALONE),
        runs="<campaign>/shortlist/runs.parquet",
    output:
        **described("<campaign>/machines/shortlist/{draft}.json"),
        read="<campaign>/shortlist/agreement/{draft}.json",
    log:
        read="<logs>/shortlist/read_agreement/{draft}.log",
        engine="<logs>/shortlist/read_agreement/{draft}.engine.log",
    benchmark:
        "<benchmarks>/shortlist/read_agreement/{draft}.tsv"


use rule collect_agreement as collect_alone_agreement with:
    input:
        script=script("collect_agreement"),
        records=expand(
            "<campaign>/shortlist/agreement/{draft}.json", draft=ALONE_READINGS
        ),
    output:
        "<campaign>/shortlist/agreement.parquet",
    log:
        "<logs>/shortlist/collect_agreement.log",
    params:
        code=code("collect_agreement"),


rule shortlist:
    """Say which settings are worth measuring before all are: a step before advise."""
    input:
        script=script("shortlist"),
        agreement="<campaign>/shortlist/agreement.parquet" if ALONE else [],
        config="<campaign>/config.json",
        # The machine is described before its first block.
        host=[str(CAMPAIGN.host_file)] if CAMPAIGN.measured and not SHARED else [],
        models="<campaign>/models.json",
        pass_times="<campaign>/shortlist/pass_times.parquet" if ALONE else [],
        runs="<campaign>/shortlist/runs.parquet" if ALONE else [],
    log:
        "<logs>/shortlist.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        out=CAMPAIGN.folder / "shortlist.yaml",
    message:
        "Choosing the settings that are worth measuring"
    shell:
        "python {input.script} --config {input.config} --models {input.models} --runs {input.runs}"
        " --agreement {input.agreement} --pass-times {input.pass_times} --out {params.out} 2>&1"
        " | tee {log}"
