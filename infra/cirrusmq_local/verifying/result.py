"""The result of a run: one JSON, one page of it, and a file of the history."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from cirrusmq_local.judging.history import Call
from cirrusmq_local.judging.places import Delivery
from cirrusmq_local.verifying.functions import WORK
from cirrusmq_local.verifying.played import Judged, Played
from cirrusmq_local.verifying.promises import PROMISES

FORMAT = 1
MAX_CHARACTERS = 200
"""Most characters of a text in the history."""
Verdict = Literal["kept", "broken", "not tried"]
_KINDS = {
    "lost": ("lost", "half of a send", "blocked for good", "missed", "did not bring"),
    "doubled": ("beside the first", "two copies", "under two ids", "another id", "two places"),
    "reordered": ("came before",),
    "late": ("hidden from a receive",),
}
"""A count's name -> words of the violations that show it."""


def promises(
    played: Sequence[Played], others: Sequence[tuple[str, Judged]]
) -> list[dict[str, Any]]:
    """Each promise with its verdict. others: (part of the run, what it shows)."""
    judged: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    shown: defaultdict[str, list[str]] = defaultdict(list)
    for each in played:
        doubtless = sum(not call.faults for call in each.remote.history.calls)
        for promise in each.judged:
            judged[promise] += doubtless
            shown[promise].append(each.name)
        broken.update(promise for promise, _ in each.violations)
    for name, other in others:
        judged.update(other.judged)
        for promise in other.judged:
            shown[promise].append(name)
        broken.update(each for each, _ in other.violations)
    return [
        {
            "id": promise,
            "verdict": _verdict(judged[promise], broken[promise]),
            "beyond_doubt": judged[promise],
            "shown_by": shown[promise],
        }
        for promise in PROMISES
    ]


def _verdict(judged: int, broken: int) -> Verdict:
    return "broken" if broken else "kept" if judged else "not tried"


def messages(played: Sequence[Played]) -> dict[str, int]:
    """The fates of the messages of all scenes, as counts."""
    told: Counter[str] = Counter(dict.fromkeys(("sent", "delivered", "deleted", *_KINDS), 0))
    for each in played:
        calls = each.remote.history.calls
        sends = [call for call in calls if call.kind in ("send", "send again") and call.known]
        told["sent"] += len({id_ for call in sends for id_, _ in call.answer})
        receives = [call for call in calls if call.kind == "receive" and call.known]
        told["delivered"] += len({m.id for call in receives for m in call.answer})
        deletes = [call for call in calls if call.kind == "delete" and call.known]
        told["deleted"] += sum(result == 0 for call in deletes for result in call.answer)
        for _, violation in each.violations:
            for name, words in _KINDS.items():
                told[name] += any(word in violation.promise for word in words)
    return dict(told)


def calls(histories: Sequence[Sequence[Call]]) -> dict[str, dict[str, Any]]:
    """Kind -> how many were made, answered, refused, unknown; and their milliseconds."""
    found: defaultdict[str, list[Call]] = defaultdict(list)
    for history in histories:
        for call in history:
            if call.kind != WORK:
                found[call.kind].append(call)
    return {
        kind: {
            "made": len(made),
            "answered": sum(call.outcome == "answered" for call in made),
            "refused": sum(call.outcome == "refused" for call in made),
            "unknown": sum(not call.known and call.outcome != "refused" for call in made),
            "beyond_doubt": sum(not call.faults for call in made),
            "milliseconds": percentiles(
                [call.ended_ms - call.begun_ms for call in made if call.known and not call.faults]
            ),
        }
        for kind, made in sorted(found.items())
    }


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """p50 and p99; nothing of nothing."""
    ordered = sorted(values)
    last = len(ordered) - 1
    shares = {"p50": 0.5, "p99": 0.99} if ordered else {}
    return {
        name: round(ordered[min(last, int(share * len(ordered)))], 1)
        for name, share in shares.items()
    }


def violations(
    played: Sequence[Played], others: Sequence[tuple[str, Judged]]
) -> list[dict[str, Any]]:
    """Each broken promise, and the calls that show it, on a line each."""
    told = [
        {
            "promise": promise,
            "scene": each.name,
            "what": violation.promise,
            "calls": [call.line(each.remote.history.start_ms) for call in violation.calls],
        }
        for each in played
        for promise, violation in each.violations
    ]
    told += [
        {
            "promise": promise,
            "scene": name,
            "what": each.promise,
            "calls": [call.line() for call in each.calls],
        }
        for name, other in others
        for promise, each in other.violations
    ]
    return told


