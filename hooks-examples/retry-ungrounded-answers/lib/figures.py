"""Reads the figures of a text: prices, percentages and dates, in a form that can be compared."""

from __future__ import annotations

import re
from decimal import Decimal

_NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
_PRICE = re.compile(rf"(?:[$€£]|\b(?:USD|EUR|GBP))\s?({_NUMBER})|\b({_NUMBER})\s?(?:€|(?:USD|EUR|GBP|dollars|euros)\b)")
_PERCENTAGE = re.compile(rf"\b({_NUMBER})\s?(?:%|percent\b)")
_GROUPED = re.compile(r"\d+(?:,\d{3})+(?:\.\d+)?")
_PLAIN = re.compile(r"\d+(?:\.\d+)?")

_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_MONTH = rf"({'|'.join(_MONTHS)})"
_ISO_DATE = re.compile(r"\b\d{4}-(\d{2})-(\d{2})")
_MONTH_DAY = re.compile(rf"\b{_MONTH}\s+(\d{{1,2}})(?:st|nd|rd|th)?\b")
_DAY_MONTH = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}\b")


def claims(text: str) -> dict[str, set[str]]:
    """The figures that a text claims, as they are written, each with the forms in which a source may hold it."""
    found: dict[str, set[str]] = {}
    for match in _PRICE.finditer(text):
        found[match.group().strip()] = {_plain(match[1] or match[2])}
    for match in _PERCENTAGE.finditer(text):
        # Tools tend to say 0.15 where people say 15%.
        found[match.group()] = {_plain(match[1]), _plain(match[1], Decimal("0.01"))}
    for written, date in _dates(text):
        found[written] = {date}
    return found


def evidence(text: str) -> set[str]:
    """Every number and every date of a source. ``1,250`` counts as 1250, and as 1 and 250: it may be a JSON list."""
    numbers = {_plain(match) for match in (*_GROUPED.findall(text), *_PLAIN.findall(text))}
    return numbers | {date for _, date in _dates(text)}


def _plain(number: str, factor: Decimal = Decimal(1)) -> str:
    return f"{(Decimal(number.replace(',', '')) * factor).normalize():f}"


def _dates(text: str) -> list[tuple[str, str]]:
    """Dates as they are written and as ``MM-DD``: people leave the year out."""
    dates = [(match.group(), f"{match[1]}-{match[2]}") for match in _ISO_DATE.finditer(text)]
    dates += [(match.group(), _month_day(match[1], match[2])) for match in _MONTH_DAY.finditer(text)]
    dates += [(match.group(), _month_day(match[2], match[1])) for match in _DAY_MONTH.finditer(text)]
    return dates


def _month_day(month: str, day: str) -> str:
    return f"{_MONTHS.index(month) + 1:02}-{int(day):02}"
