"""Times and spans of time.

Invariant: no clock and no time-zone database: a time's parts are UTC unless a fixed offset is given, so that a decision
made again comes out the same on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from partita.domain.expressions.errors import ExpressionError
from partita.domain.expressions.frame import Frame
from partita.domain.expressions.functions.registry import expect, function
from partita.domain.expressions.values import Value, kind

_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?([Zz]|[+-][0-9]{2}:[0-9]{2})\Z"
)
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h|d)")
_SPAN = re.compile(r"[+-]?(?:[0-9]{1,15}(?:\.[0-9]{1,9})?(?:ns|us|µs|ms|s|m|h|d))+\Z")
_MICROSECONDS: Final = {
    "ns": 1e-3, "us": 1, "µs": 1, "ms": 1_000, "s": 1_000_000,
    "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000,
}  # fmt: skip
TIME_COST: Final = 24
"""Visits that reading a time, or a part of one, takes."""
SPAN_COST: Final = 120
"""Visits that reading a span of time takes."""
_OFFSET = re.compile(r"([+-]?)([0-9]{2}):([0-9]{2})\Z")


def parse_time(value: Value) -> datetime:
    """RFC 3339 text, or seconds since 1970. Raises ExpressionError."""
    if type(value) is int:
        try:
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=value)
        except OverflowError as error:
            raise ExpressionError("timestamp: outside the years 1 to 9999") from error
    match = _TIME.match(expect(value, str, "timestamp"))
    if match is None:
        raise ExpressionError(f"timestamp: {value[:40]!r} is not RFC 3339, such as 2024-05-01T08:00:00Z")
    day, clock, decimals, zone = match.groups()
    offset = "+00:00" if zone in "Zz" else zone
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}.{(decimals or '0')[:6]:0<6}{offset}")
        return moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ExpressionError(f"timestamp: {value!r}: {error}") from error


def parse_span(value: str) -> timedelta:
    """A span such as ``1h30m``. Raises ExpressionError."""
    if len(value) > 100 or not _SPAN.match(value):
        raise ExpressionError(f"duration: {value[:40]!r} is not a duration; expected such as 1h30m, 45s, 1d")
    try:
        total = sum((_microseconds(number, unit) for number, unit in _PART.findall(value)), timedelta())
    except OverflowError as error:
        raise ExpressionError(f"duration: {value!r} is too long") from error
    return -total if value[0] == "-" else total


def _microseconds(number: str, unit: str) -> timedelta:
    factor = _MICROSECONDS[unit]
    exact = int(number) * int(factor) if "." not in number and factor >= 1 else float(number) * factor
    return timedelta(microseconds=exact)


def _local(moment: Value, zone: Value) -> datetime:
    expect_time(moment)
    if zone in ("", "UTC", "Z"):
        return moment.astimezone(UTC)  # type: ignore[no-any-return]  # checked by expect_time
    match = _OFFSET.match(expect(zone, str, "time zone"))
    if match is None or int(match[2]) > 14 or int(match[3]) > 59:
        raise ExpressionError(f"time zone {zone[:40]!r}: expected UTC or a fixed offset such as +02:00")
    minutes = int(match[2]) * 60 + int(match[3])
    try:
        return moment.astimezone(timezone(timedelta(minutes=-minutes if match[1] == "-" else minutes)))  # type: ignore[no-any-return]  # checked by expect_time
    except OverflowError as error:
        raise ExpressionError("the time lies outside the years 1 to 9999") from error


def expect_time(value: Value) -> None:
    """Raise unless the value is a time."""
    if type(value) is not datetime:
        raise ExpressionError(f"expected a timestamp, found {kind(value)}; use timestamp(…)")


def _part(name: str, summary: str, read: str) -> None:
    def body(_: Frame, moment: Value, zone: Value = "") -> int:
        return _READ[read](_local(moment, zone))

    function("time, zone", summary, name=name, optional=1, cost=TIME_COST)(body)


_READ: Final[dict[str, Callable[[datetime], int]]] = {
    "year": lambda t: t.year,
    "month0": lambda t: t.month - 1,
    "day": lambda t: t.day,
    "day0": lambda t: t.day - 1,
    "weekday": lambda t: t.isoweekday() % 7,
    "yearday0": lambda t: t.timetuple().tm_yday - 1,
}
for _name, _summary, _read in (
    ("getFullYear", "the year", "year"),
    ("getMonth", "the month, 0 to 11", "month0"),
    ("getDate", "the day of the month, 1 to 31", "day"),
    ("getDayOfMonth", "the day of the month, 0 to 30", "day0"),
    ("getDayOfWeek", "the day of the week, 0 is Sunday", "weekday"),
    ("getDayOfYear", "the day of the year, 0 to 365", "yearday0"),
):
    _part(_name, _summary, _read)


def _clock(name: str, summary: str, unit: timedelta, read: str) -> None:
    def body(_: Frame, value: Value, zone: Value = "") -> int:
        if type(value) is timedelta:
            whole: int = abs(value) // unit
            return -whole if value < timedelta() else whole
        moment = _local(value, zone)
        return moment.microsecond // 1000 if read == "microsecond" else int(getattr(moment, read))

    function("time or duration, zone", summary, name=name, optional=1, cost=TIME_COST)(body)


_clock("getHours", "the hour of a time; all hours of a duration", timedelta(hours=1), "hour")
_clock("getMinutes", "the minute of a time; all minutes of a duration", timedelta(minutes=1), "minute")
_clock("getSeconds", "the second of a time; all seconds of a duration", timedelta(seconds=1), "second")
_clock("getMilliseconds", "the millisecond of a time; all of a duration", timedelta(milliseconds=1), "microsecond")
