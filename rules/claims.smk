# What others claim: no campaign, engine or model has a part in it.
CLAIM = CONFIG.claim
CHECK_CLAIM = ["python", SPECMOE, "check_claim"]
if CLAIM:
    CHECK_CLAIM += (
        ["--file", CLAIM] if isinstance(CLAIM, str) else ["--claim", json.dumps(CLAIM)]
    )


rule check_claim:
    """Say whether a claim about speed can be true: --config claim='{...}' or claim=FILE."""
    log:
        "results/claims/check_claim.log",
    localrule: True
    params:
        command=always(CHECK_CLAIM),
    shell:
        "{params.command:q} 2>&1 | tee {log}"
