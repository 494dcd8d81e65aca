"""`on_error="skip"` for streams that torch delivers: what can be passed over, and what ends with its first error.

An iterator of a class goes on after an exception; a generator has ended with it. So the error of a stream is passed
over and counted, unless the stream then ends and a generator was among the functions that the exception left: samples
after it cannot be reached, and that is said. The pipelines of webdataset are generators, whose steps have handlers of
errors: those that still raise get one that counts.
"""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

from torch.utils.data import IterableDataset, IterDataPipe, get_worker_info

from headrace._base.errors import SampleError
from headrace._base.safe_exceptions import format_error
from headrace._loading.fallback.tolerance.attempts import Attempted, StandIn, describe_failure

_HANDLER = "handler"


def why_intolerant(dataset: object) -> str:
    """Returns why no sample of a stream can be passed over, as a clause; "" if some may."""
    kind = type(dataset)
    name = kind.__qualname__
    if isinstance(dataset, IterDataPipe):
        return f"torch changes data pipes such as {name} in place, and would not know one that passes over samples"
    if inspect.isgeneratorfunction(getattr(kind, "__iter__", None)):
        return (
            f"{name}.__iter__ is a generator, which is at its end after its first error; catch the error in it, or "
            "return an object whose class has __next__"
        )
    return ""


class TolerantStream(StandIn, IterableDataset[Any]):
    """Stands for an iterable dataset.

    Args:
        most: number of errors above which the steps of a pipeline pass over no more before its next sample; None: no
            limit.
    """

    def __init__(self, dataset: Any, most: int | None) -> None:
        self.dataset, self._most = dataset, most

    def __iter__(self) -> Iterator[object]:
        handler = _Handler(self._most)
        return _TolerantIterator(iter(_handling(self.dataset, handler)), type(self.dataset).__name__, handler)


class _TolerantIterator:
    """The samples; in place of one that failed, what stands for it."""

    def __init__(self, samples: Iterator[object], name: str, handler: _Handler) -> None:
        self._samples, self._name, self._handler = samples, name, handler
        self._asked = 0
        self._ended: str | None = None  # the generator that the newest error has ended, if the stream ends there

    def __iter__(self) -> _TolerantIterator:
        return self

    def __getattr__(self, name: str) -> Any:  # the state of an iterator
        if name.startswith("__") or "_samples" not in vars(self):
            raise AttributeError(name)
        return getattr(self._samples, name)

    def __next__(self) -> object:
        number, ended = self._asked, self._ended
        self._asked, self._ended = number + 1, None
        try:
            made = next(self._samples)
        except StopIteration:
            if ended is not None:
                raise RuntimeError(ended) from None
            if errors := self._handler.take():
                return Attempted(None, errors, False)
            raise
        except Exception as error:
            errors = self._handler.take()
            if not self._handler.gave_up:
                errors.append(describe_failure(error, number, self._place(number)))
                self._ended = self._describe_end(error, number)
            return Attempted(None, errors, False)
        errors = self._handler.take()
        return Attempted(made, errors, True) if errors else made

    def _place(self, number: int) -> str:
        info = get_worker_info()
        return f"{self._name}, its sample {number}" + ("" if info is None else f" in worker {info.id}")

    def _describe_end(self, error: BaseException, number: int) -> str | None:
        """Returns what to say if the stream now ends; None if no generator has ended."""
        found: str | None = None
        step = error.__traceback__  # of the outermost frame
        while step is not None:
            code = step.tb_frame.f_code
            if code.co_flags & inspect.CO_GENERATOR:
                found = found or getattr(code, "co_qualname", code.co_name)  # Python 3.11 has the first
            step = step.tb_next
        if found is None:
            return None
        return (
            f"{self._place(number)}: the generator {found} is at its end after {format_error(error)}, and the samples "
            "that would follow cannot be reached, so on_error cannot pass over it alone; catch the error in the "
            "generator, or return an object whose class has __next__"
        )


class _Handler:
    """Passes over samples in the steps of a webdataset pipeline.

    Attributes:
        gave_up: whether there were too many before a sample.
    """

    def __init__(self, most: int | None) -> None:
        self._most, self.gave_up = most, False
        self._errors: list[SampleError] = []

    def __call__(self, error: Exception) -> bool:
        sample, step = None, error.__traceback__
        if step is not None:  # of the step, which has caught it
            sample = step.tb_frame.f_locals.get("sample")
        place = "a sample without a key"
        if isinstance(sample, dict) and "__key__" in sample:
            place = ", ".join(str(sample[name]) for name in ("__key__", "__url__") if name in sample)
        self._errors.append(describe_failure(error, -1, place))
        if self._most is not None and len(self._errors) > self._most:
            self.gave_up = True
            raise error
        return True

    def take(self) -> list[SampleError]:
        """Returns the errors since the last call."""
        taken, self._errors = self._errors, []
        return taken


def _handling(dataset: Any, handler: Callable[[Exception], bool]) -> Any:
    """Returns a pipeline of webdataset with the handler in the steps that make a sample of a sample, and raise its
    errors; any other dataset as it is. What reads archives keeps its own: an error there is not one of a sample."""
    pipelines, filters = (sys.modules.get(f"webdataset.{name}") for name in ("pipeline", "filters"))
    if pipelines is None or filters is None or not isinstance(dataset, pipelines.DataPipeline):
        return dataset
    made = copy.copy(dataset)
    made.pipeline = [
        _handling(stage, handler)
        if isinstance(stage, pipelines.DataPipeline)
        else _step_with(stage, handler, filters)
        if isinstance(stage, filters.FilterFunction)
        else stage
        for stage in dataset.pipeline
    ]
    return made


def _step_with(step: Any, handler: Callable[[Exception], bool], filters: Any) -> Any:
    """Returns a step with the handler, if it is webdataset's own and would raise."""
    if getattr(step.f, "__module__", "") != filters.__name__:
        return step
    parameters = inspect.signature(step.f).parameters
    if _HANDLER not in parameters or not _raises(parameters[_HANDLER].default):
        return step
    place = list(parameters).index(_HANDLER) - 1  # among the arguments after the samples
    positional = parameters[_HANDLER].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and len(step.args) > place
    if not _raises(step.args[place] if positional else step.kw.get(_HANDLER, parameters[_HANDLER].default)):
        return step
    args = (*step.args[:place], handler, *step.args[place + 1 :]) if positional else step.args
    return filters.FilterFunction(step.f, *args, **(step.kw if positional else {**step.kw, _HANDLER: handler}))


def _raises(handler: object) -> bool:
    """Whether a handler is the one of webdataset that raises the error, of which two of its modules have one each."""
    module = getattr(handler, "__module__", None) or ""
    return module.startswith("webdataset.") and getattr(handler, "__name__", "") == "reraise_exception"
