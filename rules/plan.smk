# Before hours are spent: what machine this is, and whether the campaign fits it.
#
# The plan is no file that others are made from: it says what is missing now, and would be stale as
# soon as anything is made. It is printed whenever snakemake starts to make or measure something.


rule describe_host:
    """Write down what machine this is."""
    input:
        modules("describe_host"),
        chips=CHIPS,
        script=script("describe_host"),
    output:
        HOST,
    log:
        "<logs>/describe_host.log",
    benchmark:
        "<benchmarks>/describe_host.tsv"
    priority: 20
    conda:
        "../envs/models.yaml"
    resources:
        measuring=1,
    params:
        backend=BACKEND,
        given=CONFIG.host.model_dump_json(exclude_none=True),
    message:
        "Describing this machine"
    shell:
        "python {input.script} --backend {params.backend} --given {params.given:q}"
        " --chips {input.chips} --out {output} 2>&1 | tee {log}"


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
