# Before hours are spent: what machine this is, and whether the campaign fits it.
#
# The plan is no file that others are made from: it says what is missing now, and would be stale as
# soon as anything is made. It is printed whenever snakemake starts to make or measure something.


rule describe_host:
    """Write down what machine this is, and how fast its memory is before a repeat."""
    input:
        modules("describe_host"),
        # Else all would be made while the first block waits for its models.
        before=lambda wildcards: blocks_before(FIRST_BLOCKS[int(wildcards.repeat)]),
        chips=CHIPS,
        script=script("describe_host"),
    output:
        "<campaign>/hosts/r{repeat}.json",
    log:
        "<logs>/describe_host/r{repeat}.log",
    benchmark:
        "<benchmarks>/describe_host/r{repeat}.tsv"
    # Just before the first block of the repeat.
    priority: lambda wildcards: PRIORITY[FIRST_BLOCKS[int(wildcards.repeat)]] + 0.5 / len(BLOCKS)
    conda:
        "../envs/models.yaml"
    resources:
        measuring=1,
    params:
        backend=BACKEND,
        given=CONFIG.host.model_dump_json(exclude_none=True),
    message:
        "Describing this machine before repeat {wildcards.repeat}"
    shell:
        "python {input.script} --backend {params.backend} --given {params.given:q}"
        " --chips {input.chips} --out {output} 2>&1 | tee {log}"


rule collect_host:
    """Collect what was found of the machine: of its memory, the fastest."""
    input:
        modules("collect_host"),
        hosts=expand("<campaign>/hosts/r{repeat}.json", repeat=FIRST_BLOCKS),
        script=script("collect_host"),
    output:
        "<campaign>/host.json",
    log:
        "<logs>/collect_host.log",
    localrule: True
    conda:
        "../envs/models.yaml"
    message:
        "Collecting {output}"
    shell:
        "python {input.script} --hosts {input.hosts} --out {output} 2>&1 | tee {log}"


rule plan:
    """Say what would be downloaded, needed and measured, and how long it may take."""
    log:
        "<logs>/plan.log",
    localrule: True
    conda:
        "../envs/models.yaml"
    params:
        command=plan_command(),
    shell:
        "{params.command:q} 2>&1 | tee {log}"
