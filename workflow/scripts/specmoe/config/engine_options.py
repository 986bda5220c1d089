"""Options of the engine that a campaign or suite may set, by the engine's own names.

`measurement.engine_options` are those of every process, and each entry of a suite's list makes
comparisons of its own. Types and ranges are those of llama.cpp's `common/arg.cpp`; a test compares
the names with what `llama-server --help` prints.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    model_serializer,
)

from specmoe.config.base import Positive, Strict
from specmoe.config.extra_args import fault_of_extra_args
from specmoe.config.option_words import (
    OF_DRAFT,
    Options,
    OptionValue,
    concurrent_setting,
    options_id,
    options_text,
    value_text,
)

_CacheType = Literal["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"]
# YAML reads `on` and `off` as true and false.
_Switch = Annotated[
    Literal["on", "off", "auto"],
    BeforeValidator(lambda value: {True: "on", False: "off"}.get(value, value)),
    WithJsonSchema({"anyOf": [{"enum": ["on", "off", "auto"]}, {"type": "boolean"}]}),
]
_Layers = Annotated[int, Field(ge=0)]
_Devices = Annotated[str, StringConstraints(pattern=r"^[\w:.-]+(,[\w:.-]+)*$")]
# Patterns of tensors' names, each with the buffer type that these tensors go to.
_Tensors = Annotated[str, StringConstraints(pattern=r"^[^=,\s]+=[^=,\s]+(,[^=,\s]+=[^=,\s]+)*$")]

# Further names that the engine has for the options; those of drafts are refused by their form.
_ALIASES = {
    **{"ctk": "cache-type-k", "ctv": "cache-type-v", "fa": "flash-attn", "cmoe": "cpu-moe"},
    **{"ncmoe": "n-cpu-moe", "ot": "override-tensor", "b": "batch-size", "ub": "ubatch-size"},
    **{"t": "threads", "tb": "threads-batch", "lm": "load-mode", "dev": "device"},
}


def _accepted(words: list[str]) -> list[str]:
    names = {name: name for name in OPTION_NAMES}
    if fault := fault_of_extra_args(words, names | _ALIASES):
        raise ValueError(fault)
    return words


_Word = Annotated[
    str,
    BeforeValidator(lambda value: str(value) if type(value) in (int, float) else value),
    StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$"),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number"}]}),
]


class EngineOptions(Strict):
    """Flags of llama-server by its own names; null is the engine's default.

    The target alone and the target with a draft always get the same. Only a process in which a
    model drafts gets the options that end in `-draft`. On a CPU, options that place weights
    (`n-cpu-moe`, `cpu-moe`, `override-tensor`) are accepted and change nothing.
    """

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))

    cache_type_k: _CacheType | None = Field(default=None, description="type of the cached keys")
    cache_type_v: _CacheType | None = Field(
        default=None,
        description="type of the cached values; a quantized one needs flash attention",
    )
    flash_attn: _Switch | None = Field(
        default=None, description="flash attention; `on` by default where a GPU computes"
    )
    n_cpu_moe: _Layers | None = Field(
        default=None, description="layers, from the first, whose experts stay in the CPU's memory"
    )
    cpu_moe: bool | None = Field(default=None, description="the experts of all layers stay there")
    override_tensor: _Tensors | None = Field(
        default=None,
        description="where tensors go: `<pattern of names>=<buffer type>`, several with commas",
    )
    device: _Devices | None = Field(
        default=None, description="devices that compute, with commas; `none` for the CPU"
    )
    load_mode: Literal["auto", "none", "mmap", "mlock", "mmap+mlock", "dio"] | None = Field(
        default=None, description="how files are loaded: mapped, locked in memory, or read"
    )
    batch_size: Positive | None = Field(
        default=None, description="most tokens of a prompt that are handed over at once"
    )
    ubatch_size: Positive | None = Field(
        default=None, description="most tokens that are computed at once"
    )
    threads: Positive | None = Field(
        default=None, description="threads of the engine, in place of `measurement.threads`"
    )
    threads_batch: Positive | None = Field(
        default=None, description="threads that read prompts and verify, where not `threads`"
    )
    poll: Annotated[int, Field(ge=0, le=100)] | None = Field(
        default=None, description="how eagerly threads wait for work; 0 sleeps"
    )
    cache_type_k_draft: _CacheType | None = Field(
        default=None, description="type of the draft's cached keys"
    )
    cache_type_v_draft: _CacheType | None = Field(
        default=None, description="type of the draft's cached values"
    )
    n_cpu_moe_draft: _Layers | None = Field(
        default=None, description="`n-cpu-moe` of a draft model"
    )
    cpu_moe_draft: bool | None = Field(default=None, description="`cpu-moe` of a draft model")
    override_tensor_draft: _Tensors | None = Field(
        default=None, description="`override-tensor` of a draft model"
    )
    device_draft: _Devices | None = Field(
        default=None, description="devices that a draft model computes on"
    )
    threads_draft: Positive | None = Field(
        default=None, description="threads of a draft model, where not `threads`"
    )
    threads_batch_draft: Positive | None = Field(
        default=None, description="threads with which a draft model reads prompts"
    )
    poll_draft: Annotated[int, Field(ge=0, le=1)] | None = Field(
        default=None, description="whether a draft model's threads poll for work"
    )
    extra_args: Annotated[list[_Word], AfterValidator(_accepted)] = Field(
        default=[],
        alias="extra_args",
        description="further words of llama-server's command line, such as `[--numa, distribute]`;"
        " rows have them. What a protocol relies on is refused with the reason",
    )

    @model_serializer
    def given(self) -> dict[str, Any]:
        """Return what was given, by the engine's names; null takes a value of the campaign back."""
        return {
            str(field.alias): getattr(self, name)
            for name, field in type(self).model_fields.items()
            if name in self.model_fields_set
        }

    def overlaid(self, entry: Self) -> "Setting":
        """Return the options of the campaign with an entry of a suite laid over them."""
        of_campaign, of_entry = self.given(), entry.given()
        kept = {
            name: value
            for name, value in sorted((of_campaign | of_entry).items())
            if value is not None and value is not False and name != EXTRA_ARGS
        }
        extra_args = tuple((of_campaign | of_entry).get(EXTRA_ARGS, []))
        own = {name: value for name, value in of_entry.items() if name != EXTRA_ARGS}
        words = of_entry.get(EXTRA_ARGS, [])
        return Setting(kept, extra_args, options_id(own, words), options_label(own, words))


