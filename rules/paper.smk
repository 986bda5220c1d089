# From the analysis to the paper, with the tables and figures that it includes, and to the page.
DOCUMENTS = ["main", "supplement"]
TEXTS = [f"{document}.tex" for document in DOCUMENTS]
PDF_FILES = expand("paper/{document}.pdf", document=DOCUMENTS)


rule render_paper:
    """Render texts, tables and figures: for the paper and for the page."""
    input:
        code=RENDERING,
        exhibits=asked("exhibits"),
        analysis="<campaign>/analysis",
    output:
        tables=directory("<campaign>/paper/tables"),
        figures=directory("<campaign>/paper/figures"),
        texts=expand("<campaign>/paper/{text}", text=TEXTS),
        cells=directory("<campaign>/tables"),
    log:
        "<logs>/render_paper.log",
    shell:
        call("render_paper") + " --analysis {input.analysis} 2>&1 | tee {log}"


rule fill_paper:
    """Copy what is rendered of this campaign into paper/, in place of another one's."""
    input:
        expand("<campaign>/paper/{part}", part=["tables", "figures", *TEXTS]),
        new_owner,
    output:
        *map(directory, ["paper/tables", "paper/figures"]),
        expand("paper/{text}", text=TEXTS),
        owner="paper/campaign.txt",
    log:
        "<logs>/fill_paper.log",
    localrule: True
    params:
        campaign=CONFIG.campaign.name,
    shell:
        "(cp -R {input} paper/ && echo {params.campaign} > {output.owner}) 2>&1 | tee {log}"


rule render_pdf:
    """Compile the paper, or its supplement."""
    input:
        document="<campaign>/paper/{document}.tex",
        asked=asked("typesetting"),
        parts=[ancient(shipped(part)) for part in SOURCES["typesetting"]],
        rendered=expand("<campaign>/paper/{part}", part=["tables", "figures"]),
    output:
        "<campaign>/paper/{document}.pdf",
    log:
        text="<logs>/render_pdf/{document}.log",
        tex="<logs>/render_pdf/{document}.tex.log",
    wildcard_constraints:
        document="|".join(DOCUMENTS),
    shell:
        call("render_pdf")
        + " --document {input.document} --log {log.tex} --out {output}"
        " --parts {input.parts:q} {input.rendered} 2>&1 | tee {log.text}"


rule fill_pdf:
    """Copy the campaign's PDFs into paper/."""
    input:
        # It is the campaign's own by then.
        owner="paper/campaign.txt",
        pdf=expand("<campaign>/paper/{document}.pdf", document=DOCUMENTS),
    output:
        PDF_FILES,
    log:
        "<logs>/fill_pdf.log",
    localrule: True
    shell:
        "cp {input.pdf} paper/ 2>&1 | tee {log}"


rule write_page:
    """Render the campaign's page, in one file, with the data behind its tables."""
    input:
        code=RENDERING,
        exhibits=asked("exhibits"),
        site=asked("site"),
        analysis="<campaign>/analysis",
        figures=rules.render_paper.output.figures,
        trace=TRACE if DEMONSTRATION else [],
    output:
        data=directory("<campaign>/page/data"),
        page="<campaign>/page/index.html",
    log:
        "<logs>/write_page.log",
    shell:
        call("write_page") + " --analysis {input.analysis}"
        " --trace {input.trace:q} 2>&1 | tee {log}"
