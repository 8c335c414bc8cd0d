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
