# Before hours are spent: what machine this is, and whether the campaign fits it.


rule describe_host:
    """Write down what machine this is."""
    input:
        modules("describe_host"),
        chips=shipped("resources/hardware/memory_bandwidth.yaml"),
        script=script("describe_host"),
    output:
        "<campaign>/host.json",
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


rule check_plan:
    """Say what is to be done, and stop before the first download if something does not fit."""
    input:
        host=ancient("<campaign>/host.json"),
        script=ancient(script("plan_campaign")),
    output:
        # Made anew whenever there is something to be made or measured.
        temp("<models>/plan.ok"),
    log:
        "<logs>/check_plan.log",
    priority: 20
    conda:
        "../envs/models.yaml"
    params:
        config=CONFIG.model_dump_json(),
        backend=BACKEND,
        campaign=RESULTS,
        models=Path("results/models", CONFIG.campaign.models),
        root=shipped("."),
    message:
        "Planning the campaign"
    shell:
        "python {input.script} --config {params.config:q} --backend {params.backend}"
        " --host {input.host} --models {params.models} --campaign {params.campaign}"
        " --root {params.root} --check {output} 2>&1 | tee {log}"


rule plan:
    """Say what would be downloaded, needed and measured, and how long it may take."""
    input:
        host=rules.check_plan.input.host,
        script=rules.check_plan.input.script,
    log:
        "<logs>/plan.log",
    localrule: True
    conda:
        "../envs/models.yaml"
    params:
        config=rules.check_plan.params.config,
        backend=BACKEND,
        campaign=RESULTS,
        models=rules.check_plan.params.models,
        root=shipped("."),
    shell:
        "python {input.script} --config {params.config:q} --backend {params.backend}"
        " --host {input.host} --models {params.models} --campaign {params.campaign}"
        " --root {params.root} 2>&1 | tee {log}"
