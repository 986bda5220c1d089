"""Workloads: named collections of prompts, and how they are sent. The section `workloads`."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from specmoe.config.base import Digest, Distinct, InputPath, Name, Positive, Strict
from specmoe.config.block import Sending, Stop, Template
from specmoe.config.models import UNVERIFIED, Repository, Revision

FETCHED = "results/workloads"  # the folder of files of the hub, in the workflow's

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
    """`chat` makes a chat of each prompt by the target's own template; `raw` sends it as it is;
    `auto` makes chats for a target whose file has a template, and lets these end, and sends texts
    as they are to any other"""
    thinking: bool | None = None
    """`enable_thinking` for templates that know it; without it the template decides"""
    stop: Stop | None = None
    """replaces `measurement.stop`"""
    untemplated: list[Name] = Field(default=[])
    """the targets whose files have no template, written by specmoe for `auto`; a cached campaign
    has them without the files"""
    prompts: list[WorkloadPrompt] = Field(default=[])
    """its prompts, written by specmoe whenever it reads their file; a cached campaign has them
    without the file"""

    def template_for(self, target: str) -> Template:
        """Return what is made of its prompts for a target: `raw` or `chat`."""
        if self.template != Template.AUTO:
            return self.template
        return Template.RAW if target in self.untemplated else Template.CHAT

    def stop_for(self, target: str, default: Stop) -> Stop:
        """Return when its runs end; `default` is the campaign's own way."""
        if self.template == Template.AUTO and self.template_for(target) == Template.CHAT:
            default = Stop.EOS
        return self.stop or default

    def sending_to(self, target: str) -> Sending:
        """Return how its prompts are read and sent to a target."""
        return Sending(self.template_for(target), self.thinking)


class Sampled(WorkloadBase):
    """The keys of workloads of which a part can be taken."""

    sample: Positive | None = None
    """takes so many of the prompts, of each category its share. A larger sample with the same seed
    has what a smaller one has, as far as shares allow; ids stay"""
    seed: int = Field(default=0, ge=0)
    """seed of the sample"""
    columns: Columns = Columns()

    def sending_to(self, target: str) -> Sending:
        """Return how its prompts are read and sent to a target."""
        columns = self.columns
        return Sending(self.template_for(target), self.thinking, columns.prompt, columns.messages)


class FileWorkload(Sampled):
    """A file of prompts: of JSON objects if it ends in `.jsonl`, else a prompt a line."""

    kind: Literal["file"]
    file: InputPath
    """path, relative to the workflow's folder or absolute; blank lines are skipped"""


class HubWorkload(Sampled):
    """A file of JSON lines in a data set of Hugging Face, fetched once and never shipped."""

    kind: Literal["hub"]
    repository: Repository
    """data set on Hugging Face; mind its licence"""
    revision: Revision = "main"
    """commit, tag or branch of the data set"""
    file: str = Field(pattern=r"\.jsonl$")
    """path in the data set"""
    sha256: Digest | Literal["unverified"] = UNVERIFIED
    """SHA-256 of the file"""


class TextsWorkload(WorkloadBase):
    """Texts of `prompts.texts`, sent by a template or until the model ends."""

    kind: Literal["texts"]
    texts: Distinct[Name] = Field(min_length=1)
    """names in `prompts.texts`"""


AnyWorkload = FileWorkload | HubWorkload | TextsWorkload
Workload = Annotated[AnyWorkload, Field(discriminator="kind")]


def file_of(name: str, workload: FileWorkload | HubWorkload) -> str:
    """Return the file of a workload, relative to the workflow's folder or absolute."""
    return workload.file if isinstance(workload, FileWorkload) else f"{FETCHED}/{name}.jsonl"
