"""Tables on terminals that are too narrow for them: nothing is cut."""

from __future__ import annotations

import pytest

from cirrusmq_local.commands.console import print_table

COLUMNS = ["subscription", "state", "attempts", "next_attempt_at", "last_error"]
ROWS = [
    ["site", "retrying", 2, "2026-11-26T11:17:40.192Z", "status 500"],
    ["everybody", "delivered", 1, None, None],
]


def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, wide: int) -> str:
    monkeypatch.setenv("COLUMNS", str(wide))
    print_table(COLUMNS, ROWS, title="a trace")
    return capsys.readouterr().out


@pytest.mark.parametrize("wide", [60, 80, 100, 200])
def test_no_time_and_no_name_is_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, wide: int
) -> None:
    shown = printed(capsys, monkeypatch, wide)
    assert "…" not in shown
    for cell in ("site", "everybody", "retrying", "2026-11-26T11:17:40.192Z", "a trace"):
        assert cell in shown
    assert max(map(len, shown.splitlines())) <= wide


def test_a_block_has_a_line_for_each_filled_cell(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert printed(capsys, monkeypatch, 60).splitlines() == [
        "a trace",
        "site",
        "  state            retrying",
        "  attempts         2",
        "  next_attempt_at  2026-11-26T11:17:40.192Z",
        "  last_error       status 500",
        "everybody",
        "  state            delivered",
        "  attempts         1",
    ]


def test_a_text_of_many_words_is_wrapped_in_its_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    print_table(["a", "b", "c"], [["x", 1, "many words " * 20]])
    shown = capsys.readouterr().out
    assert "┃ c" in shown
    assert shown.count("many") == shown.count("words") == 20
