# A finished campaign in the form that ships: what the paper is rendered from, without models.
rule pack_campaign:
    """Pack what a finished campaign is rendered from."""
    input:
        config="<campaign>/config.json",
        divergences=expand(
            "<campaign>/divergences/{target}.json", target=JUDGED_TARGETS
        ),
        engines=expand("results/engines/{engine}/engine.json", engine=ENGINES),
        host="<campaign>/host.json",
        models="<campaign>/models.json",
        runs="<campaign>/runs.parquet",
        script=script("pack_campaign"),
        # Of one prompt, not of the campaign: if it is not made or fails, the campaign is packed
        # without it.
        trace=[TRACE] if DEMONSTRATION and Path(TRACE).exists() else [],
    output:
        directory("<campaign>/cached"),
    log:
        "<logs>/pack_campaign.log",
    localrule: True
    conda:
        "../envs/measure.yaml"
    message:
        "Packing the campaign into {output}"
    shell:
        "python {input.script} --config {input.config} --files {input.runs} {input.host}"
        " {input.models} {input.trace} --engines {input.engines} --divergences {input.divergences} --out {output} 2>&1 | tee {log}"
