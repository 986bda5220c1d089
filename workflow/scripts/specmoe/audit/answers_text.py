"""What every draft length would have given on some answers, as text."""

from collections.abc import Sequence

from specmoe.audit.reading import Limits, fixed, rounds_from_agreement
from specmoe.engine.reading import Proposal
from specmoe.words import counted

GAMMAS = (1, 2, 4, 8, 16, 32)


def describe_answers(answers: Sequence[Sequence[Proposal]]) -> str:
    """Return the share of tokens that the draft agrees with, and the rounds of each length."""
    agreed = [[one.agrees for one in answer] for answer in answers]
    judged = [agrees for answer in agreed for agrees in answer[1:]]
    share = sum(judged) / len(judged) if judged else 0.0
    lines = [
        f"{counted(len(answers), 'answer')}, {counted(sum(map(len, agreed)), 'token')}; the draft"
        f" agrees with {share:.1%} of those behind an answer's first.",
        "     γ    rounds   drafted  accepted   share  tokens a round",
    ]
    for gamma in GAMMAS:
        played = [
            rounds_from_agreement(answer, fixed(gamma, len(answer)), Limits(len(answer)))
            for answer in agreed
        ]
        rounds, drafted, accepted = (
            sum(getattr(one, name) for one in played) for name in ("rounds", "drafted", "accepted")
        )
        rate, tokens = accepted / max(drafted, 1), 1 + accepted / max(rounds, 1)
        counts = f"{gamma:6}{rounds:10}{drafted:10}{accepted:10}"
        lines.append(f"{counts}{rate:8.1%}{tokens:16.2f}")
    return "\n".join(lines) + "\n"
