# What is asked of jobs, see `specmoe/plan/asked.py`.


rule ask:
    """Write what is asked of jobs into a file named by its digest; what was asked before goes."""
    output:
        "{place}/asked/{question}-{digest}.json",
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
        text=lambda wildcards, output: json.dumps(
            ASKED.questions[Path(output[0])], indent=1
        ),
    shell:
        "(rm -f {params.older:q} && printf '%s' {params.text:q} > {output}) 2> {log}"
