# Whether a campaign's rows are physically possible and lossless.
rule judge_divergences:
    """Check every run that diverged from its baseline: is the divergence a tie or a wrong token?"""
    input:
        script=ancient(script("judge_divergences")),
        engine="<engine>/engine.json",
        first=first_description(),
        prompts=lambda wildcards: map(shipped, CAMPAIGN.prompt_files(wildcards.target)),
        records=lambda wildcards: records(
            CAMPAIGN.baselines_of_target(wildcards.target)
        ),
        runs="<campaign>/runs.parquet",
        target="<models>/{target}.gguf",
    output:
        **described("<campaign>/machines/divergences/{target}.json"),
        judged="<campaign>/divergences/{target}.json",
    log:
        judge="<logs>/judge_divergences/{target}.log",
        server="<logs>/judge_divergences/{target}.server.log",
    benchmark:
        "<benchmarks>/judge_divergences/{target}.tsv"
    conda:
        "../envs/analysis.yaml"
    threads: workflow.cores
    resources:
        **LIMITS,
    params:
        **MACHINE,
        folder=lambda wildcards: BLOCK_RECORDS,
    message:
        "Judging the runs that diverge from baselines of {wildcards.target}"
    shell:
        "{params.before}python {input.script} --runs {input.runs} --target-id {wildcards.target}"
        " --target {input.target} --records {params.folder} --root {params.root}"
        " --engine {input.engine} --host {params.host}"
        " --start-limit-s {resources.start_limit_s} --run-limit-s {resources.run_limit_s}"
        " --workflow-pid $PPID --server-log {log.server} --out {output.judged} 2>&1 | tee {log.judge}"


rule read_agreement:
    """Read what a draft's targets wrote alone with the draft: what would it have proposed?"""
    input:
        script=ancient(script("read_agreement")),
        card="<models>/{draft}.json",
        draft="<models>/{draft}.gguf",
        engine="<engine>/engine.json",
        first=first_description(),
        program="<engine>/read_agreement",
        prompts=lambda wildcards: sorted(
            {
                shipped(file)
                for target in CAMPAIGN.readings[wildcards.draft]
                for file in CAMPAIGN.prompt_files(target)
            }
        ),
        records=lambda wildcards: records(
            block
            for target in CAMPAIGN.readings[wildcards.draft]
            for block in CAMPAIGN.baselines_of_target(target)
        ),
        runs="<campaign>/runs.parquet",
        targets=lambda wildcards: expand(
            "<models>/{target}.gguf", target=CAMPAIGN.readings[wildcards.draft]
        ),
    output:
        **described("<campaign>/machines/agreement/{draft}.json"),
        read="<campaign>/agreement/{draft}.json",
    log:
        read="<logs>/read_agreement/{draft}.log",
        engine="<logs>/read_agreement/{draft}.engine.log",
    benchmark:
        "<benchmarks>/read_agreement/{draft}.tsv"
    conda:
        "../envs/analysis.yaml"
    threads: workflow.cores
    resources:
        **LIMITS,
    params:
        **MACHINE,
        folder=lambda wildcards: BLOCK_RECORDS,
    message:
        "Reading the texts of its targets with {wildcards.draft}"
    shell:
        "{params.before}python {input.script} --runs {input.runs} --draft-id {wildcards.draft}"
        " --draft {input.draft} --draft-card {input.card} --targets {input.targets}"
        " --program {input.program} --records {params.folder} --root {params.root}"
        " --engine {input.engine} --host {params.host}"
        " --start-limit-s {resources.start_limit_s} --run-limit-s {resources.run_limit_s}"
        " --workflow-pid $PPID --engine-log {log.engine} --out {output.read} 2>&1 | tee {log.read}"


rule collect_agreement:
    """Collect what drafts would have proposed in place of their targets' own tokens."""
    input:
        script=script("collect_agreement"),
        package=COLLECTING,
        records=expand("<campaign>/agreement/{draft}.json", draft=CAMPAIGN.readings),
    output:
        "<campaign>/agreement.parquet",
    log:
        "<logs>/collect_agreement.log",
    conda:
        "../envs/analysis.yaml"
    message:
        "Collecting {output}"
    shell:
        "python {input.script} --records {input.records} --out {output} 2>&1 | tee {log}"


rule audit_runs:
    """Check every run against the bounds of what the machine and models can do."""
    input:
        script=script("audit_runs"),
        package=PACKAGE,
        agreement=CAMPAIGN.agreement,
        config="<campaign>/config.json",
        divergences=expand(
            "<data>/divergences/{target}.json", target=CAMPAIGN.judged_targets
        ),
        engines=engines_of(CONFIG.campaign.suites),
        host="<data>/host.json",
        models="<data>/models.json",
        manifest=[*CAMPAIGN.data.glob("manifest.json")] if PACKED else [],
        pass_times=CAMPAIGN.pass_times,
        runs="<data>/runs.parquet",
    output:
        directory("<campaign>/audit"),
    log:
        "<logs>/audit_runs.log",
    benchmark:
        "<benchmarks>/audit_runs.tsv"
    conda:
        "../envs/analysis.yaml"
    params:
        pack=lambda wildcards: ["--pack", str(CAMPAIGN.data)] if PACKED else [],
    message:
        "Auditing the runs"
    shell:
        "python {input.script} --runs {input.runs} --config {input.config} --models {input.models}"
        " --host {input.host} --engines {input.engines} --pass-times {input.pass_times}"
        " {params.pack:q} --divergences {input.divergences} --agreement {input.agreement}"
        " --out {output} 2>&1 | tee {log}"
