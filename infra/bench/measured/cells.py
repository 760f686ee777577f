"""Faults on ours and on other durable queues: messages lost and doubled, clients hung, seconds.

python -m infra.bench cells
python -m infra.bench cells --queue ours --cell "store killed" --messages 100 --seed 3

Each cell runs on a new server with new data. Its faults are chosen by the seed; when they meet what
is under way depends on the machine. So a table has facts of one run, not rates to compare.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence

from ..cells import Peer, all_peers
from ..cells.plays import PLAYS, NotPlayed, Result
from ..drawing.tables import show
from ..rivals import NotInstalled

MESSAGES = 500
_HEADS = ("queue", "answered sends", "lost", "doubled", "hung clients", "seconds to the last")
_LEFT_OUT = """
Left out: what PostgreSQL alone has (a used up pool of connections, a failover of its leader, a
killed backend, idle transactions by themselves), and priorities, which half of these queues have.
Not to be had here: River (Go) and Oban (Elixir)."""


def run(options: Sequence[str] = ()) -> None:
    """Plays cells and prints a table of each."""
    parser = argparse.ArgumentParser(prog="python -m infra.bench cells")
    peers = {peer.name: peer for peer in all_peers()}
    parser.add_argument("--queue", choices=peers, action="append")
    parser.add_argument("--cell", choices=PLAYS, action="append")
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(options)
    chosen = [peers[name] for name in asked.queue or peers]
    missing: dict[str, str] = {}
    for cell in asked.cell or PLAYS:
        _table(cell, [each for each in chosen if each.name not in missing], missing, asked)
    for name, why in missing.items():
        print(f"\nnot measured, not installed: {name}: {why}")
    print("\nDurable:")
    for peer in chosen:
        print(f"- {peer.name}: {peer.durable}")
    print(_LEFT_OUT)


def _table(
    cell: str, peers: list[Peer], missing: dict[str, str], asked: argparse.Namespace
) -> None:
    rows: list[list[object]] = []
    notes: list[str] = []
    more: tuple[str, ...] = ()
    for peer in peers:
        chance = random.Random(f"{asked.seed} {cell}")
        print(f"{cell}: {peer.name}", file=sys.stderr, flush=True)
        try:
            if cell in peer.cannot:
                raise NotPlayed(peer.cannot[cell])
            result = PLAYS[cell](peer, asked.messages, chance)
        except NotInstalled as why:
            missing[peer.name] = str(why)
        except NotPlayed as why:
            notes.append(f"{peer.name} was not played: {why}")
        except Exception as why:
            notes.append(f"{peer.name} did not end this cell: {why!r}")
        else:
            more = tuple(result.more)
            rows.append([peer.name, *_columns(result)])
            if result.verdict.unknown:
                raise RuntimeError(f"{peer.name} delivered what nobody sent")
    moment = time.strftime("%Y-%m-%d %H:%M")
    show(f"{cell}: {asked.messages} messages, seed {asked.seed}, {moment}", [*_HEADS, *more], rows)
    for note in notes:
        print(f"\n{note}")


def _columns(result: Result) -> list[object]:
    verdict = result.verdict
    counts = [verdict.sent, len(verdict.lost), len(verdict.doubled), result.hung]
    return [*counts, f"{result.seconds:.1f}", *result.more.values()]
