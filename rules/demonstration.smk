# One prompt decoded with drafts, round by round, for newcomers at the terminal and for the page.
# A campaign without draft models or of the study's rows has no demonstration, nor has a shipped one
# without its record.
DEMONSTRATION = CAMPAIGN.demonstration
TRACE = str(PLACES.trace_file)

if DEMONSTRATION:

    rule record_trace:
        """Decode one prompt, and ask the draft model for the draft tokens of every round."""
        input:
            **INPUTS.loaded(DEMONSTRATION.models),
            engine="<engine>/engine.json",
            asked=asked("demonstration"),
        output:
            **described("<campaign>/machines/trace.json"),
            record="<campaign>/trace.json",
        log:
            record="<logs>/record_trace.log",
            server="<logs>/record_trace.server.log",
        threads: workflow.cores
        shell:
            measuring("record_trace") + " --log {log.server} 2>&1 | tee {log.record}"

    # It has no output, so it runs at every call.
    rule trace:
        """Decode one prompt with drafts; show what each round drafted, accepted and replaced."""
        input:
            trace=TRACE,
        log:
            "<logs>/trace.log",
        localrule: True
        shell:
            call("show_trace") + " --trace {input.trace:q} --log {log}"
