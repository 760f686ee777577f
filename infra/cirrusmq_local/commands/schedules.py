"""`cirrusmq schedule …`: messages at times of a cron expression, or every n seconds."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cirrusmq_client.answers import ScheduleAttributes
from cirrusmq_local.commands.arguments import DATA, Data, Json, Prefix, Yes, ask
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import print_listing, print_record

schedules = typer.Typer(no_args_is_help=True, help="Make, show and delete schedules.")
Name = Annotated[str, typer.Argument(help="The schedule's name.")]


@schedules.command("put")
def put(
    name: Name,
    body: Annotated[str, typer.Argument(help="The body of its message.")],
    queue: Annotated[str | None, typer.Option(help="The queue that gets the message.")] = None,
    topic: Annotated[str | None, typer.Option(help="Or the topic.")] = None,
    cron: Annotated[str | None, typer.Option(help="Five fields, such as '0 8 * * 1-5'.")] = None,
    time_zone: Annotated[str | None, typer.Option(help="Of cron; default: UTC.")] = None,
    every_seconds: Annotated[
        int | None, typer.Option(help="Instead of cron: a multiple of 60.", min=60)
    ] = None,
    missed: Annotated[
        str | None, typer.Option(help="What of missed times: one, all or none.")
    ] = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Send a message at times; a schedule of this name gets this definition."""
    given = {
        "queue": queue,
        "topic": topic,
        "cron": cron,
        "time_zone": time_zone,
        "every_seconds": every_seconds,
        "missed": missed,
    }
    definition: Any = {key: value for key, value in given.items() if value is not None}
    definition["message"] = {"body": body}
    made = connect(data).put_schedule(name, definition)
    if as_json:
        print_record(made, as_json)
    else:
        print(f"schedule {name}: next at {made['next_at']} (cirrusmq schedule show {name})")


@schedules.command("list")
def list_schedules(prefix: Prefix = "", as_json: Json = False, data: Data = DATA) -> None:
    """List the account's schedules, with their next times and their last errors."""
    found = [_shown(each) for each in connect(data).list_schedules(prefix or None)]
    print_listing(found, ("name", "to", "times", "next_at", "error"), as_json, "no schedules")


def _shown(schedule: ScheduleAttributes) -> dict[str, Any]:
    failure = schedule["last_error"]
    return {
        **schedule,
        "to": schedule.get("queue") or schedule.get("topic"),
        "times": schedule.get("cron") or f"every {schedule.get('every_seconds')} s",
        "error": failure["code"] if failure else "",
    }


@schedules.command("show")
def show(name: Name, as_json: Json = False, data: Data = DATA) -> None:
    """Show a schedule, its next time and its last error."""
    print_record(connect(data).show_schedule(name), as_json)


@schedules.command("delete")
def delete(name: Name, yes: Yes = False, data: Data = DATA) -> None:
    """Delete a schedule; a time within 3 minutes may still bring its message."""
    ask(f"Delete schedule {name}?", yes)
    connect(data).delete_schedule(name)
