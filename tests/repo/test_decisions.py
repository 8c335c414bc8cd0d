"""The records of decisions: one number and one title each, all of them in the list."""

from __future__ import annotations

from tests.repo.tree import ROOT, text

FOLDER = ROOT / "docs" / "decisions"


def test_every_record_has_its_own_number_and_stands_in_the_list() -> None:
    records = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
    numbers = [path.name[:4] for path in records]
    assert len(set(numbers)) == len(numbers) > 0
    titles = [text(path).partition("\n")[0].removeprefix("# ").partition(": ") for path in records]
    assert [number for number, _, _ in titles] == numbers
    listed = [line for line in text(FOLDER / "README.md").splitlines() if line.startswith("| [")]
    rows = zip(records, titles, strict=True)
    assert listed == [f"| [{number}]({path.name}) | {title} |" for path, (number, _, title) in rows]
