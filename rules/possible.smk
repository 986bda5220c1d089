# What others claim: no campaign, engine or model has a part in it.
ASKED = CONFIG.claim or CONFIG.claims
POSSIBLE = ["python", SPECMOE, "possible", "--out", "results/possible"]
POSSIBLE += ["--claim", json.dumps(CONFIG.claim)] if CONFIG.claim else []
POSSIBLE += ["--claims", CONFIG.claims] if CONFIG.claims else []


rule possible:
    """Say whether a claim about speed can be true: --config claim='{...}' or claims=FILE."""
    log:
        "results/possible/possible.log",
    localrule: True
    params:
        command=always(POSSIBLE),
    shell:
        "{params.command:q} 2>&1 | tee {log}"
