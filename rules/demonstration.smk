# One prompt decoded with drafts, round by round, for newcomers at the terminal and for the page.
# A campaign without draft models or of published rows has no demonstration.
DEMONSTRATION = CAMPAIGN.demonstration
TRACE = str(CAMPAIGN.trace_file)

if DEMONSTRATION:

    rule record_trace:
        """Decode one prompt, and ask the draft model for the drafts of every round."""
        input:
            **draft_files(DEMONSTRATION.block),
            first=first_description(),
            script=ancient(script("record_trace")),
            engine="<engine>/engine.json",
            prompt=shipped(DEMONSTRATION.block.prompts[0].file),
            target=f"<models>/{DEMONSTRATION.block.target}.gguf",
        output:
            **described("<campaign>/machines/trace.json"),
            record="<campaign>/trace.json",
        log:
            record="<logs>/record_trace.log",
            server="<logs>/record_trace.server.log",
        benchmark:
            "<benchmarks>/record_trace.tsv"
        conda:
            "../envs/analysis.yaml"
        threads: workflow.cores
        resources:
            **LIMITS,
        params:
            **MACHINE,
            demonstration=lambda wildcards: DEMONSTRATION.to_json(),
        message:
            "Decoding one prompt, round by round"
        shell:
            "{params.before}python {input.script} --demonstration {params.demonstration:q} --root {params.root}"
            " --engine {input.engine} --host {params.host} --target {input.target}"
            " --draft {input.draft} --start-limit-s {resources.start_limit_s}"
            " --run-limit-s {resources.run_limit_s} --workflow-pid $PPID"
            " --server-log {log.server} --out {output.record} 2>&1 | tee {log.record}"

    # No output and no pipe: it runs at every call, and it asks the terminal whether it has colours.
    rule demo_trace:
        """Decode one prompt with drafts; show what each round drafted, accepted and replaced."""
        input:
            script=script("demo_trace"),
            trace=TRACE,
        log:
            "<logs>/demo_trace.log",
        localrule: True
        conda:
            "../envs/analysis.yaml"
        message:
            "Showing the rounds"
        shell:
            "python {input.script} --trace {input.trace} --log {log}"
