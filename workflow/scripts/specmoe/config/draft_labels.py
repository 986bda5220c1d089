"""How tables and figures name what drafts: a draft model by its label, else the method."""

from collections.abc import Mapping, Sequence
from typing import Any

from specmoe.config.methods import METHODS, Method

# The words for each parameter of a row, where it is not what it is by default.
_PARAMETERS = (
    ("n_match", None, "n = {:g}"),
    ("ngram_gamma", None, "n-grams to {:g}"),
    ("min_hits", 1, "{:g} hits"),
    ("n_min", 0, "at least {:g}"),
    ("p_min", 0, "p ≥ {:g}"),
)


def method_words(methods: Sequence[Method]) -> str:
    """Return the literature's name of a chain of methods."""
    return " + ".join(METHODS[method].words for method in methods)


def draft_label(
    methods: Sequence[Method], file_label: str | None, parameters: Mapping[str, Any]
) -> str:
    """Return the label of what drafts.

    `file_label` is that of the file it loads, None if it loads none or needs no naming.
    `parameters` are columns of a row; a missing one is null. A row after other prompts says so.
    """
    name = method_words(methods)
    if file_label is not None and list(methods) == [Method.DRAFT]:
        name = file_label
    elif file_label not in (None, name):
        name = f"{name} ({file_label})"
    return ", ".join([name, *parameter_words(parameters)])


def setting_label(
    methods: Sequence[Method], file_label: str | None, parameters: Mapping[str, Any]
) -> str | None:
    """Return what `draft_label` says besides the method: the file and the parameters.

    None if that is nothing.
    """
    file = [] if file_label in (None, method_words(methods)) else [file_label]
    return ", ".join(map(str, [*file, *parameter_words(parameters)])) or None


def parameter_words(parameters: Mapping[str, Any]) -> list[str]:
    """Return the words for the parameters, besides γ, that are not what they are by default."""
    words = [
        form.format(parameters[key])
        for key, usual, form in _PARAMETERS
        if parameters.get(key) not in (None, usual)
    ]
    return [*words, "after others"] if parameters.get("history") == "earlier" else words
