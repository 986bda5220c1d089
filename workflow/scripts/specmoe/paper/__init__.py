"""The paper: tables, numbers and PDFs, from an analysis."""
