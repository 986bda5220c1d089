"""What is printed of answers that a draft has read."""

from specmoe.audit.answers_text import describe_answers
from specmoe.engine.reading import Proposal


def test_rounds_and_shares_are_over_all_answers():
    yes, no = (Proposal(1, agrees, 0.9, 0.9, 0.9, 1.0) for agrees in (True, False))
    # γ = 2: the first drafts two and one, and two are accepted; the second drafts two and none is.
    text = describe_answers([[no, yes, yes, yes, no], [no, no, no, no]])
    first, _, one, two, *_ = text.splitlines()
    assert first.startswith("2 answers, 9 tokens; the draft agrees with 42.9%")
    assert one.split() == ["1", "4", "4", "2", "50.0%", "1.50"]
    assert two.split() == ["2", "3", "5", "2", "40.0%", "1.67"]
