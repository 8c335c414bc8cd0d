"""The form of every kind of name.

Invariant: the same as in the CustomResourceDefinitions, so that what the API server refuses is refused in the same way
where no API server looks at it: in a manifest that goes to a database, and on the command line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

NAME: Final = re.compile(r"[a-z][A-Za-z0-9_]*\Z")
"""Names of nodes: usable as identifiers of CEL."""
QUEUE: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\Z")
TASK_TYPE: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_./-]*[A-Za-z0-9])?\Z")
OBJECT_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?\Z")
_LABEL: Final = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
SUBDOMAIN: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*\Z")
"""Names of objects as the API server checks them, which is stricter than what a reference's pattern says."""
GENERATE_NAME: Final = re.compile(rf"({_LABEL}\.)*[a-z0-9]([a-z0-9-]*)\Z")
"""What an API server adds letters and digits to; it may end in a hyphen."""
NAMESPACE: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?\Z")
SIGNAL_ID: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._:-]*[A-Za-z0-9])?\Z")
ONE_LINE: Final = re.compile(r"[^\x00-\x1F\x7F]+\Z")
ANY_TEXT: Final = re.compile(r"[^\x00]*\Z")
PARAGRAPH: Final = re.compile(r"[^\x00-\x08\x0B\x0C\x0E-\x1F\x7F]*\Z")


@dataclass(frozen=True, slots=True)
class Form:
    """What a name may look like."""

    pattern: re.Pattern[str]
    longest: int
    expected: str
    """In words, for messages."""

    def problem(self, text: str) -> str:
        """What is wrong with a name; empty if nothing is."""
        if not text and not self.pattern.match(text):
            return f"is empty; expected {self.expected}"
        if len(text) > self.longest:
            return f"has {len(text):,} characters; expected at most {self.longest:,}"
        if not self.pattern.match(text):
            return f"{text[:80]!r} does not fit; expected {self.expected}"
        return ""


OBJECT: Final = Form(
    SUBDOMAIN, 253, "an object's name of small letters, digits and hyphens, in parts that dots divide, such as order-2"
)
PREFIX: Final = Form(GENERATE_NAME, 253, "the beginning of an object's name, such as order-")
NAMESPACE_NAME: Final = Form(NAMESPACE, 63, "a namespace's name of small letters, digits and hyphens")
SIGNAL_NAME: Final = Form(ONE_LINE, 63, "a name in one line")
SIGNAL_IDENTITY: Final = Form(SIGNAL_ID, 63, "letters, digits, dots, hyphens and colons")
QUEUE_NAME: Final = Form(QUEUE, 63, "a queue name of letters, digits, dots, hyphens")
TAG: Final = Form(ONE_LINE, 63, "a word of 1 to 63 characters")
REASON: Final = Form(PARAGRAPH, 1024, "a text without control characters")
