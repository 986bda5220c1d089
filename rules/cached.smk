# A finished campaign in the form that ships: all that rendering needs, without models.
rule pack_campaign:
    """Pack the files from which a finished campaign is rendered."""
    input:
        agreement=CAMPAIGN.agreement,
        config="<campaign>/config.json",
        divergences=expand(
            "<campaign>/divergences/{target}.json", target=CAMPAIGN.judged_targets
        ),
        engines=expand(
            "results/engines/{engine}/engine.json", engine=CAMPAIGN.engine_names
        ),
        host="<campaign>/host.json",
        models="<campaign>/models.json",
        pass_times=CAMPAIGN.pass_times,
        runs="<campaign>/runs.parquet",
        script=script("pack_campaign"),
        package=PACKAGE,
        # The demonstration is optional: without a record the campaign is packed without it.
        trace=[TRACE] if DEMONSTRATION and Path(TRACE).exists() else [],
    output:
        directory("<campaign>/cached"),
    log:
        "<logs>/pack_campaign.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    message:
        "Packing the campaign into {output}"
    shell:
        "python {input.script} --config {input.config} --files {input.runs} {input.host}"
        " {input.models} {input.pass_times} {input.agreement} {input.trace} --engines {input.engines} --divergences {input.divergences}"
        " --out {output} 2>&1 | tee {log}"
