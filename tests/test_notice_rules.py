"""The rules of sending as pure functions, and words of others made harmless."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.notifying.notice_rules import LONGEST_PAUSE, QuietHours, pause_after
from workers.notices.defanged import defanged, one_line

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = QuietHours(time(22), time(7), BERLIN)
NOON = QuietHours(time(12), time(13), BERLIN)


@pytest.mark.parametrize(
    ("quiet", "now", "end"),
    [
        (NIGHT, "2026-12-01 20:59", None),  # 21:59 in Berlin
        (NIGHT, "2026-12-01 21:00", "2026-12-02 06:00"),
        (NIGHT, "2026-12-02 01:00", "2026-12-02 06:00"),
        (NIGHT, "2026-12-02 06:00", None),
        (NOON, "2026-12-01 11:30", "2026-12-01 12:00"),
        (NOON, "2026-12-01 12:00", None),
        (NIGHT, "2026-03-28 22:00", "2026-03-29 05:00"),  # the clocks go forward in that night
        (NIGHT, "2026-10-24 22:00", "2026-10-25 06:00"),  # and back in this one
    ],
)
def test_quiet_hours_are_wall_clock_times_of_their_zone(quiet: QuietHours, now: str, end: str | None) -> None:
    expected = datetime.fromisoformat(f"{end}+00:00") if end else None
    assert quiet.end_of(datetime.fromisoformat(f"{now}+00:00")) == expected


@given(
    st.times(),
    st.times(),
    st.datetimes(min_value=datetime(2020, 1, 1), max_value=datetime(2040, 1, 1)),  # noqa: DTZ001
)
def test_quiet_hours_end_within_a_day_and_are_over_then(begins: time, ends: time, now: datetime) -> None:
    quiet, moment = QuietHours(begins, ends, BERLIN), now.replace(tzinfo=UTC)
    end = quiet.end_of(moment)
    if end is not None:
        assert moment - timedelta(hours=1) <= end <= moment + timedelta(hours=25)


def test_pauses_double_up_to_a_limit_that_no_receiver_can_stretch() -> None:
    pauses = [pause_after(attempts).total_seconds() for attempts in range(1, 9)]
    assert pauses == [30, 60, 120, 240, 480, 900, 900, 900]
    assert pause_after(1, asked_for=timedelta(days=365)) == LONGEST_PAUSE
    assert sum((pause_after(attempts) for attempts in range(1, 48)), timedelta()) > timedelta(hours=10)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see https://evil.example/x", "see https[:]//evil[.]example/x"),
        ("www.evil.example", "www[.]evil[.]example"),
        ("evil\u3002example", "evil[.]example"),
        ("http://1.2.3.4/", "http[:]//1[.]2[.]3[.]4/"),
        ("mail eve@evil.example.", "mail eve@evil[.]example."),
        ("pay 12.50 to acme. Then stop.", "pay 12.50 to acme. Then stop."),
        ("1.5.example", "1[.]5[.]example"),
        ("a\u202eb", "a[U+202E]b"),
        ("card.charge", "card[.]charge"),
    ],
)
def test_words_of_others_become_no_link(text: str, shown: str) -> None:
    assert defanged(text) == shown


@given(st.text())
def test_nothing_that_programs_take_for_a_link_is_left(text: str) -> None:
    shown = defanged(text)
    assert "://" not in shown
    assert "\r" not in one_line(text)
    assert "\n" not in one_line(text)
