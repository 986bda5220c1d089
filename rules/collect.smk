# From the records of blocks to tables of runs.
rule collect_table:
    """Collect records into a table, or what describes the machine or the models into one file."""
    input:
        unpack(of("collected", INPUTS.of_table)),
        code=asked("collecting"),
        configuration=asked("campaign"),
    output:
        "<campaign>/{collected}.{ending}",
    log:
        "<logs>/collect_table/{collected}.{ending}.log",
    shell:
        verb("collect_table")
        + " --table {wildcards.collected:q} --out {output} 2>&1 | tee {log}"


# All that rendering needs, without models: the form that ships.
rule pack_campaign:
    """Pack the files from which a finished campaign is rendered."""
    input:
        **TABLES,
        code=RENDERING,
        engines=[*map(PLACES.engine_file, CAMPAIGN.engine_names)],
        # The demonstration is optional: without a record the campaign is packed without it.
        trace=[TRACE] if DEMONSTRATION and Path(TRACE).exists() else [],
    output:
        directory("<campaign>/packed"),
    log:
        "<logs>/pack_campaign.log",
    localrule: True
    shell:
        verb("pack") + " --trace {input.trace:q} 2>&1 | tee {log}"


# Only a campaign that is measured here has these targets. They print to the terminal, so they have
# no output and run at every call.
MEASURED_SUITES = CONFIG.campaign.suites if MEASURED else []
for suite in MEASURED_SUITES:

    rule:
        """Measure one suite, and print its summary."""
        name:
            f"suite_{suite}"
        input:
            runs=f"<campaign>/suites/{suite}.parquet",
        log:
            f"<logs>/suite_{suite}.log",
        localrule: True
        params:
            suite=suite,
        shell:
            verb("summarise_suite") + " --suite {params.suite:q} 2>&1 | tee {log}"
