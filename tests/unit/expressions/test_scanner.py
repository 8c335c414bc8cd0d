"""Where expressions begin and end in a string."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.domain.expressions.errors import ExpressionSyntaxError
from partita.domain.expressions.scanner import Token, scan


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        ("plain", ("plain",)),
        ("${input.a}", (Token("input.a"),)),
        ("a-${x}-b", ("a-", Token("x"), "-b")),
        ("${a}${b}", (Token("a"), Token("b"))),
        ("$${x}", ("${x}",)),
        ("$$${x}", ("$${x}",)),
        ("cost: 5$ {x}", ("cost: 5$ {x}",)),
        ("${'}'}", (Token("'}'"),)),
        ('${"}" + "{"}', (Token('"}" + "{"'),)),
        ("${'it''s'}", (Token("'it''s'"),)),
        (r"${'\'}'}", (Token(r"'\'}'"),)),
        ("${{'a': {'b': 1}}.a}", (Token("{'a': {'b': 1}}.a"),)),
        ("${'''a}'b'''}!", (Token("'''a}'b'''"), "!")),
        ("${r'\\'}", (Token("r'\\'"),)),
        ("${a // a comment } here\n + b}", (Token("a // a comment } here\n + b"),)),
        ("${ a }", (Token("a"),)),
        ("$", ("$",)),
        ("}${a}{", ("}", Token("a"), "{")),
    ],
)
def test_scan(text: str, parts: tuple[str | Token, ...]) -> None:
    assert scan(text) == parts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${a", "${a is not closed; write a literal ${ as $${"),
        ("${'a}", "in ${'a}: column 3: this string is not closed"),
        ("x ${ {a }", "${ {a } is not closed; write a literal ${ as $${"),
        ("${a # b}", "in ${a # b}: column 5: unexpected character '#'"),
    ],
)
def test_a_token_that_does_not_end_is_named(text: str, message: str) -> None:
    with pytest.raises(ExpressionSyntaxError) as caught:
        scan(text)
    assert caught.value.message == message


@given(st.text())
def test_any_text_gives_parts_or_one_clear_error(text: str) -> None:
    with suppress(ExpressionSyntaxError):
        assert all(scan(text))


@given(st.text(alphabet="${}'\"\\rab/ \n.", max_size=40))
def test_text_of_special_characters_gives_parts_or_one_clear_error(text: str) -> None:
    with suppress(ExpressionSyntaxError):
        scan(text)


@given(st.text())
def test_an_escaped_text_scans_to_itself(text: str) -> None:
    escaped = text.replace("${", "$${")
    assert "".join(str(part) for part in scan(escaped)) == text