def write_history(path: Path, histories: Sequence[tuple[str, Sequence[Call]]]) -> str:
    """Write all calls, a JSON line each. Returns the SHA-256 of the file."""
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for scene, history in histories:
            for call in history:
                line = json.dumps(
                    {
                        "scene": scene,
                        "actor": call.actor,
                        "kind": call.kind,
                        "place": call.place,
                        "begun": call.begun,
                        "begun_ms": call.begun_ms,
                        "ended": call.ended if call.ended < 1 << 60 else None,
                        "ended_ms": call.ended_ms if call.ended < 1 << 60 else None,
                        "outcome": call.outcome,
                        "faults": call.faults,
                        "given": _short(call.given),
                        "answer": _short(call.answer),
                    },
                    default=_plain,
                )
                digest.update(line.encode() + b"\n")
                file.write(line.encode() + b"\n")
    return digest.hexdigest()


def _short(value: object) -> object:
    """The value with the beginnings of long texts: bodies are made up, and up to 190 KB."""
    if isinstance(value, str) and len(value) > MAX_CHARACTERS:
        return f"{value[:MAX_CHARACTERS]}… {len(value)} characters"
    if isinstance(value, dict):
        return {name: _short(each) for name, each in value.items()}
    return [_short(each) for each in value] if isinstance(value, list | tuple) else value


def _plain(value: object) -> object:
    if isinstance(value, Delivery):
        return {
            "id": value.id,
            "label": value.label,
            "group": value.group,
            "receipt": value.receipt,
            "count": value.count,
            "sent_ms": value.sent_ms,
            "visible_ms": value.visible_ms,
            "dead": value.dead,
        }
    return str(value)


def page(result: dict[str, Any]) -> str:
    """The result as Markdown."""
    service, told = result["service"], result["messages"]
    measured = result["measured"]
    broken = [each["id"] for each in result["promises"] if each["verdict"] == "broken"]
    lines = [
        f"# {'Broken: ' + ', '.join(broken) if broken else 'No promise was broken'}",
        "",
        f"Service {service['version']}, commit {(service['commit'] or 'not told')[:12]}, "
        f"template {service['template_sha256'][:12]}, {service['region'] or service['place']}; "
        f"{result['made_at']}, {result['plan']['minutes']:g} minutes, "
        f"seed {result['plan']['seed']}.",
        "",
        "| messages | |",
        "| --- | ---: |",
        *(f"| {name} | {count} |" for name, count in told.items()),
        "",
        "| calls | made | answered | refused | unknown | p50 ms | p99 ms |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for kind, each in result["calls"].items():
        times = each["milliseconds"]
        lines.append(
            f"| {kind} | {each['made']} | {each['answered']} | {each['refused']} |"
            f" {each['unknown']} | {times.get('p50', '')} | {times.get('p99', '')} |"
        )
    url = result["publish_to_url_milliseconds"]
    lines.append(f"| publish to URL | | | | | {url.get('p50', '')} | {url.get('p99', '')} |")
    lines += ["", "| | predicted, at most | measured |", "| --- | ---: | ---: |"]
    for name in ("write_units", "read_units", "dollars"):
        shown = measured[name] if measured[name] is not None else "not measured"
        lines.append(f"| {name.replace('_', ' ')} | {result['plan'][name]} | {shown} |")
    if result["usage"]:
        lines += ["", "| use | metered | at least, by the calls | at most |"]
        lines += ["| --- | ---: | ---: | ---: |"]
        lines += [
            f"| {kind} | {each['metered']} | {each['at_least']} | {each['at_most']} |"
            for kind, each in result["usage"].items()
        ]
    lines += [
        "",
        "Faults: " + (", ".join(f"{k} {n}" for k, n in result["faults"].items()) or "none"),
        *(f"Left out: {name}, {why}" for name, why in result["left_out"].items()),
    ]
    lines += ["", "| promise | verdict | calls beyond doubt |", "| --- | --- | ---: |"]
    lines += [
        f"| `{each['id']}` | {each['verdict']} | {each['beyond_doubt'] or ''} |"
        for each in result["promises"]
    ]
    for each in result["violations"]:
        lines += ["", f"**{each['promise']}** ({each['scene']}): {each['what']}", ""]
        lines += [f"    {line}" for line in each["calls"]]
    signature = result.get("signature")
    lines += ["", f"History: SHA-256 `{result['history_sha256']}`."]
    if signature:
        lines.append(f"Signed: {signature['algorithm']}, public key `{signature['public_key']}`.")
    return "\n".join(lines) + "\n"
