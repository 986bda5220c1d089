# What others claim: no campaign, engine or model has a part in it.
ASKED = CONFIG.claim or CONFIG.claims
CHECK_CLAIM = ["python", SPECMOE, "check_claim", "--out", "results/claims"]
CHECK_CLAIM += ["--claim", json.dumps(CONFIG.claim)] if CONFIG.claim else []
CHECK_CLAIM += ["--claims", CONFIG.claims] if CONFIG.claims else []


rule check_claim:
    """Say whether a claim about speed can be true: --config claim='{...}' or claims=FILE."""
    log:
        "results/claims/check_claim.log",
    localrule: True
    params:
        command=always(CHECK_CLAIM),
    shell:
        "{params.command:q} 2>&1 | tee {log}"
