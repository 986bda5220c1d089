# Measuring blocks, one at a time: every measuring job claims all cores of the workflow. The scripts
# also hold a lock of the machine, because another snakemake may measure there. The rule has no
# `benchmark`: for that, snakemake reads the memory maps of all processes twice a second.


rule measure_block:
    """Measure the sides of one block on the same prompts, alone on the machine."""
    input:
        unpack(block_models),
        first=first_description(),
        script=ancient(script("measure_block")),
        engine=lambda wildcards: engine_file(CAMPAIGN.engine_of_block(wildcards.block)),
        prompts=lambda wildcards: sorted(
            {
                shipped(source.file)
                for source in CAMPAIGN.blocks[wildcards.block].prompts
            }
        ),
    output:
        **described("<campaign>/machines/{block}.json"),
        record=ensure("<campaign>/blocks/{block}.json", non_empty=True),
    log:
        "<logs>/measure_block/{block}.log",
    # Blocks follow the schedule. They have the lowest priority, because a block that started
    # before all models are made would break the seeded order.
    priority: lambda wildcards: CAMPAIGN.priorities[wildcards.block]
    conda:
        "../envs/measure.yaml"
    threads: workflow.cores
    # These are resources, because a change of them makes no measured block stale.
    resources:
        **LIMITS,
        # What a cluster is asked for, see profiles/slurm/.
        mem_mb=lambda wildcards, attempt: CAMPAIGN.megabytes_of_block(
            wildcards.block, attempt
        ),
        runtime=lambda wildcards, attempt: CAMPAIGN.minutes_of_block(
            wildcards.block, attempt
        ),
        plan=str(CAMPAIGN.folder / "plan.json"),
        records=BLOCK_RECORDS,
    params:
        **MACHINE,
        block=lambda wildcards: CAMPAIGN.blocks[wildcards.block].to_json(),
        draft=lambda wildcards, input: draft_options(
            CAMPAIGN.blocks[wildcards.block], input
        ),
        runs=lambda wildcards: CAMPAIGN.blocks[wildcards.block].runs,
        # Each side's server has a log of its own beside this one.
        server_log=lambda wildcards: str(
            CAMPAIGN.folder / f"logs/measure_block/{wildcards.block}.server.log"
        ),
    message:
        "Measuring {wildcards.block}: {params.runs} runs"
    shell:
        "{params.before}printf '%s' {params.block:q} | python {input.script} --root {params.root}"
        " --engine {input.engine} --host {params.host} --target {input.target} --target-card {input.target_card}"
        " {params.draft} --start-limit-s {resources.start_limit_s}"
        " --run-limit-s {resources.run_limit_s} --workflow-pid $PPID"
        " --server-log {params.server_log} --log {log} --plan {resources.plan}"
        " --records {resources.records} --out {output.record}"


rule measure_pass_times:
    """Time the passes of one model by themselves, alone on the machine."""
    input:
        script=ancient(script("measure_pass_times")),
        # As the description of the machine.
        before=lambda wildcards: records(CAMPAIGN.block_before(int(wildcards.repeat))),
        card="<models>/{model}.json",
        engine="<engine>/engine.json",
        model="<models>/{model}.gguf",
        first=first_description(),
        pass_bench="<engine>/pass_bench",
        tensors=f"<models>/tensors/{CAMPAIGN.engine_id}/{{model}}.ok",
        text=shipped(CONFIG.prompts.passage),
    output:
        **described("<campaign>/machines/pass_times/{model}/r{repeat}.json"),
        record="<campaign>/pass_times/{model}/r{repeat}.json",
    log:
        "<logs>/pass_times/{model}/r{repeat}.log",
    # Just before the first block of the repeat.
    priority: lambda wildcards: CAMPAIGN.host_priority(int(wildcards.repeat))
    conda:
        "../envs/measure.yaml"
    threads: workflow.cores
    resources:
        **LIMITS,
    params:
        **MACHINE,
        passes=lambda wildcards: CAMPAIGN.timed_passes[wildcards.model].to_json(),
    message:
        "Timing passes of {wildcards.model} before repeat {wildcards.repeat}"
    shell:
        "{params.before}python {input.script} --passes {params.passes:q} --program {input.pass_bench}"
        " --repeat {wildcards.repeat} --root {params.root} --engine {input.engine}"
        " --host {params.host} --target {input.model} --target-card {input.card}"
        " --start-limit-s {resources.start_limit_s} --run-limit-s {resources.run_limit_s}"
        " --workflow-pid $PPID --server-log {log} --out {output.record}"