EXTRA_ARGS = "extra_args"
OPTION_NAMES = tuple(
    str(field.alias) for field in EngineOptions.model_fields.values() if field.alias != EXTRA_ARGS
)


@dataclass(frozen=True)
class Setting:
    """The options of a comparison, and how they are told from the campaign's own."""

    options: dict[str, OptionValue]
    extra_args: tuple[str, ...]
    id: str  # empty: those of the campaign
    label: str
    concurrency: int | None = None  # requests at once; None: one after the other, without a load

    @property
    def text(self) -> str:
        """The options as rows have them, see `options_text`."""
        return options_text(self.options, self.extra_args)

    def at(self, concurrency: int) -> "Setting":
        """Return the same options under a load of so many requests at once."""
        words = f"{concurrency} at once"
        return replace(
            self,
            id=concurrent_setting(self.id, concurrency),
            label=", ".join([*filter(None, [self.label]), words]),
            concurrency=concurrency,
        )

    @property
    def threads(self) -> int | None:
        """The option of that name, if it is given."""
        threads = self.options.get("threads")
        return None if threads is None else int(threads)


def options_label(options: Options, extra_args: Sequence[str]) -> str:
    """Return words for options in tables and figures, empty without any."""
    left = dict(options)
    words = []
    for ending, whose in (("", ""), (OF_DRAFT, "draft's ")):
        keys, values = (f"cache-type-{letter}{ending}" for letter in "kv")
        if {keys, values} <= left.keys() and left[keys] == left[values]:
            words.append(f"{whose}KV {value_text(left.pop(keys))}")
            del left[values]
    words += [
        name if left[name] is True else f"{name} {value_text(left[name])}" for name in sorted(left)
    ]
    return ", ".join([*words, *([" ".join(extra_args)] if extra_args else [])])
