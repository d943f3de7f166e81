"""Rates, over every run of arrivals: never more in any span than promised, and never less than could be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from checkpoint.gates.pacing import Rate

BEGIN = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
rates = st.builds(Rate, st.sampled_from([0.5, 1.0, 6.0, 60.0, 600.0]), st.integers(1, 5))
arrivals = st.lists(st.integers(0, 90_000), max_size=60).map(lambda gaps: [sum(gaps[:n]) for n in range(len(gaps))])
TICK = timedelta(microseconds=10)


def let_through(rate: Rate, times: list[datetime]) -> list[datetime]:
    """Those of the arrivals that are let through."""
    paced_to: datetime | None = None
    passed = []
    for now in times:
        if rate.free_at(paced_to, now) <= now:
            paced_to = rate.after_one(paced_to, now)
            passed.append(now)
    return passed


@given(rates, arrivals)
def test_no_span_of_time_has_more_than_the_burst_and_what_the_rate_gives(rate: Rate, gaps: list[int]) -> None:
    passed = let_through(rate, [BEGIN + timedelta(milliseconds=gap) for gap in gaps])
    for first, start in enumerate(passed):
        for count, end in enumerate(passed[first:], 1):
            assert count <= rate.burst + (end - start + TICK) / rate.interval


@given(rates, st.integers(1, 40))
def test_who_comes_when_it_is_free_is_let_through(rate: Rate, count: int) -> None:
    """So asking for the time and coming back then needs one look, not many."""
    paced_to, now = None, BEGIN
    for _ in range(count):
        now = max(now, rate.free_at(paced_to, now))
        assert rate.free_at(paced_to, now) <= now
        paced_to = rate.after_one(paced_to, now)
    assert abs(now - BEGIN - max(count - rate.burst, 0) * rate.interval) < count * TICK


def test_a_rate_without_a_burst_lets_two_seconds_worth_through() -> None:
    assert [Rate.of(per_minute, None).burst for per_minute in (0.5, 30, 31, 600)] == [1, 1, 2, 20]
    assert Rate.of(600, 3).burst == 3
