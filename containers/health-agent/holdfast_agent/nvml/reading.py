"""Poll of all GPUs through NVML, as JSON; the session is kept between polls, and reopened after an error."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Optional

from holdfast_agent.nvml.library import (
    DRIVER_NOT_LOADED,
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    RESET_REQUIRED,
    UNINITIALIZED,
    Library,
    NvmlError,
)

_ENDED = (UNINITIALIZED, DRIVER_NOT_LOADED)


class Reader:
    """Runs in the child; ``phase`` names each call before it is made, so that a stuck one is known by its name."""

    def __init__(self) -> None:
        self._library: Optional[Library] = None

    def __call__(self, question: Any, phase: Callable[[str], None]) -> "dict[str, Any]":
        """
        Answer ``{"library": name, "links": also poll links and fabric}``.

        ``absent``: reason of a missing NVML; ``failed``: error of one without a driver.
        """
        try:
            if self._library is None:
                phase("nvmlInit")
                self._library = Library(question["library"])
            return self._look(self._library, phase, with_links=bool(question.get("links")))
        except OSError as problem:
            return {"absent": str(problem)}
        except NvmlError as problem:
            self._forget(problem)
            if problem.code == FUNCTION_NOT_FOUND:
                return {"absent": str(problem)}
            return {"failed": problem.code, "text": str(problem)}

    def _look(self, library: Library, phase: Callable[[str], None], *, with_links: bool) -> "dict[str, Any]":
        phase("nvmlDeviceGetCount")
        count = library.count()
        gpus = []
        for index in range(count):
            phase(f"GPU {index}")
            gpus.append(self._one(library, index, with_links=with_links))
        return {"driver": library.driver(), "count": count, "gpus": gpus}

    def _one(self, library: Library, index: int, *, with_links: bool) -> "dict[str, Any]":
        gpu: dict[str, Any] = {"index": index}
        try:
            handle = library.handle(index)
            gpu["pci"] = library.pci(handle)
            gpu["remapped"] = library.remapped(handle)
            gpu["ecc"] = library.ecc(handle)
            gpu["recovery"] = library.recovery_action(handle)
            gpu["clocks"] = library.clock_reasons(handle)
            gpu["temperature_c"] = library.temperature_c(handle)
            gpu["power_mw"] = library.power_mw(handle)
            gpu["utilization"] = library.utilization(handle)
            gpu["memory"] = library.memory(handle)
            gpu["heat_ns"] = library.heat_ns(handle)
            if with_links:
                gpu["links"] = library.links(handle)
                gpu["link_errors"] = library.link_errors(handle, len(gpu["links"] or ()))
                gpu["fabric"] = library.fabric(handle)
        except NvmlError as problem:
            if problem.code in _ENDED:
                raise
            gpu["error"] = problem.code
            gpu["lost"] = problem.code in (GPU_IS_LOST, RESET_REQUIRED)
        return gpu

    def _forget(self, problem: NvmlError) -> None:
        library, self._library = self._library, None
        if library is not None and problem.code != UNINITIALIZED:
            with suppress(NvmlError):
                library.close()
