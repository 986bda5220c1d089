"""What files beside the rows say of a campaign's engines, models and machines."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from specmoe.config.backend import Backend
from specmoe.files import named_if_damaged, read_record


@dataclass(frozen=True)
class Described:
    """Descriptions with which rows are compared; there may be none of the machine yet."""

    engines: Mapping[str, Mapping[str, Any]]  # by id
    digests: Mapping[str, str]  # of models' files, by model
    hosts: frozenset[str] = frozenset()  # ids of machines

    @classmethod
    def read(cls, engines: Iterable[Path], cards: Iterable[Path], host: Path | None) -> Self:
        """Read descriptions of one or several engines, cards of one or several models, host.json.

        Raises DamagedFileError.
        """
        by_id: dict[str, Mapping[str, Any]] = {}
        for file in engines:
            with named_if_damaged(file):
                found = read_record(file)
                for engine in found if isinstance(found, list) else [found]:
                    Backend(engine["backend"])
                    by_id[str(engine["id"])] = {**engine, "commit": str(engine["commit"])}
        digests: dict[str, str] = {}
        for file in cards:
            with named_if_damaged(file):
                card = read_record(file)
                of_models = {file.stem: card} if isinstance(card.get("sha256"), str) else card
                digests |= {model: one["sha256"] for model, one in of_models.items()}
        hosts: frozenset[str] = frozenset()
        if host:
            with named_if_damaged(host):
                described = read_record(host)
                machines = described.get("machines", [described])
                hosts = frozenset(str(one["id"]) for one in machines)
        return cls(by_id, digests, hosts)

    @property
    def gpu(self) -> bool:
        """Whether an engine computes on a GPU."""
        return any(engine["backend"] != Backend.CPU for engine in self.engines.values())

    def facts(self, engine: str, target: str, draft: str | None) -> dict[str, Any]:
        """Return what rows say of the engine of a name in the configuration, and of two models."""
        named = [one for key, one in self.engines.items() if key.rsplit("-", 2)[0] == engine]
        facts: dict[str, Any] = {
            column: frozenset(one[key] for one in named)
            for column, key in (("engine", "id"), ("engine_commit", "commit"), ("backend",) * 2)
        }
        for column, model in (("target_sha256", target), ("draft_sha256", draft)):
            if model is not None and model in self.digests:
                facts[column] = self.digests[model]
        if draft is None:
            facts["draft_sha256"] = None
        return facts | ({"host": self.hosts} if self.hosts else {})
