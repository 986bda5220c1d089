# llama.cpp: fetched, built, and tested on a small model.
#
# The config entry alone determines an engine. An edit to our code must not make one stale, because
# every block would become stale with it. The engine's id has a digest of the entry, or of the
# binaries in the folder that the entry names, so equal ids mean equal engines. How sources are merged
# (`engine/build.cmake`) is no part of it, as it leaves alone what computes; engine.json has the digests
# of the binaries.
ENGINES = "|".join(map(re.escape, CAMPAIGN.engine_names))


rule build_engine:
    """Fetch and build llama.cpp, and test it on a small model."""
    input:
        specmoe=SPECMOE,
    output:
        bin=directory("results/engines/{engine}/bin"),
        engine="results/engines/{engine}/engine.json",
    log:
        "results/engines/{engine}/build.log",
    wildcard_constraints:
        engine=ENGINES,
    priority: 10
    # It needs the network, which nodes of a cluster may lack.
    localrule: True
    threads: workflow.cores
    # Resources, because the same binaries in another folder are the same engine; and the environment
    # may choose the device that it is tested on, and is no part of it.
    resources:
        entry=of("engine", CAMPAIGN.engine_entry),
        environment=always(ENVIRONMENT),
    params:
        backend=CAMPAIGN.backend,
        out=subpath(output.engine, parent=True),
    message:
        "Building llama.cpp {wildcards.engine}: some minutes, once"
    shell:
        "python {input.specmoe} build_engine --id {wildcards.engine:q} --backend {params.backend}"
        " --entry {resources.entry:q} --environment {resources.environment:q}"
        " --out {params.out} --log {log}"


rule build_programs:
    """Compile the program that times passes by themselves against llama.cpp's libraries."""
    input:
        specmoe=SPECMOE,
        engine="results/engines/{engine}/engine.json",
        parts=[
            str(SCRIPTS / f"specmoe/engine/{name}")
            for name in ("pass_bench.cpp", "read_agreement.cpp", "programs.cmake")
        ],
    output:
        "results/engines/{engine}/pass_bench",
        "results/engines/{engine}/read_agreement",
    log:
        "results/engines/{engine}/programs.log",
    wildcard_constraints:
        engine=ENGINES,
    priority: 10
    threads: workflow.cores
    shell:
        "python {input.specmoe} build_programs --engine {input.engine} --log {log}"
