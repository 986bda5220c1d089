# llama.cpp: fetched, built, and tested on a small model.
#
# The config entry alone determines an engine. An edit to our code must not make one stale, because
# every block would become stale with it. The engine's id has a digest of the entry, or of the
# binaries in the folder that the entry names, so equal ids mean equal engines. How sources are merged
# (`engine/build.cmake`) is no part of it, as it leaves alone what computes; engine.json has the digests
# of the binaries.


rule build_engine:
    """Fetch and build llama.cpp, and test it on a small model."""
    output:
        bin=directory("results/engines/{engine}/bin"),
        engine="results/engines/{engine}/engine.json",
    log:
        "results/engines/{engine}/build.log",
    priority: 10
    localrule: True  # it needs the network, which nodes of a cluster may lack
    threads: workflow.cores
    message:
        "Building llama.cpp {wildcards.engine}: some minutes, once"
    shell:
        verb("build_engine") + " --id {wildcards.engine:q} --log {log}"


rule build_program:
    """Compile our own program, which times and reads, against llama.cpp's libraries."""
    input:
        # Else a copy without times would want a compiler.
        asked=asked("program", of="engine", flag=ancient),
        engine=ancient("results/engines/{engine}/engine.json"),
    output:
        "results/engines/{engine}/model_passes",
    log:
        "results/engines/{engine}/program.log",
    priority: 10
    threads: workflow.cores
    shell:
        call("build_program") + " --engine {input.engine} --log {log}"
