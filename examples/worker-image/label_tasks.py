"""The tasks of the example image. Beside a checkout: ``partita worker label_tasks:app`` in this folder."""

from __future__ import annotations

from humanize import metric

from partita.worker import Tasks

app = Tasks()


@app.task("write-label")
def write_label(parcel: str, grams: int) -> dict[str, str]:
    """The text of a parcel's label, with its weight as people write it."""
    return {"text": f"{parcel}: {metric(grams, 'g')}"}
