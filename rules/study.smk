# The study's rows as a campaign.
rule fetch_study_rows:
    """Get the authors' own rows and check their digest."""
    input:
        asked=asked("study_rows"),
    output:
        "<campaign>/imported/runs.csv",
    log:
        "<logs>/fetch_study_rows.log",
    localrule: True
    shell:
        verb("fetch_study_rows") + " --out {output} 2>&1 | tee {log}"


rule import_study_rows:
    """Convert the authors' rows to our schema, with what is known of their models and machine."""
    input:
        code=RENDERING,
        configuration=asked("campaign"),
        stated=asked("machine"),
        csv="<campaign>/imported/runs.csv",
    output:
        machine="<campaign>/imported/machine.json",
        models="<campaign>/imported/models.json",
        runs="<campaign>/imported/runs.parquet",
    log:
        "<logs>/import_study_rows.log",
    shell:
        verb("import_study_rows") + GIVEN + " --csv {input.csv} 2>&1 | tee {log}"
