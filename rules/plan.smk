# The machine, and whether the campaign fits it, before hours are spent.
#
# No rule has the plan as its input: the plan says what is missing now, and any new file makes it
# stale. The Snakefile prints it at every start that makes or measures something.


rule describe_machine:
    """Describe this machine and measure its memory bandwidth before a repeat."""
    input:
        # Without it, all repeats would be described while the first block waits for its models.
        before=of("repeat", INPUTS.before_repeat),
        asked=asked("machine"),
        # It lists the devices.
        engine="<engine>/engine.json" if CAMPAIGN.gpu else [],
    output:
        "<campaign>/machines/r{repeat}.json",
    log:
        "<logs>/describe_machine/r{repeat}.log",
    # Just before the first block of the repeat.
    priority: of("repeat", INPUTS.machine_priority)
    # Like a block, the probe of the memory has the machine to itself.
    threads: workflow.cores
    shell:
        verb("describe_machine") + GIVEN + " --engine {input.engine}"
        " --out {output} 2>&1 | tee {log}"


rule plan:
    """Say what would be downloaded, needed and measured, and how long it may take."""
    localrule: True


# Of a module no `onstart` runs, which prints it.
if MODULE and {word.rpartition("_")[2] for word in sys.argv} & {"plan"}:
    print_plan()
