"""The tasks of the example workflows. Serve them with ``partita worker examples.tasks:app``."""

from __future__ import annotations

import asyncio

from partita.worker import TaskContext, TaskError, Tasks

app = Tasks()


class CardDeclined(TaskError):
    """The bank refused; manifests match it as ``card_declined``."""


@app.task("charge-card")
async def charge_card(sku: str, amount: int, context: TaskContext) -> dict[str, str]:
    """Charge an order; ``context.idempotency_key`` is what a payment service would take to never charge twice."""
    if amount > 100_000:
        raise CardDeclined(f"{amount} is over the limit", details={"sku": sku, "limit": 100_000})
    await asyncio.sleep(0.3)  # stands for the call to the payment service
    return {"id": f"ch-{context.run_id.hex[-8:]}", "sku": sku}


@app.task("pack")
def pack(site: str, carrier: str) -> dict[str, str]:
    """Pack an order; a plain function runs in a thread."""
    return {"box": f"box-{site}", "carrier": carrier}


@app.task("confirm")
async def confirm(charge: str, carrier: str, approver: str) -> dict[str, str]:
    """Confirm an order to the customer."""
    return {"number": f"{charge}/{carrier}/{approver}"}


@app.task("shrink-picture")
def shrink_picture(picture: str, width: int, number: int) -> dict[str, str | int]:
    """Make a small picture of a large one."""
    return {"picture": f"{number}-{width}-{picture}", "bytes": width * 40}


TREE = {"/": ["/notes", "/songs"], "/songs": ["/songs/old"]}


@app.task("list-folder")
def list_folder(path: str) -> dict[str, list[str]]:
    """What a folder holds; each folder of this small tree holds one file."""
    return {"files": [f"{path.rstrip('/')}/index.txt"], "folders": TREE.get(path, [])}


@app.task("book")
def book(what: str, city: str, context: TaskContext) -> dict[str, str]:
    """Book a flight or a hotel."""
    return {"id": f"{what}-{city}-{context.run_id.hex[-8:]}"}


@app.task("cancel-booking")
def cancel_booking(id: str, why: str) -> dict[str, str]:  # noqa: A002  # the name of the field in the manifest
    """Take a booking back; done twice it changes nothing."""
    return {"cancelled": id, "why": why}


@app.task("tell")
def tell(text: str) -> dict[str, str]:
    """Tell somebody."""
    return {"told": text}


@app.task("ask-printer")
def ask_printer(job: str, page: int, question: int) -> dict[str, str | int | bool]:
    """How far a print job is: two pages a question, five in all."""
    printed = min(page + 2, 5)
    return {"job": job, "page": printed, "done": printed == 5, "question": question}
