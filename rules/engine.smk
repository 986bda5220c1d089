# llama.cpp: fetched, built, and tried on a small model.
#
# What an engine is follows from its config entry, so an edit to our code makes none stale: a new
# engine would make every block stale with it.
rule build_engine:
    """Fetch and build llama.cpp, and try it on a small model."""
    input:
        script=ancient(script("build_engine")),
    output:
        bin=directory("<engine>/bin"),
        engine="<engine>/engine.json",
    log:
        "<engine>/build.log",
    benchmark:
        "<engine>/build.tsv"
    priority: 10
    conda:
        "../envs/engine.yaml"
    threads: workflow.cores
    params:
        id=ENGINE_ID,
        entry=CONFIG.engine.model_dump_json(),
        backend=BACKEND,
        out=subpath(output.engine, parent=True),
    message:
        "Building llama.cpp {params.id}: some minutes, once"
    shell:
        "python {input.script} --id {params.id} --backend {params.backend}"
        " --entry {params.entry:q} --out {params.out} --log {log}"
