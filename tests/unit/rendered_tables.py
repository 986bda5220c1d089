"""The tables of an analysis, as the paper shows them."""

from specmoe.analysis.number_text import THIN
from specmoe.paper.latex import render_table
from specmoe.tables.exhibits import read_tables, tables_of

from . import paper_analyses as made

TABLES = read_tables()
# Functions that make analyses, which differ in the tables that have rows.
MAKERS = [
    *(made.full, made.single, made.without_drafts),
    *(made.several_methods, made.several_ways, made.controlled, made.compared),
    *(made.costed, made.with_categories, made.with_loads, made.with_upcycled_pairs),
]
# By the identity of the analysis, which is kept for that.
_MADE = {}


def filled(analysis):
    """Return the tables that have rows by name; they are made once for an analysis."""
    if id(analysis) not in _MADE:
        _MADE[id(analysis)] = analysis, tables_of(analysis)
    return _MADE[id(analysis)][1]


def shown(table):
    """Return a table's rows as lists of texts."""
    return [[cell.whole for cell in row] for row in table.rows]


def rows(name, analysis):
    """Return the rows of a table as lists of texts, thin spaces left out."""
    table = filled(analysis)[name]
    return [[text.replace(THIN, "") for text in row] for row in shown(table)]


def latex(name, analysis):
    """Return a table as LaTeX."""
    return render_table(name, filled(analysis)[name], analysis)
