# From runs to the tables of the analysis, and to advice.
rule analyse_runs:
    """Compute every table of the analysis."""
    input:
        **TABLES,
        code=RENDERING,
        audit="<campaign>/audit",
        comparison=asked("comparison"),
        compare_with=expand("results/{campaign}/analysis", campaign=CONFIG.compare_with),
    output:
        directory("<campaign>/analysis"),
    log:
        "<logs>/analyse_runs.log",
    shell:
        verb("analyse") + " --compare-with {input.compare_with} 2>&1 | tee {log}"


# What follows prints to the terminal, so it has no output and runs at every call.
rule advise:
    """Say what to switch on: for each target the best draft and γ, or why to leave it off."""
    input:
        analysis="<campaign>/analysis",
        stages=PLACES.stages,
    log:
        "<logs>/advise.log",
    localrule: True
    params:
        options=lambda wildcards: OPTIONS,
    shell:
        call("advise") + " --analysis {input.analysis} --stages {input.stages}"
        " --options={params.options:q} 2>&1 | tee {log}"
