"""Tasks that are broken off end, also where a cancellation is not seen."""

import asyncio

from holdfast_runtime.control import end_tasks


async def loops(missed: int) -> None:
    """What a wait in a loop does that does not see so many cancellations."""
    while True:
        try:
            await asyncio.sleep(60.0)
        except asyncio.CancelledError:  # noqa: PERF203 - the loop is what is tested
            if not missed:
                raise
            missed -= 1


def test_a_task_that_does_not_see_a_cancellation_is_cancelled_again() -> None:
    async def test() -> None:
        tasks = [asyncio.create_task(loops(missed)) for missed in (0, 1, 2)]
        await asyncio.sleep(0)

        await end_tasks(tasks)

        assert all(task.cancelled() for task in tasks)

    asyncio.run(test())


def test_a_task_that_never_ends_is_left_alone_after_its_time() -> None:
    async def test() -> None:
        task = asyncio.create_task(loops(4))
        await asyncio.sleep(0)

        await end_tasks([task], within_s=0.15)

        assert not task.done()
        await end_tasks([task])

    asyncio.run(test())


def test_a_wait_that_ends_as_it_is_cancelled_does_not_keep_its_task() -> None:
    async def test() -> None:
        changed = asyncio.Event()

        async def watch() -> None:
            while True:
                await asyncio.wait_for(changed.wait(), 60.0)
                changed.clear()

        task = asyncio.create_task(watch())
        await asyncio.sleep(0.01)
        changed.set()
        await asyncio.sleep(0)  # what is waited for has ended, and who waits does not know yet

        await end_tasks([task])

        assert task.cancelled()

    asyncio.run(test())
