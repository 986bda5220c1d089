# llama.cpp: fetched, built, and tried on a small model.
#
# What an engine is follows from its config entry, so an edit to our code makes none stale: a new
# engine would make every block stale with it. Its id has a digest of the entry, or of the binaries
# that the entry leads to: where the id is the same, so is the engine.
rule build_engine:
    """Fetch and build llama.cpp, and try it on a small model."""
    input:
        script=ancient(script("build_engine")),
    output:
        bin=directory("results/engines/{engine}/bin"),
        engine="results/engines/{engine}/engine.json",
    log:
        "results/engines/{engine}/build.log",
    benchmark:
        "results/engines/{engine}/build.tsv"
    wildcard_constraints:
        engine="|".join(map(re.escape, ENGINES)),
    priority: 10
    conda:
        "../envs/engine.yaml"
    threads: workflow.cores
    # A resource, because the same binaries in another folder make no other engine of it.
    resources:
        entry=lambda wildcards: CONFIG.engines[
            ENGINES[wildcards.engine]
        ].model_dump_json(),
    params:
        backend=BACKEND,
        out=subpath(output.engine, parent=True),
    message:
        "Building llama.cpp {wildcards.engine}: some minutes, once"
    shell:
        "python {input.script} --id {wildcards.engine} --backend {params.backend}"
        " --entry {resources.entry:q} --out {params.out} --log {log}"
