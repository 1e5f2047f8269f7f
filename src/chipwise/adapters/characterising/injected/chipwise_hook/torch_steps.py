"""Steps of a PyTorch program: calls of `optimizer.step`, or, without one, of the outermost module; batches of a DataLoader.

In the mode "time" nothing else is done, so that the program is as fast as ever. In the mode "count" the operators of a few
steps are counted (`torch_counts`), after some that warm up.
"""

from __future__ import annotations

import importlib
import time
from types import ModuleType
from typing import Any

from .report import Report


def watch(torch: ModuleType, report: Report) -> None:
    steps = _Steps(torch, report)
    importlib.import_module("torch.optim.optimizer").register_optimizer_step_post_hook(steps.optimized)
    modules = importlib.import_module("torch.nn.modules.module")
    steps.finders = [
        modules.register_module_forward_pre_hook(steps.entered),
        modules.register_module_forward_hook(steps.left, always_call=True),
    ]
    _watch_loaders(report)
    report.note(framework="torch", version=str(torch.__version__))


class _Steps:
    def __init__(self, torch: Any, report: Report) -> None:
        self.torch = torch
        self.report = report
        self.finders: list[Any] = []  # handles of the global hooks that look for the outermost module
        self.depth = 0
        self.by_optimizer = False
        self.steps = 0
        self.counting: Any = None

    def optimized(self, optimizer: Any, *_: object) -> None:
        if not self.report.is_here:
            return
        if not self.by_optimizer:
            self.by_optimizer = True
            groups = getattr(optimizer, "param_groups", ())
            trained = sum(parameter.numel() for group in groups for parameter in group["params"])
            self.report.note(step="optimizer", optimizer=type(optimizer).__name__, trained_parameters=trained)
            if self.report.mode == "time":
                self._stop_finding()
        self.report.step("optimizer")
        self._stepped()

    def entered(self, module: Any, inputs: tuple[Any, ...]) -> None:
        self.depth += 1
        if self.depth == 1 and self.counting is not None:
            self.counting.outermost(module, inputs)

    def left(self, module: Any, *_: object) -> None:
        self.depth -= 1
        if self.depth == 0:
            if self.counting is not None:
                self.counting.returned()
            if not self.by_optimizer and not self.torch.is_grad_enabled():
                self._answered(module)

    def _answered(self, module: Any) -> None:
        """The outermost module gave an answer that nothing is learnt from: a step of inference."""
        if self.report.mode == "time" and self.steps == self.report.skipped:
            self._stop_finding()  # from here on only this module is watched, and costs nothing that could be measured
            module.register_forward_hook(lambda *_: self.report.step("forward"))
        self.report.note(step="forward") if self.steps == 0 else None
        self.report.step("forward")
        self._stepped()

    def _stop_finding(self) -> None:
        for handle in self.finders:
            handle.remove()
        self.finders = []

    def _stepped(self) -> None:
        self.steps += 1
        if self.report.mode != "count":
            return
        if self.steps == self.report.skipped:
            from .torch_counts import Counting

            self.counting = Counting(self.torch)
            self.counting.begin()
        elif self.counting is not None:
            self.counting.step_ended()
            if self.steps >= self.report.skipped + self.report.counted:
                counts = self.counting.end()
                self.counting = None
                self._stop_finding()
                self.report.note(**counts, done=True)


def _watch_loaders(report: Report) -> None:
    """Time that the program waited for its next batch, and how many batches an epoch has."""
    data = importlib.import_module("torch.utils.data.dataloader")
    iterator: Any = data._BaseDataLoaderIter
    take = iterator.__next__
    waited = [0.0, 0]

    def timed(self: Any) -> Any:
        start = time.monotonic()
        batch = take(self)
        waited[0] += time.monotonic() - start
        waited[1] += 1
        report.step("loader")
        values: dict[str, object] = {"data_wait_s": waited[0], "batches": waited[1]}
        if waited[1] == 1:
            try:
                values["batches_per_epoch"] = len(self)
            except TypeError:  # a stream, of which nobody knows the length
                values["batches_per_epoch"] = None
            report.note(**values)
        else:
            report.refresh(**values)
        return batch

    iterator.__next__ = timed
