"""Workloads: named collections of prompts, and how they are sent. The section `workloads`."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from specmoe.config.base import Distinct, InputPath, Name, Positive, Strict
from specmoe.config.block import Sending, Stop, Template

Key = Annotated[str, StringConstraints(min_length=1)]
Category = Annotated[
    str, StringConstraints(min_length=1, max_length=60, pattern=r"^[^\x00-\x1f]+$")
]
PromptId = Annotated[Name, StringConstraints(max_length=80)]


class Columns(Strict):
    """What the keys of a line of JSON are called; further keys are ignored."""

    prompt: Key = "prompt"
    """the prompt; of a list of turns the first is sent"""
    messages: Key = "messages"
    """a chat of several turns, each with `role` and `content`; the last is the user's. It needs
    `template: chat`"""
    category: Key = "category"
    """what results are grouped by"""
    id: Key = "id"
    """the prompt's id; a line without one has its number"""


class WorkloadPrompt(Strict):
    """One prompt of a workload."""

    id: PromptId
    """unique in the workload"""
    category: Category | None = None
    """what results are grouped by"""
    line: Positive | None = None
    """line of the file, from 1"""


class WorkloadBase(Strict):
    """The keys that all workloads have."""

    template: Template = Template.RAW
    """`chat` makes a chat of each prompt by the target's own template; `raw` sends it as it is"""
    thinking: bool | None = None
    """`enable_thinking` for templates that know it; without it the template decides"""
    stop: Stop | None = None
    """replaces `measurement.stop`"""
    prompts: list[WorkloadPrompt] = Field(default=[])
    """its prompts, written by specmoe whenever it reads their file; a cached campaign has them
    without the file"""

    @property
    def sending(self) -> Sending:
        """How its prompts are read and sent."""
        return Sending(self.template, self.thinking)


class FileWorkload(WorkloadBase):
    """A file of prompts: of JSON objects if it ends in `.jsonl`, else a prompt a line."""

    kind: Literal["file"]
    file: InputPath
    """path, relative to the workflow's folder or absolute; blank lines are skipped"""
    sample: Positive | None = None
    """takes so many of the prompts, of each category its share. A larger sample with the same seed
    has what a smaller one has, as far as shares allow; ids stay"""
    seed: int = Field(default=0, ge=0)
    """seed of the sample"""
    columns: Columns = Columns()

    @property
    def sending(self) -> Sending:
        """How its prompts are read and sent."""
        columns = self.columns
        return Sending(self.template, self.thinking, columns.prompt, columns.messages)


class TextsWorkload(WorkloadBase):
    """Texts of `prompts.texts`, sent by a template or until the model ends."""

    kind: Literal["texts"]
    texts: Distinct[Name] = Field(min_length=1)
    """names in `prompts.texts`"""


AnyWorkload = FileWorkload | TextsWorkload
Workload = Annotated[AnyWorkload, Field(discriminator="kind")]
