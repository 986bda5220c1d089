# What is asked of jobs, see `specmoe/campaign/asked.py`.


rule ask:
    """Make the file that is named by what is asked of jobs; those of other questions go."""
    output:
        "{place}/asked/{question}-{digest}",
    log:
        "{place}/logs/ask/{question}-{digest}.log",
    wildcard_constraints:
        place="results/.+",
        question="[^/]+",
        digest="[0-9a-f]{16}",
    priority: 20
    localrule: True
    params:
        older=lambda wildcards, output: ASKED.older(Path(output[0])),
    # Some systems' rm wants an operand.
    shell:
        "(touch {output} && rm -f {output}~ {params.older:q}) 2> {log}"
