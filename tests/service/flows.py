"""What a call leads through: the modules of the core that run in it, and who calls whom of them."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import cirrusmq

_ROOT = Path(cirrusmq.__file__).parent


class Flow(NamedTuple):
    """The modules of a call, and its arrows: who calls whom. A loop is one arrow."""

    modules: set[str]
    arrows: set[tuple[str, str]]


def traced(call: Callable[[], object]) -> Flow:
    """Make a call, and note what runs of the core in its thread and in those that it starts.

    What a module does when it is imported is not counted: a warm environment has it.
    """
    flow = Flow(set(), set())
    generators: set[FrameType] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or frame.f_code.co_name == "<module>":
            return
        # Its end is no call of it: Python ends one that was left in the frame that drops it.
        if frame in generators:
            return
        if frame.f_code.co_flags & inspect.CO_GENERATOR:
            generators.add(frame)
        module = _module(frame)
        if module is None:
            return
        flow.modules.add(module)
        caller = frame.f_back
        while caller is not None and _module(caller) is None:
            caller = caller.f_back
        if caller is not None and (calling := _module(caller)) not in (None, module):
            flow.arrows.add((str(calling), module))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return flow


_MODULES: dict[str, str | None] = {}


def _module(frame: FrameType) -> str | None:
    """The module of the core whose code runs; None elsewhere."""
    file = frame.f_code.co_filename
    if file not in _MODULES:
        path = Path(file)
        within = path.is_relative_to(_ROOT)
        _MODULES[file] = ".".join(path.relative_to(_ROOT).with_suffix("").parts) if within else None
    return _MODULES[file]
