# Measuring blocks, one at a time: every measuring job claims all cores of the workflow. The jobs
# also hold a lock of the machine, because another snakemake may measure there.


def files_of_block(block):
    """Return what a block waits for; one that is not measured as it is asked for now is again."""
    if f"blocks/{block}" in ASKED.lacking:
        force(*CAMPAIGN.record_files([block]))
    return FILES.of_block(block)


rule measure_block:
    """Measure the arms of one block on the same prompts, alone on the machine."""
    input:
        unpack(of("block", files_of_block)),
        specmoe=SPECMOE,
    output:
        **described("<campaign>/machines/{block}.json"),
        record=ensure("<campaign>/blocks/{block}.jsonl", non_empty=True),
    log:
        "<logs>/measure_block/{block}.log",
    # Blocks follow the schedule. They have the lowest priority, because a block that started
    # before all models are made would break the seeded order.
    priority: of("block", lambda block: CAMPAIGN.priorities.get(block, 0))
    threads: workflow.cores
    # What a cluster is asked for, see profiles/slurm/.
    resources:
        runtime=lambda wildcards, attempt: 240 * attempt,
    params:
        **MACHINE,
    message:
        "Measuring {wildcards.block}"
    shell:
        "{params.before}python {input.specmoe:q} measure --campaign {params.campaign}"
        " --block {wildcards.block:q} --workflow-pid $PPID --log {log:q}"


# Its table is printed as soon as it is known: what is provisional says so.
rule choose_contenders:
    """Say which settings are clearly beaten before a repeat, and measured no further."""
    input:
        unpack(of("stage", FILES.of_contenders)),
        specmoe=SPECMOE,
        asked=asked("contenders"),
    output:
        "<campaign>/contenders_r{stage}.json",
    log:
        "<logs>/choose_contenders/r{stage}.log",
    localrule: True
    params:
        campaign=str(CAMPAIGN.file),
    shell:
        "python {input.specmoe:q} choose_contenders --campaign {params.campaign}"
        " --stage {wildcards.stage} --out {output} 2>&1 | tee {log}"


if CAMPAIGN.timed_passes:

    def before_passes(repeat):
        """Return what passes before a repeat wait for; they are timed again as blocks are."""
        jobs = [f"pass_times/{model}/r{repeat}" for model in CAMPAIGN.timed_passes]
        force(*map(ASKED.records.link, ASKED.lacking.intersection(jobs)))
        return FILES.before_repeat(repeat)

    # One job for all models, because starting one takes as long as the passes of a small model.
    rule measure_pass_times:
        """Time the passes of each model by themselves, alone on the machine."""
        input:
            specmoe=SPECMOE,
            models=[*map(CAMPAIGN.model_file, CAMPAIGN.timed_passes)],
            infos=[*map(CAMPAIGN.info, CAMPAIGN.timed_passes)],
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
        priority: of("repeat", CAMPAIGN.machine_priority)
        threads: workflow.cores
        params:
            **MACHINE,
        message:
            "Timing passes before repeat {wildcards.repeat}"
        shell:
            "{params.before}python {input.specmoe:q} time_passes --campaign {params.campaign}"
            " --repeat {wildcards.repeat} --workflow-pid $PPID --log {log}"
