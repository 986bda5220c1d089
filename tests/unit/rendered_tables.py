"""The tables of an analysis, as the paper shows them."""

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


def latex(name, analysis):
    """Return a table as LaTeX."""
    return render_table(name, tables_of(analysis)[name], analysis)
