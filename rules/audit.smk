# Whether a campaign's rows are physically possible and lossless.
rule judge_divergences:
    """Check every run that diverged from its baseline: is the divergence a tie or a wrong token?"""
    input:
        engine="<engine>/engine.json",
        target="<models>/{target}.gguf",
        runs="<campaign>/runs.parquet",
    output:
        **described("<campaign>/machines/divergences/{target}.json"),
        judged="<campaign>/divergences/{target}.json",
    log:
        judge="<logs>/judge_divergences/{target}.log",
        server="<logs>/judge_divergences/{target}.server.log",
    threads: workflow.cores
    shell:
        measuring("judge_divergences") + " --target {wildcards.target:q}"
        " --log {log.server} 2>&1 | tee {log.judge}"


rule score_draft:
    """Read the outputs of a draft model's targets with it: its scores."""
    input:
        engine="<engine>/engine.json",
        program="<engine>/model_passes",
        draft="<models>/{draft}.gguf",
        info="<models>/{draft}.json",
        records=of(
            "draft",
            lambda draft: PLACES.record_files(CAMPAIGN.scoring[f"agreement/{draft}"]),
        ),
    output:
        **described("<campaign>/machines/agreement/{draft}.json"),
        read="<campaign>/agreement/{draft}.json",
    log:
        read="<logs>/score_draft/{draft}.log",
        engine="<logs>/score_draft/{draft}.engine.log",
    threads: workflow.cores
    shell:
        measuring("score") + " --record agreement/{wildcards.draft:q}"
        " --log {log.engine} 2>&1 | tee {log.read}"


rule audit:
    """Check every run against the bounds of what the machine and models can do."""
    input:
        **TABLES,
        code=RENDERING,
    output:
        directory("<campaign>/audit"),
    log:
        "<logs>/audit.log",
    shell:
        verb("audit") + " 2>&1 | tee {log}"
