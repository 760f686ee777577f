"""The services of the reports' state machine, at the border of their APIs: exports, jobs, a bucket.

moto's interpreter runs the machine; it has neither the `.sync` of EMR Serverless nor the turning of
a request's JSON into the bytes of an object and of those into text, so they are added here as Step
Functions does them.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import unquote

import pytest
from botocore.exceptions import ClientError
from botocore.response import StreamingBody
from moto.stepfunctions.parser.api import HistoryEventType, TaskFailedEventDetails
from moto.stepfunctions.parser.asl.component.common.error_name.custom_error_name import (
    CustomErrorName,
)
from moto.stepfunctions.parser.asl.component.common.error_name.error_name import ErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import (
    FailureEvent,
    FailureEventException,
)
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import (
    StatesErrorName,
)
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name_type import (
    StatesErrorNameType,
)
from moto.stepfunctions.parser.asl.component.common.retry import retrier_decl
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_aws_sdk as aws_sdk,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_unsupported as unsupported,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.resource import (
    ResourceCondition,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service_aws_sdk import (  # noqa: E501
    StateTaskServiceAwsSdk,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service_callback import (  # noqa: E501
    StateTaskServiceCallback,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service_unsupported import (  # noqa: E501
    StateTaskServiceUnsupported,
)
from moto.stepfunctions.parser.asl.component.state.wait.wait_function.wait_function import (
    WaitFunction,
)
from moto.stepfunctions.parser.asl.eval.event.event_detail import EventDetails
from moto.stepfunctions.parser.asl.utils.boto_client import boto_client_for

EXPORT_ID = "01700000000000-0123abcd"


def export_arn(table: str, export_id: str = EXPORT_ID) -> str:
    """The ARN of a table's export, as DynamoDB forms it."""
    return f"arn:aws:dynamodb:local:000000000000:table/{table}/export/{export_id}"


