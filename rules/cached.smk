# A finished campaign in the form that ships: all that rendering needs, without models.
rule pack_campaign:
    """Pack the files from which a finished campaign is rendered."""
    input:
        **RENDERING,
        **TABLES,
        engines=[*map(CAMPAIGN.engine_file, CAMPAIGN.engine_names)],
        # The demonstration is optional: without a record the campaign is packed without it.
        trace=[TRACE] if DEMONSTRATION and Path(TRACE).exists() else [],
    output:
        directory("<campaign>/cached"),
    log:
        "<logs>/pack_campaign.log",
    localrule: True
    shell:
        "python {input.specmoe} pack --campaign {input.campaign} --engines {input.engines}"
        " --trace {input.trace} --out {output} 2>&1 | tee {log}"
