# The machine, and whether the campaign fits it, before hours are spent.
#
# No rule has the plan as its input: the plan says what is missing now, and any new file makes it
# stale. The Snakefile prints it at every start that makes or measures something.
CHIPS = shipped("resources/hardware/memory_bandwidth.yaml")
PLAN_COMMAND = ["python", script("plan_campaign"), "--chips", CHIPS]
PLAN_COMMAND += ["--root", shipped("."), "--results", "results"]
PLANNED = CONFIG.of_campaign().model_dump_json()


rule describe_host:
    """Describe this machine and measure its memory bandwidth before a repeat."""
    input:
        script=ancient(script("describe_host")),
        # Without it, all repeats would be described while the first block waits for its models.
        before=lambda wildcards: records(CAMPAIGN.block_before(int(wildcards.repeat))),
        chips=CHIPS,
        engine=listing_engine(),
    output:
        "<campaign>/hosts/r{repeat}.json",
    log:
        "<logs>/describe_host/r{repeat}.log",
    benchmark:
        "<benchmarks>/describe_host/r{repeat}.tsv"
    # Just before the first block of the repeat.
    priority: lambda wildcards: CAMPAIGN.host_priority(int(wildcards.repeat))
    conda:
        "../envs/models.yaml"
    # Like a block, the probe of the memory has the machine to itself.
    threads: workflow.cores
    params:
        version=MEASURE_VERSION,
        backend=CAMPAIGN.backend,
        given=lambda wildcards: CONFIG.host.model_dump_json(exclude_none=True),
        listing=lambda wildcards, input: listing_options(input.engine),
    message:
        "Describing this machine before repeat {wildcards.repeat}"
    shell:
        "python {input.script} --backend {params.backend} --given {params.given:q}"
        " --chips {input.chips} {params.listing:q} --out {output} 2>&1 | tee {log}"


rule collect_host:
    """Collect the descriptions of the machine, with the fastest memory that was measured."""
    input:
        script=script("collect_host"),
        config="<campaign>/config.json",
        hosts=descriptions(),
    output:
        "<campaign>/host.json",
    log:
        "<logs>/collect_host.log",
    localrule: True
    conda:
        "../envs/models.yaml"
    params:
        hosts=lambda wildcards, input: (
            ["--machines", str(CAMPAIGN.folder / "machines"), "--config", input.config]
            if SHARED
            else ["--hosts", *input.hosts]
        ),
    message:
        "Collecting {output}"
    shell:
        "python {input.script} {params.hosts:q} --out {output} 2>&1 | tee {log}"


rule plan:
    """Say what would be downloaded, needed and measured, and how long it may take."""
    log:
        "<logs>/plan.log",
    localrule: True
    conda:
        "../envs/models.yaml"
    params:
        command=lambda wildcards: PLAN_COMMAND,
        config=lambda wildcards: PLANNED,
    shell:
        "printf '%s' {params.config:q} | {params.command:q} 2>&1 | tee {log}"
