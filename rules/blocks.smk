# Measuring: one engine process a block, one block at a time.


rule measure_block:
    """Measure all prompts of one block in one engine process, alone on the machine."""
    input:
        modules("measure_block"),
        unpack(block_models),
        engine=lambda wildcards: engine_of_block(BLOCKS[wildcards.block]),
        prompts=lambda wildcards: sorted(
            {shipped(source.file) for source in BLOCKS[wildcards.block].prompts}
        ),
        script=script("measure_block"),
    output:
        ensure("<campaign>/blocks/{block}.json", non_empty=True),
    log:
        block="<logs>/measure_block/{block}.log",
        server="<logs>/measure_block/{block}.server.log",
    benchmark:
        "<benchmarks>/measure_block/{block}.tsv"
    # In the order of BLOCKS, and after all models: a block that started before some model is made
    # would leave the seeded order.
    priority: lambda wildcards: PRIORITY[wildcards.block]
    conda:
        "../envs/measure.yaml"
    threads: workflow.cores
    # Resources, because none of these makes a finished block stale.
    resources:
        measuring=1,
        plan=str(RESULTS / "plan.json"),
        records=str(RESULTS / "blocks"),
        start_limit_s=CONFIG.measurement.start_limit_s,
        run_limit_s=CONFIG.measurement.run_limit_s,
    params:
        block=lambda wildcards: BLOCKS[wildcards.block].to_json(),
        draft=lambda wildcards, input: (
            f"--draft {input.draft} --draft-card {input.draft_card}"
            if BLOCKS[wildcards.block].has_draft
            else ""
        ),
        # Not an input: a machine described anew is the same machine.
        host=HOST,
        root=shipped("."),
        runs=lambda wildcards: len(BLOCKS[wildcards.block].prompts),
    message:
        "Measuring {wildcards.block}: {params.runs} runs"
    shell:
        "python {input.script} --block {params.block:q} --root {params.root}"
        " --engine {input.engine} --host {params.host} --target {input.target} --target-card {input.target_card}"
        " {params.draft} --start-limit-s {resources.start_limit_s}"
        " --run-limit-s {resources.run_limit_s} --workflow-pid $PPID"
        " --server-log {log.server} --log {log.block} --plan {resources.plan}"
        " --records {resources.records} --out {output}"
