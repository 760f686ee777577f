"""`cirrusmq verify`: a load with faults on a service, judged, and a signed result."""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import signal
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from cirrusmq_local.commands import verify_files
from cirrusmq_local.commands.arguments import DATA, Data, Json, Yes, ask
from cirrusmq_local.commands.console import fail, print_json, tell
from cirrusmq_local.plurals import counted

MAX_MINUTES = 20.0
LOWERED_UNITS = 50
"""Write units a second that a table is held back to."""
BROKEN = 3
"""The exit code if a promise was broken."""


def verify(
    url: Annotated[
        str | None,
        typer.Argument(help="URL of the service, with the key of CIRRUSMQ_ACCESS_KEY_ID."),
    ] = None,
    minutes: Annotated[
        float, typer.Option(help="How long it takes, about.", min=0.2, max=MAX_MINUTES)
    ] = 5.0,
    max_dollars: Annotated[
        float, typer.Option(help="Refuse if it may cost more in an account.", min=0)
    ] = 1.0,
    start: Annotated[
        bool,
        typer.Option("--start", help="Start a service on this machine for it, in a new folder."),
    ] = False,
    faults: Annotated[
        bool,
        typer.Option(
            "--faults",
            help="With --start: kill it, stop it, fill its disk. With --stack: stop a function,"
            " hold back a table, move an alias; each is set again.",
        ),
    ] = False,
    stack: Annotated[
        str | None,
        typer.Option(help="For --faults in an account: its stack; needs AWS credentials."),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Compare the embedded DynamoDB with another, and nothing else: aws, or a URL."
        ),
    ] = None,
    narrow: Annotated[
        bool,
        typer.Option("--narrow", help="With --engine: leave out what moto does differently."),
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="A scene to play. May be repeated; without it, all.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of all draws.", min=0)] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for the result, the page and the history.", readable=False)
    ] = Path("verified"),
    key: Annotated[
        Path | None,
        typer.Option(help="Ed25519 private key in PEM that signs; one that is missing is made."),
    ] = None,
    check: Annotated[
        Path | None, typer.Option(help="Check the signature of a result, and do nothing else.")
    ] = None,
    undo: Annotated[
        Path | None, typer.Option(help="Undo what the journal of a run that ended early says.")
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Load a service, make faults, and check every promise that its calls can show.

    Exits with 3 if a promise was broken. Says first what it may cost. With --engine it compares
    the embedded DynamoDB with a real one, and exits with 3 if they differ.
    """
    if check is not None:
        verify_files.check(check, as_json)
        return
    if undo is not None:
        verify_files.undo(undo, url, data)
        return
    if narrow and engine is None:
        raise typer.BadParameter("needs --engine", param_hint="--narrow")
    drawn = secrets.randbelow(1_000_000_000) if seed is None else seed
    if engine is not None:
        if url is not None or start or faults or only:
            raise typer.BadParameter("plays no scenes of a service", param_hint="--engine")
        _beside(engine, minutes, not narrow, drawn, out, max_dollars, key, yes, as_json)
        return
    if faults and not start and stack is None:
        raise typer.BadParameter("needs --start or --stack", param_hint="--faults")
    if stack is not None and (start or not faults):
        raise typer.BadParameter("is for --faults of a service by its URL", param_hint="--stack")
    if start and url is not None:
        raise typer.BadParameter("starts a service; a URL names another", param_hint="--start")
    from cirrusmq_local.commands.verify_plan import PLAYED, URLS, plan
    from cirrusmq_local.verifying.parts import PARTS
    from cirrusmq_local.verifying.scenes import scenes

    known = scenes()
    wanted = only or [*known, *PARTS]
    unknown = [name for name in only or () if name not in known and name not in PARTS]
    if unknown:
        names = ", ".join([*known, *PARTS])
        raise typer.BadParameter(f"one of {names}", param_hint="--only")
    chosen = {name: known[name] for name in known if name in wanted}
    parts = [name for name in PARTS if name in wanted]
    urls = PLAYED * len(parts) + (URLS if url is None or _is_here(url) else 0)
    planned = plan(minutes, list(chosen.values()), urls, kills=start and faults)
    said = (
        f"{planned.scenes + len(parts)} scenes in about"
        f" {counted(planned.lasts_minutes, 'minute')}: at most"
        f" {planned.calls} calls, {planned.messages} messages, {planned.write_units} write and"
        f" {planned.read_units} read units, ${planned.dollars:.2f} in an account"
    )
    tell(said)
    if planned.dollars > max_dollars:
        fail(f"${planned.dollars:.2f} is more than --max-dollars {max_dollars:g}", "take --minutes")
    ask("Go on?", yes)
    out.mkdir(parents=True, exist_ok=True)
    with _ending():
        told = _run(url, start, faults, stack, chosen, parts, planned, minutes, drawn, out, data)
    verify_files.sign(told, key)
    from cirrusmq_local.verifying.result import page

    (out / "result.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    (out / "result.md").write_text(page(told))
    broken = [each["id"] for each in told["promises"] if each["verdict"] == "broken"]
    if as_json:
        print_json(told)
    else:
        print(page(told))
        print(f"in {out}: result.json, result.md, history.jsonl")
    if broken:
        raise typer.Exit(BROKEN)
    if told["errors"]:
        fail(f"the run itself failed: {told['errors'][0]}")


def _beside(
    where: str,
    minutes: float,
    wide: bool,
    seed: int,
    out: Path,
    max_dollars: float,
    key: Path | None,
    yes: bool,
    as_json: bool,
) -> None:
    from cirrusmq_local.commands import verify_engine

    with _ending():
        told = verify_engine.compare(
            where,
            minutes=minutes,
            wide=wide,
            seed=seed,
            out=out,
            max_dollars=max_dollars,
            yes=yes,
        )
    verify_files.sign(told, key)
    (out / "engine.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    if as_json:
        print_json(told)
    else:
        print(verify_engine.page(told))
        print(f"in {out}: engine.json")
    if told["differences"]:
        raise typer.Exit(BROKEN)


def _run(
    url: str | None,
    start: bool,
    faults: bool,
    stack: str | None,
    chosen: dict[str, Any],
    parts: list[str],
    planned: Any,
    minutes: float,
    seed: int,
    out: Path,
    data: Path,
) -> dict[str, Any]:
    from cirrusmq_local.verifying import summary, whole
    from cirrusmq_local.verifying.journal import Journal
    from cirrusmq_local.verifying.machine import started
    from cirrusmq_local.verifying.record import Options
    from cirrusmq_local.verifying.remote import ServiceGone
    from cirrusmq_local.verifying.result import write_history

    id_ = secrets.token_hex(4)
    journal = Journal(out / f"undo-{id_}.jsonl")
    over = threading.Event()
    with contextlib.ExitStack() as ending:
        machine = None
        if start:
            try:
                machine = ending.enter_context(started(journal, over.wait))
            except RuntimeError as error:
                fail(str(error))
            url, data = machine.url, machine.folder
        admin = verify_files.service(url, data)
        ending.callback(admin.close)
        health = admin.ask("GET", "/health", tries=3)
        if health["time_scale"] != 1:
            fail("its time runs faster than this machine's: start it without --time-scale")
        local = _is_here(admin.url)
        admin.dialect_url = verify_files.dialect_url(admin.url, data) if local else None
        options = Options(
            id=id_,
            seed=seed,
            minutes=minutes,
            play_seconds=planned.play_seconds,
            scenes=chosen,
            hooks=local,
            functions=local,
            usage=start,
            parts=parts,
            faults=_faults(machine, stack, journal, planned.play_seconds, over) if faults else [],
            over=over,
        )
        try:
            outcome = whole.run(admin, options, journal, tell)
        except ServiceGone as error:
            fail(
                f"{error}: the run ended without a result",
                f"when it runs again: cirrusmq verify --undo {journal.path}",
            )
    frame = {
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "service": {
            "version": health["version"],
            # A deployed service does not tell its commit.
            "commit": verify_files.commit() if start else None,
            "template_sha256": _template_digest(),
            "place": "one machine" if local else admin.url,
            "region": verify_files.region(admin.url),
        },
        "by": {
            "client": summary.machine_name(),
            "commit": verify_files.commit(),
            "clock_bound_ms": _bound(outcome),
        },
    }
    told = summary.summarize(outcome, options, frame, planned.as_dict())
    told["history_sha256"] = write_history(out / "history.jsonl", outcome.histories())
    if told["measured"]["write_units"] is not None:
        from cirrusmq_local.commands.verify_plan import dollars

        made = sum(each["made"] for each in told["calls"].values())
        units = told["measured"]["write_units"], told["measured"]["read_units"]
        told["measured"]["dollars"] = round(dollars(*units, made), 4)
    return told


def _faults(
    machine: Any, stack: str | None, journal: Any, play_seconds: float, over: threading.Event
) -> list[Any]:
    """(name, function that makes it) of each fault that can be made."""
    if machine is not None:
        return [
            ("killed", machine.kill),
            ("stopped for 3 s", machine.stop),
            ("disk full for 3 s", machine.fill),
        ]
    from cirrusmq_local.verifying.account import LOWERED_SECONDS

    account = verify_files.account(journal, over.wait)
    found: list[Any] = [
        ("send stopped for 5 s", lambda: account.stop(f"{stack}-send")),
        ("receive on the version before", lambda: account.move_alias(f"{stack}-receive")),
    ]
    if play_seconds > LOWERED_SECONDS:
        function = f"{stack}-send"
        found.append(("table held back", lambda: account.lower_of(function, LOWERED_UNITS)))
    return found


def _is_here(url: str) -> bool:
    """True if a service is on this machine, so that it can post to URLs here."""
    return url.startswith(("http://127.0.0.1", "http://localhost"))


def _bound(outcome: Any) -> int:
    return max((each.remote.max_skew_ms for each in outcome.played), default=0)


def _template_digest() -> str:
    from cirrusmq_local.cloud.template import TEMPLATE

    return hashlib.sha256(TEMPLATE.read_bytes()).hexdigest()


@contextlib.contextmanager
def _ending() -> Iterator[None]:
    """SIGTERM ends it as Ctrl-C does: all that was made is removed."""

    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