@dataclass
class Services:
    """DynamoDB's exports, EMR Serverless and S3, as far as the machine uses them."""

    exporting: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Table -> what is told of its export, call by call; the last stays."""
    running: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Job -> what is told of its run, call by call; the last stays."""
    refusing: dict[str, list[int]] = field(default_factory=dict)
    """Operation -> HTTP statuses that its next calls get."""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    export_id: str = EXPORT_ID
    """Of the exports that are asked for."""
    items: int = 5
    """Of each table."""
    objects: dict[str, bytes] = field(default_factory=dict)
    """What was put, and can be read, by bucket and key."""
    waits: list[float] = field(default_factory=list)
    publishing: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Report -> what publish_report answers, call by call; the last stays."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, operation: str) -> list[dict[str, Any]]:
        """The requests of this operation, in order."""
        return [asked for name, asked in self.calls if name == operation]

    def answer(self, operation: str, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with self._lock:
            self.calls.append((operation, asked))
            refusals = self.refusing.get(operation)
            if refusals:
                return refusals.pop(0), {"__type": "ThrottlingException", "message": "slow down"}
            known: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
                "ExportTableToPointInTime": self._export,
                "DescribeExport": self._describe,
                "StartJobRun": self._start,
                "GetJobRun": self._run,
                "PutObject": lambda asked: {},
            }
            return 200, known[operation](asked)

    def invoke(self, function: str, event: dict[str, Any]) -> dict[str, Any]:
        """What a function answers; there is publish_report alone."""
        assert function.startswith("PublishReport"), function
        with self._lock:
            self.calls.append(("Invoke", event))
            return cast(
                dict[str, Any],
                _next(self.publishing, event["report"], {"outcome": "published", "next": None}),
            )

    def read(self, path: str) -> bytes | None:
        """The object at a path; None where there is none."""
        with self._lock:
            self.calls.append(("GetObject", {"path": path}))
            return self.objects.get(path)

    def _export(self, asked: dict[str, Any]) -> dict[str, Any]:
        arn = export_arn(asked["TableArn"].removesuffix(".Arn"), self.export_id)
        return {"ExportDescription": {"ExportArn": arn, "ExportStatus": "IN_PROGRESS"}}

    def _describe(self, asked: dict[str, Any]) -> dict[str, Any]:
        told = _next(
            self.exporting, asked["ExportArn"].split("/")[1], {"ExportStatus": "COMPLETED"}
        )
        description = {"ExportArn": asked["ExportArn"], "ItemCount": self.items, **told}
        return {"ExportDescription": description}

    def _start(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {
            "applicationId": asked["applicationId"],
            "jobRunId": f"run-{asked['name']}",
            "arn": f"arn:aws:emr-serverless:::/jobruns/run-{asked['name']}",
        }

    def _run(self, asked: dict[str, Any]) -> dict[str, Any]:
        told = _next(self.running, asked["jobRunId"].removeprefix("run-"), {"state": "SUCCESS"})
        return {"jobRun": {**asked, "stateDetails": "", **told}}


class Clients:
    """The interpreter's clients, each made once: it would make one for every call."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}
        self._lock = threading.Lock()

    def get(self, region: str, service: str, state_credentials: object = None) -> Any:
        """The client of a service; branches of a machine ask for it side by side."""
        with self._lock:
            if service not in self._made:
                self._made[service] = boto_client_for(region, service, state_credentials)
            return self._made[service]

    def close(self) -> None:
        for client in self._made.values():
            client.close()


@contextmanager
def serve(services: Services, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve them where moto's interpreter looks for AWS; waits pass at once and are noted."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            target = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
            asked = json.loads(body or b"{}")
            if "/functions/" in self.path:
                function = unquote(self.path).split("/functions/")[1].split("/")[0]
                self._tell(200, services.invoke(function, asked))
                return
            if not target:
                target, asked["applicationId"] = "StartJobRun", self.path.split("/")[2]
            self._tell(*services.answer(target, asked))

        def do_GET(self) -> None:
            path = unquote(self.path.split("?")[0])
            if path.startswith("/PipelineBucket/"):
                content = services.read(path)
                missing = b"<Error><Code>NoSuchKey</Code><Message>none</Message></Error>"
                self._tell(*((404, missing) if content is None else (200, content)))
                return
            _, _, application, _, run = path.split("/")
            self._tell(
                *services.answer("GetJobRun", {"applicationId": application, "jobRunId": run})
            )

        def do_PUT(self) -> None:
            if self.headers.get("Expect") == "100-continue":  # botocore waits for a second else
                self.send_response_only(100)
                self.end_headers()
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked = {"path": unquote(self.path), "body": json.loads(body)}
            status, _ = services.answer("PutObject", asked)
            services.objects[asked["path"].split("?")[0]] = body
            self._tell(status, b"")

        def _tell(self, status: int, answer: dict[str, Any] | bytes) -> None:
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("x-amzn-RequestId", "1")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    patch.setenv("MOTO_PORT", str(server.server_address[1]))
    clients = Clients()
    for module in (aws_sdk, unsupported):
        patch.setattr(module, "boto_client_for", clients.get)

    def pass_at_once(_: Any, env: Any, wait_seconds: float) -> None:
        services.waits.append(wait_seconds)

    patch.setattr(WaitFunction, "_wait_interval", pass_at_once)
    patch.setattr(retrier_decl, "time", SimpleNamespace(sleep=lambda seconds: None))
    patch.setattr(unsupported, "_SUPPORTED_INTEGRATION_PATTERNS", {ResourceCondition.Sync})
    patch.setattr(StateTaskServiceAwsSdk, "_normalise_parameters", _as_the_api_takes_them)
    patch.setattr(StateTaskServiceAwsSdk, "_normalise_response", _with_objects_as_text)
    patch.setattr(StateTaskServiceUnsupported, "_normalise_parameters", _as_the_api_takes_them)
    patch.setattr(StateTaskServiceUnsupported, "_from_error", _as_a_failed_task)
    patch.setattr(StateTaskServiceUnsupported, "_eval_integration_pattern", _follow_run)
    try:
        yield
    finally:
        clients.close()
        server.shutdown()
        thread.join()
        server.server_close()


def _next(told: dict[str, list[dict[str, Any]]], name: str, otherwise: dict[str, Any]) -> Any:
    answers = told.get(name) or [otherwise]
    return answers.pop(0) if len(answers) > 1 else answers[0]


def _as_the_api_takes_them(task: Any, parameters: dict[str, Any], *_: Any, **__: Any) -> None:
    client = aws_sdk.boto_client_for("local", task._get_boto_service_name())
    operation = client.meta.method_to_api_mapping[task._get_boto_service_action()]
    task._to_boto_request(
        parameters, client.meta.service_model.operation_model(operation).input_shape
    )


def _with_objects_as_text(task: Any, response: dict[str, Any], *_: Any, **__: Any) -> None:
    for name, value in response.items():
        if isinstance(value, StreamingBody):
            response[name] = value.read().decode()


def _follow_run(task: Any, *, env: Any, resource_runtime_part: Any, **_: Any) -> None:
    """Look at the run that was started until it has ended, as `.sync` says."""
    started = env.stack.pop()
    asked = {name: started[name] for name in ("applicationId", "jobRunId")}
    client = unsupported.boto_client_for(resource_runtime_part.region, "emr-serverless")
    while env.is_running():
        run = client.get_job_run(**asked)["jobRun"]
        told = {name[0].upper() + name[1:]: value for name, value in run.items()}
        if run["state"] == "SUCCESS":
            env.stack.append(told)
            return
        if run["state"] in ("FAILED", "CANCELLED"):
            failed = StatesErrorName(typ=StatesErrorNameType.StatesTaskFailed)
            raise FailureEventException(_failure(env, failed, json.dumps(told)))
        time.sleep(0.02)


def _as_a_failed_task(task: Any, env: Any, ex: Exception) -> FailureEvent:
    if isinstance(ex, ClientError):
        told = ex.response["Error"]
        return _failure(env, CustomErrorName(f"EmrServerless.{told['Code']}"), told["Message"])
    event: FailureEvent = StateTaskServiceCallback._from_error(task, env=env, ex=ex)
    return event


def _failure(env: Any, name: ErrorName, cause: str) -> FailureEvent:
    details = TaskFailedEventDetails(
        resource="startJobRun.sync",
        resourceType="emr-serverless",
        error=name.error_name,
        cause=cause,
    )
    return FailureEvent(
        env=env,
        error_name=name,
        event_type=HistoryEventType.TaskFailed,
        event_details=cast(EventDetails, {"taskFailedEventDetails": details}),
    )
