"""Families of methods: their kinds, built in and from plug-ins, and the workers' modules."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from creamtea.contract.step import OWN_STEP_KINDS, StepKind
from creamtea.document.mistakes import Block, KeyPath, Mistake, RawStudy
from creamtea.document.values import Strict
from creamtea.plugins import Additions, additions


class Method(Strict):
    """A method of some family, with its parameters. Subclasses have `kind: Literal["…"]` as first field.

    `worker` is the module of the workers that implements the method. It has the functions that the family
    names; each takes the method as its first argument.
    """

    if TYPE_CHECKING:

        @property
        def kind(self) -> str:
            """The name of the method in a study."""

    family: ClassVar[Family[Any]]
    title: ClassVar[str] = ""  # in lists: "label-smoothed cross-entropy"
    worker: ClassVar[str]  # "creamtea_workers.objectives.linear"
    # files and metrics that the method adds to the step that has it as a parameter
    files: ClassVar[Mapping[str, str]] = {}
    metrics: ClassVar[Mapping[str, str]] = {}

    def describe(self) -> str:
        """Describe the method in a few words, as reports show it: "SCONES α=0.5"."""
        raise NotImplementedError(f"{type(self).__name__} does not describe itself")

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        """Yield mistakes in a block of this kind that its types cannot express; `path` is its place."""
        yield from ()

    @classmethod
    def completed(cls, block: Block) -> Block:
        """Return a raw block of the family, with the default kind if it names none."""
        return {"kind": cls.family.default, **block}

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Let a field that is annotated with a family's base take any of the family's kinds."""
        family: Family[Any] | None = cls.__dict__.get("family")
        return handler(source) if family is None else family.schema(handler)


M = TypeVar("M", bound=Method)
_PLUGIN_STEPS: dict[str, StepKind[Any]] = {}  # by name


@dataclass
class Family(Generic[M]):
    """The kinds of a family: the classes of a module or package here, and those of plug-ins.

    A plug-in's entry point in `group` is named after the kind and leads to the class. The kind of a broken
    plug-in is unknown.
    """

    noun: str  # "objective"
    base: type[M]
    package: str  # "creamtea.methods.objectives"
    functions: tuple[str, ...]  # functions in the workers' module of each kind
    default: str = ""  # the kind of a block that does not name one

    def __post_init__(self) -> None:
        self.base.family = self
        # delete the schema made before it had a family: TypeAdapter(base) would use it instead of the union
        del self.base.__pydantic_core_schema__

    @property
    def group(self) -> str:
        """The group of entry points: "creamtea.objectives"."""
        return f"creamtea.{self.package.rpartition('.')[2]}"

    @cached_property
    def kinds(self) -> dict[str, type[M]]:
        """Classes by kind, built-in ones first."""
        return {**self.built_in, **self.added.kinds}

    @cached_property
    def built_in(self) -> dict[str, type[M]]:
        """Classes of the module in its order, or of a package's modules in the order of their kinds."""
        module = importlib.import_module(self.package)
        names = [info.name for info in pkgutil.iter_modules(getattr(module, "__path__", ()))]
        kinds = {}
        for member in [module, *(importlib.import_module(f"{self.package}.{name}") for name in names)]:
            for value in vars(member).values():
                is_method = isinstance(value, type) and issubclass(value, self.base)
                if is_method and value.__module__ == member.__name__ and "kind" in value.model_fields:
                    kinds[kind_name(value)] = value
        return dict(sorted(kinds.items())) if names else kinds

    @cached_property
    def added(self) -> Additions[type[M]]:
        """Classes that plug-ins have added."""
        return additions(self.group, self.built_in, self._checked)

    def _checked(self, kind: str, method: Any) -> type[M]:
        """Return the class of an entry point; raise an error if it is not a method of the kind."""
        if not (isinstance(method, type) and issubclass(method, self.base)):
            raise TypeError(f"it is not a subclass of {self.base.__module__}.{self.base.__name__}")
        if kind_name(method) != kind:
            raise ValueError(f"its kind is {kind_name(method)!r}, not the entry point's name")
        for step in steps_of(method):
            if step.name in OWN_STEP_KINDS:
                raise ValueError(
                    f"creamtea itself has steps of its step's kind, {step.name!r}: rename the step"
                )
            owner = _PLUGIN_STEPS.setdefault(step.name, step).params
            if owner is not step.params:
                raise ValueError(
                    f"{owner.__module__} has steps of its step's kind, {step.name!r}, too: rename one of them"
                )
        return method

    def schema(self, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return a union told apart by `kind`."""
        choices = {kind: handler.generate_schema(method) for kind, method in self.kinds.items()}
        union = core_schema.tagged_union_schema(choices, discriminator="kind")
        if not self.default:
            return union

        def completed(block: Any) -> Any:
            return self.base.completed(block) if isinstance(block, dict) else block

        return core_schema.no_info_before_validator_function(completed, union)

    def hint(self, kind: object) -> str:
        """Return a hint for the message that there is no such kind."""
        for broken in self.added.broken:
            if broken.kind == kind:
                return f"; the plug-in {broken.plugin} has this {self.noun}, and is broken: {broken.reason}"
        return "; `creamtea plugins` lists the kinds that installed plug-ins add"

    def kind_of(self, block: Any) -> type[M] | None:
        """Return the class of a raw block's kind; None for a malformed block or an unknown kind."""
        kind = block.get("kind", self.default) if isinstance(block, dict) else None
        return self.kinds.get(kind) if isinstance(kind, str) else None

    def check(self, path: KeyPath, block: Any, study: RawStudy) -> Iterator[Mistake]:
        """Yield the mistakes that a raw block's kind finds in the block."""
        if (method := self.kind_of(block)) is not None:
            yield from method.check(path, block, study)


def steps_of(method: type[Method]) -> list[StepKind[Any]]:
    """Return the kinds of steps that a method adds."""
    step = getattr(method, "step", None)
    return [*getattr(method, "steps", ()), *([] if step is None else [step])]


def kind_name(method: type[Method]) -> str:
    """Return the name of the kind that a class implements."""
    (kind,) = method.model_fields["kind"].annotation.__args__  # type: ignore[union-attr]
    return str(kind)


def implementation(method: Method) -> ModuleType:
    """Import the workers' module that implements a method. Only workers call this."""
    return importlib.import_module(method.worker)
