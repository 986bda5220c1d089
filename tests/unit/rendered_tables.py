"""The tables of an analysis, as the page and the paper show them."""

from specmoe.analysis.number_text import THIN
from specmoe.paper.tables import render_table
from specmoe.tables import tables

from ..conftest import ROOT
from . import paper_analyses as made
from .planted_loads import with_loads
from .planted_twins import with_twins

SPECIFICATIONS = ROOT / "paper/tables.yaml"
ABOUT_FIGURES = ROOT / "paper/figures.yaml"
TABLES = tables.read_tables(SPECIFICATIONS)
# Functions that make analyses, which differ in the tables that have rows.
MAKERS = [
    *(made.full, made.single, made.without_drafts, made.sampled),
    *(made.several_methods, made.several_ways, made.controlled, made.compared),
    *(made.costed, made.costed_with_timed_passes, made.with_categories),
    *(with_loads, with_twins),
]
# By the identity of the analysis, which is kept for that.
_MADE = {}


def page_tables(analysis):
    """Return the page's tables by name; they are made once for an analysis."""
    if id(analysis) not in _MADE:
        _MADE[id(analysis)] = analysis, tables.page_tables(analysis, SPECIFICATIONS)
    return _MADE[id(analysis)][1]


def shown(table):
    """Return a table's rows, the totals last, as lists of texts."""
    return [[cell.whole for cell in row] for row in [*table.rows, *table.totals]]


def rows(name, analysis):
    """Return the rows of one of the page's tables as lists of texts, thin spaces left out."""
    table = page_tables(analysis)[name]
    return [[text.replace(THIN, "") for text in row] for row in shown(table)]


def latex(name, analysis):
    """Return a table as LaTeX."""
    return render_table(name, analysis, SPECIFICATIONS)
