"""What the demonstration decodes, as plain data that its job receives."""

from dataclasses import asdict, dataclass

from specmoe.config.block import Block, Side
from specmoe.config.methods import METHODS, method_words, parameter_words
from specmoe.config.parse import JobData


@dataclass(frozen=True)
class Demonstration(JobData):
    """A block of one prompt, and the labels under which readers see its parts."""

    block: Block
    target_label: str
    draft_label: str | None  # of the file that the methods load
    prompt_label: str
    synthetic: bool  # whether one of its models has random weights

    @property
    def side(self) -> Side:
        """The setting with which tokens are drafted."""
        [side] = self.block.sides
        return side

    @property
    def drafted_by(self) -> str:
        """The literature's name of its methods, the file they load, and what parameters say."""
        name = method_words(self.block.methods)
        file = "" if self.draft_label in (None, name) else f" ({self.draft_label})"
        return ", ".join([name + file, *self.parameters])

    @property
    def parameters(self) -> list[str]:
        """The words for γ, and for the parameters that are not what they are by default."""
        return [f"γ = {self.side.gamma}", *parameter_words(asdict(self.side))]

    @property
    def undoes(self) -> int:
        """How many tokens of a pass a hybrid target undoes without a replay.

        Source: llama.cpp, common/common.h, `need_n_rs_seq`.
        """
        kept = any(METHODS[method].rolls_back for method in self.block.methods)
        return self.side.gamma if kept else 0
