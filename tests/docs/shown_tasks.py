"""The tasks that docs/manifests.md names, as simple as can be."""

from __future__ import annotations

from typing import Any

from partita.worker import TaskError, Tasks

app = Tasks()


class Gateway(TaskError):
    """The payment service cannot be reached; manifests match it as ``gateway``."""


@app.task("write-greeting")
def write_greeting(who: str) -> dict[str, str]:
    """Greet."""
    return {"text": f"Hello {who}"}


@app.task("quote")
def quote(site: str) -> dict[str, int]:
    """The same price everywhere."""
    return {"price": 3} if site else {}


@app.task("send-mail")
def send_mail(to: str, number: int) -> dict[str, Any]:
    """Send a mail, but not to nobody."""
    if not to:
        raise TaskError("nobody")
    return {"to": to, "number": number}


@app.task("ask-carrier")
def ask_carrier(parcel: str, after: str) -> dict[str, str]:
    """On its way at first, then delivered."""
    return {"status": "delivered" if after else "moving", "cursor": f"{parcel}-1"}


@app.task("pick-line")
def pick_line(line: str) -> dict[str, str]:
    """Pick a line of an order."""
    return {"box": f"box-{line}"}


@app.task("weigh")
def weigh(box: str) -> dict[str, int]:
    """As many grams as letters."""
    return {"grams": len(box)}


@app.task("book-hotel")
def book_hotel(city: str) -> dict[str, str]:
    """Book a hotel."""
    return {"booking": f"h-{city}"}


@app.task("cancel-hotel")
def cancel_hotel(booking: str, city: str) -> dict[str, str]:
    """Take it back."""
    return {"cancelled": booking, "city": city}


@app.task("charge-card")
def charge_card() -> None:
    """The bank is closed."""
    raise Gateway("closed")


@app.task("send-invoice")
def send_invoice() -> None:
    """No invoice either."""
    raise TaskError("no paper")


@app.task("tell-customer")
def tell_customer(status: str, why: str, hotel: dict[str, str] | None) -> dict[str, Any]:
    """Tell the customer."""
    return {"status": status, "why": why, "hotel": hotel}


@app.task("print-label")
def print_label(size: str, colour: str) -> dict[str, str]:
    """Print a label."""
    return {"label": f"{size}-{colour}"}
