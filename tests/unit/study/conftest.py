"""The published study's rows, analysed once."""

import pytest

from ..published_study import analysis_of_study


@pytest.fixture(scope="session")
def published_analysis(_study, tmp_path_factory):
    """The analysis of the published campaign, with its audit."""
    return analysis_of_study(_study, tmp_path_factory.mktemp("published"))
