# Measuring, one job at a time: every measuring job claims all cores of the workflow. The jobs also
# hold a lock of the machine, because another snakemake may measure there.


if CONFIG.measurement.staged:

    # One job, as what it measured decides what it measures next. It keeps a record of each block.
    rule measure_until_decided:
        """Measure repeat by repeat until each answer is decided, or the minutes end."""
        input:
            **INPUTS.of_blocks(*CAMPAIGN.blocks),
            machine="<campaign>/machines/r0.json",
            program="<engine>/model_passes" if CAMPAIGN.timed_passes else [],
            asked=asked("stages"),
        output:
            "<campaign>/stages.json",
        log:
            "<logs>/measure_block/all.log",
        threads: workflow.cores
        resources:
            runtime=lambda wildcards, attempt: 240 * attempt,
        message:
            "Measuring until it is decided"
        shell:
            verb("measure_until_decided") + " --log {log}"

else:

    rule measure_block:
        """Measure the arms of one block on the same prompts, alone on the machine."""
        input:
            unpack(of("block", files_of_block)),
        output:
            **described("<campaign>/machines/{block}.json"),
            record=ensure("<campaign>/blocks/{block}.jsonl", non_empty=True),
        log:
            "<logs>/measure_block/{block}.log",
        # Blocks follow the schedule. They have the lowest priority, because a block that started
        # before all models are made would break the seeded order.
        priority: of("block", lambda block: INPUTS.priorities.get(block, 0))
        threads: workflow.cores
        # What a cluster is asked for, see profiles/slurm/.
        resources:
            runtime=lambda wildcards, attempt: 240 * attempt,
        message:
            "Measuring {wildcards.block}"
        shell:
            measuring("measure") + " --block {wildcards.block:q}"


if CAMPAIGN.timed_passes and not CONFIG.measurement.staged:

    # One job for all models, because starting one takes as long as the passes of a small model.
    rule measure_pass_times:
        """Time the passes of each model by themselves, alone on the machine."""
        input:
            **INPUTS.loaded(CAMPAIGN.timed_passes),
            before=of("repeat", before_passes),  # as the description of the machine
            engine="<engine>/engine.json",
            program="<engine>/model_passes",
        output:
            **described("<campaign>/machines/pass_times/r{repeat}.json"),
            records=expand(
                "<campaign>/pass_times/{model}/r{{repeat}}.jsonl",
                model=CAMPAIGN.timed_passes,
            ),
        log:
            "<logs>/pass_times/r{repeat}.log",
        # Just before the first block of the repeat.
        priority: of("repeat", INPUTS.machine_priority)
        threads: workflow.cores
        message:
            "Timing passes before repeat {wildcards.repeat}"
        shell:
            measuring("time_passes") + " --repeat {wildcards.repeat} --log {log}"
