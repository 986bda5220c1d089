# What others claim: no campaign, engine or model has a part in it.


rule check_claim:
    """Say whether a claim about speed can be true: --config claim='{...}' or claim=FILE."""
    log:
        "results/claims/check_claim.log",
    localrule: True
    params:
        claim=lambda wildcards: (
            CONFIG.claim if isinstance(CONFIG.claim, str) else json.dumps(CONFIG.claim)
        ),
    shell:
        call("check_claim") + " --claim {params.claim:q} 2>&1 | tee {log}"
