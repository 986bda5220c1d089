# Model files and their cards; how a model comes to be is its `kind` in the config.
#
# What is fetched, linked, converted or quantized follows from its config entry, whichever engine
# converts or quantizes it; only the weights of a synthetic model follow from our code as well.
# Nothing is downloaded that, by the plan made when snakemake started, does not fit.
MODEL_FILES = expand(
    "<models>/{model}.{end}", model=CONFIG.measured_models, end=["gguf", "json"]
)
# Digests of files that the config knows none of, recorded with `--config trust=first-use`.
DIGEST_LOCK = "config/models.lock.json"


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
        engine=lambda wildcards: engine_of_model(wildcards.model),
        imatrix=lambda wildcards: CONFIG.models[wildcards.model].imatrix or [],
        # Its card says that it is whole, and what it should be.
        source_card=lambda wildcards: f"<models>/{CONFIG.models[wildcards.model].source}.json",
        source=lambda wildcards: f"<models>/{CONFIG.models[wildcards.model].source}.gguf",
    output:
        maker="<models>/makers/{model}.json",
        model="<models>/{model}.gguf",
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
        imatrix=lambda wildcards, input: (
            ["--imatrix", input.imatrix] if input.imatrix else []
        ),
    message:
        "Quantizing {wildcards.model} to {params.type}"
    shell:
        "python {input.script} --engine {input.engine} --source {input.source}"
        " --type {params.type} {params.imatrix:q} --out {output.model} --log {log}"
        " && cp {input.engine} {output.maker}"


rule fetch_model:
    """Download a model from the hub into the user's own cache, and link it into place."""
    input:
        script=ancient(script("fetch_model")),
    output:
        model="<models>/{model}.gguf",
        digests="<models>/{model}.sha256",
    log:
        "<models>/logs/fetch_model/{model}.log",
    benchmark:
        "<models>/benchmarks/fetch_model/{model}.tsv"
    wildcard_constraints:
        model=of_kind("hub"),
    priority: 10
    conda:
        "../envs/models.yaml"
    # Resources, because none of these makes another file of it.
    resources:
        plan=str(RESULTS / "plan.json"),
        room=CONFIG.room,
        trust=CONFIG.trust,
    params:
        entry=lambda wildcards: model_entry(wildcards.model),
        lock=DIGEST_LOCK,
    message:
        "Fetching model {wildcards.model}"
    # Progress bars go to the terminal alone.
    shell:
        "python {input.script} --entry {params.entry:q} --lock {params.lock}"
        " --trust {resources.trust} --plan {resources.plan} --room {resources.room}"
        " --out {output.model} --digests {output.digests} | tee {log}"


rule convert_model:
    """Download safetensors from the hub and convert them with the engine's own converter."""
    input:
        engine=lambda wildcards: engine_of_model(wildcards.model),
        script=ancient(script("convert_model")),
    output:
        maker="<models>/makers/{model}.json",
        model="<models>/{model}.gguf",
    log:
        "<models>/logs/convert_model/{model}.log",
    benchmark:
        "<models>/benchmarks/convert_model/{model}.tsv"
    wildcard_constraints:
        model=of_kind("convert"),
    priority: 10
    conda:
        "../envs/models.yaml"
    # As of a fetched model; and a model is not converted again for another engine's converter.
    resources:
        converter=converter_folder(),
        plan=str(RESULTS / "plan.json"),
        room=CONFIG.room,
        trust=CONFIG.trust,
    params:
        entry=lambda wildcards: model_entry(wildcards.model),
        lock=DIGEST_LOCK,
        requirements=shipped("envs/convert.txt"),
    message:
        "Converting model {wildcards.model}"
    shell:
        "python {input.script} --entry {params.entry:q} --lock {params.lock}"
        " --trust {resources.trust} --plan {resources.plan} --room {resources.room}"
        " --converter {resources.converter:q} --requirements {params.requirements}"
        " --environment results/converter --out {output.model} --log {log}"
        " && cp {input.engine} {output.maker}"


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
        # A downloaded file is hashed as it comes, and not again.
        digests=lambda wildcards: (
            f"<models>/{wildcards.model}.sha256"
            if CONFIG.models[wildcards.model].kind == "hub"
            else []
        ),
        model="<models>/{model}.gguf",
        script=script("describe_model"),
    output:
        "<models>/{model}.json",
    log:
        "<models>/logs/describe_model/{model}.log",
    benchmark:
        "<models>/benchmarks/describe_model/{model}.tsv"
    priority: 10
    conda:
        "../envs/models.yaml"
    params:
        digests=lambda wildcards, input: (
            ["--digests", input.digests] if input.digests else []
        ),
        family=lambda wildcards: (
            ["--family", CONFIG.family(wildcards.model).model_dump_json()]
            if CONFIG.family(wildcards.model)
            else []
        ),
    message:
        "Reading model {wildcards.model} back"
    shell:
        "python {input.script} --model {input.model} {params.digests:q} {params.family:q}"
        " --out {output} 2>&1 | tee {log}"


rule check_pair:
    """Make sure that a draft speaks its target's vocabulary, before any block is measured."""
    input:
        modules("check_pair"),
        draft="<models>/{draft}.gguf",
        draft_card="<models>/{draft}.json",
        script=script("check_pair"),
        target="<models>/{target}.gguf",
        target_card="<models>/{target}.json",
    output:
        "<models>/pairs/{target}/{draft}.ok",
    log:
        "<models>/logs/check_pair/{target}/{draft}.log",
    priority: 10
    conda:
        "../envs/models.yaml"
    message:
        "Checking that {wildcards.draft} can draft for {wildcards.target}"
    shell:
        "python {input.script} --target {input.target} --target-card {input.target_card}"
        " --draft {input.draft} --draft-card {input.draft_card} --out {output} 2>&1 | tee {log}"
