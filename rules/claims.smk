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


rule check_campaign:
    """Say whether a packed campaign of others can join the atlas: --config folder=FOLDER."""
    log:
        "results/claims/check_campaign.log",
    localrule: True
    params:
        folder=CONFIG.folder or ".",
    shell:
        call("check_campaign") + " --folder {params.folder:q} 2>&1 | tee {log}"


rule atlas:
    """Write what others and the shipped campaigns report: results/atlas/index.html."""
    input:
        code=RENDERING,
        site=asked("site"),
        campaigns=asked("shipped"),
    output:
        "results/atlas/index.html",
    log:
        "results/atlas/write_atlas.log",
    shell:
        call("write_atlas") + " --out {output} 2>&1 | tee {log}"
