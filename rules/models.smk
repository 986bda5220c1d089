# Model files and their cards; how a model comes to be is its `kind` in the config.
#
# What is fetched, linked or quantized follows from its config entry; only the weights of a
# synthetic model follow from our code as well.
MODEL_FILES = expand(
    "<models>/{model}.{end}", model=CONFIG.models, end=["gguf", "json"]
)


rule write_synthetic_model:
    """Write a model with random weights."""
    input:
        modules("write_synthetic_model"),
        script=script("write_synthetic_model"),
    output:
        "<models>/{model}.gguf",
    log:
        "<models>/logs/write_synthetic_model/{model}.log",
    benchmark:
        "<models>/benchmarks/write_synthetic_model/{model}.tsv"
    wildcard_constraints:
        model=of_kind("synthetic"),
    priority: 10
    conda:
        "../envs/models.yaml"
    params:
        recipe=lambda wildcards: CONFIG.models[wildcards.model].recipe.to_json(),
    message:
        "Writing model {wildcards.model}"
    shell:
        "python {input.script} --recipe {params.recipe:q} --out {output} 2>&1 | tee {log}"


rule quantize_model:
    """Make a model from another one with the engine's llama-quantize."""
    input:
        script=ancient(script("quantize_model")),
        engine="<engine>/engine.json",
        source=lambda wildcards: f"<models>/{CONFIG.models[wildcards.model].source}.gguf",
    output:
        "<models>/{model}.gguf",
    log:
        "<models>/logs/quantize_model/{model}.log",
    benchmark:
        "<models>/benchmarks/quantize_model/{model}.tsv"
    wildcard_constraints:
        model=of_kind("quantize"),
    priority: 10
    conda:
        "../envs/models.yaml"
    threads: workflow.cores
    params:
        type=lambda wildcards: CONFIG.models[wildcards.model].type,
    message:
        "Quantizing {wildcards.model} to {params.type}"
    shell:
        "python {input.script} --engine {input.engine} --source {input.source}"
        " --type {params.type} --out {output} --log {log}"


rule fetch_model:
    """Download a model from the hub into the user's own cache, and link it into place."""
    input:
        script=ancient(script("fetch_model")),
    output:
        "<models>/{model}.gguf",
    log:
        "<models>/logs/fetch_model/{model}.log",
    benchmark:
        "<models>/benchmarks/fetch_model/{model}.tsv"
    wildcard_constraints:
        model=of_kind("hub"),
    priority: 10
    conda:
        "../envs/models.yaml"
    params:
        entry=lambda wildcards: CONFIG.models[wildcards.model].model_dump_json(),
    # Progress bars need the terminal, so its words are not copied to the log.
    message:
        "Fetching model {wildcards.model}"
    shell:
        "python {input.script} --entry {params.entry:q} --out {output}"


rule link_model:
    """Link a model file the user has into place."""
    input:
        script=ancient(script("link_model")),
    output:
        "<models>/{model}.gguf",
    log:
        "<models>/logs/link_model/{model}.log",
    benchmark:
        "<models>/benchmarks/link_model/{model}.tsv"
    wildcard_constraints:
        model=of_kind("path"),
    priority: 10
    conda:
        "../envs/models.yaml"
    params:
        path=lambda wildcards: CONFIG.models[wildcards.model].path,
    message:
        "Linking model {wildcards.model}"
    shell:
        "python {input.script} --path {params.path:q} --out {output} 2>&1 | tee {log}"


rule describe_model:
    """Read a model file back and write down what it is."""
    input:
        modules("describe_model"),
        script=script("describe_model"),
        model="<models>/{model}.gguf",
    output:
        "<models>/{model}.json",
    log:
        "<models>/logs/describe_model/{model}.log",
    benchmark:
        "<models>/benchmarks/describe_model/{model}.tsv"
    priority: 10
    conda:
        "../envs/models.yaml"
    message:
        "Reading model {wildcards.model} back"
    shell:
        "python {input.script} --model {input.model} --out {output} 2>&1 | tee {log}"
