"""The embedded bucket against moto's S3: random calls give the same answers, errors included.

Both are called through botocore.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import boto3
import pytest
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from moto import mock_aws

from cirrusmq_local.bucket import Bucket, attach_bucket

# The differences of moto from S3; nothing else may differ.
MOTO_DIFFERS = {
    "ETag": "It is the MD5 of the content. S3's is opaque for what KMS encrypts, as ours is. So it "
    "is compared on each side by itself.",
    "units of ranges": "_handle_range_header takes any unit for bytes. So there is no other here.",
    "what is said besides": "Headers of S3's own, such as the kind of encryption, are compared as "
    "far as a reader of objects uses them.",
}
BUCKET = "bodies"
EXAMPLES, LONG_EXAMPLES = 12, 150
ONE_FIXTURE_FOR_ALL = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
"""Examples share a bucket's clients; each has a bucket of its own."""
Steps: TypeAlias = list[tuple[str, dict[str, Any]]]
Compare: TypeAlias = Callable[[Steps], None]
COMPARED = ("AcceptRanges", "ContentLength", "ContentRange", "ContentType", "Metadata")
TOLD = ("Code", "Message", "Key", "BucketName", "ActualObjectSize", "RangeRequested")

keys = st.sampled_from(["d01/1f3/a", "d16/fff/b b", "d16/fff/ü+%"])
ranges = st.one_of(
    st.none(),
    st.builds("bytes={}-{}".format, st.integers(0, 8), st.integers(0, 8)),
    st.builds("bytes={}-".format, st.integers(0, 8)),
    st.builds("bytes=-{}".format, st.integers(0, 8)),
    st.sampled_from(["bytes=2-1", "bytes=a-", "bytes=-"]),
)
buckets = st.sampled_from([BUCKET] * 9 + ["another"])


def call(method: str, **parts: Any) -> Any:
    return st.tuples(st.just(method), st.fixed_dictionaries({"Bucket": buckets, **parts}))


calls = st.one_of(
    call("put_object", Key=keys, Body=st.binary(max_size=8)),
    call("get_object", Key=keys, Range=ranges),
    call(
        "copy_object",
        Key=keys,
        CopySource=st.fixed_dictionaries({"Bucket": buckets, "Key": keys}),
        MetadataDirective=st.sampled_from([None, "COPY", "REPLACE", "REPLACE"]),
    ),
)


@pytest.fixture(scope="module")
def moto() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        patch.setenv("AWS_ACCESS_KEY_ID", "any")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "any")
        yield boto3.client("s3", region_name="us-east-1")


@pytest.fixture(scope="module")
def ours(moto: Any) -> Any:
    return boto3.client("s3", region_name="us-east-1")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    above = tmp_path_factory.mktemp("buckets")
    return (above / str(number) for number in itertools.count())


@pytest.fixture(params=["memory", "folder"])
def compare(
    request: pytest.FixtureRequest, moto: Any, ours: Any, folders: Iterator[Path]
) -> Compare:
    return partial(_compare, moto, ours, folders, request.param)


_STEPS = st.lists(calls, min_size=5, max_size=25)


@pytest.mark.few(1)
@settings(max_examples=EXAMPLES, suppress_health_check=ONE_FIXTURE_FOR_ALL)
@given(steps=_STEPS)
@example(
    steps=[
        ("put_object", {"Bucket": BUCKET, "Key": "d01/1f3/a", "Body": b""}),
        ("get_object", {"Bucket": BUCKET, "Key": "d01/1f3/a", "Range": "bytes=0-0"}),
        ("get_object", {"Bucket": BUCKET, "Key": "d01/1f3/a", "Range": "bytes=-1"}),
    ]
)
def test_random_calls_do_the_same_on_both(compare: Compare, steps: Steps) -> None:
    compare(steps)


@pytest.mark.long
@settings(max_examples=LONG_EXAMPLES, suppress_health_check=ONE_FIXTURE_FOR_ALL)
@given(steps=_STEPS)
def test_many_random_calls_do_the_same_on_both(compare: Compare, steps: Steps) -> None:
    compare(steps)


def _compare(moto: Any, ours: Any, folders: Iterator[Path], kept: str, steps: Steps) -> None:
    folder = next(folders) if kept == "folder" else None
    detach = attach_bucket(Bucket(BUCKET, [], folder, now_ms=lambda: 1_800_000_000_000), ours)
    moto.create_bucket(Bucket=BUCKET)
    try:
        for method, request in steps:
            given_parts = {name: held for name, held in request.items() if held is not None}
            mine, theirs = outcome(ours, method, given_parts), outcome(moto, method, given_parts)
            assert mine == theirs, (method, request)
    finally:
        detach()
        for held in moto.list_objects_v2(Bucket=BUCKET).get("Contents", []):
            moto.delete_object(Bucket=BUCKET, Key=held["Key"])
        moto.delete_bucket(Bucket=BUCKET)


def outcome(client: Any, method: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """What a reader of objects sees of a call's answer, or of its error."""
    try:
        answer = getattr(client, method)(**request)
    except ClientError as error:
        told = error.response["Error"]
        return {
            "class": type(error).__name__,
            "status": error.response["ResponseMetadata"]["HTTPStatusCode"],
            **{name: told[name] for name in TOLD if name in told},
        }
    seen = {name: answer[name] for name in COMPARED if name in answer}
    seen["status"] = answer["ResponseMetadata"]["HTTPStatusCode"]
    if "Body" in answer:
        seen["body"] = answer["Body"].read()
    stated = answer.get("CopyObjectResult", answer)
    seen["has an ETag"] = stated["ETag"][0] + stated["ETag"][-1]
    if method != "put_object":
        assert stated["LastModified"].tzinfo is not None
    return seen


def test_the_same_content_has_the_same_etag_whoever_tells_it(moto: Any, ours: Any) -> None:
    attach_bucket(Bucket(BUCKET, [], None, now_ms=lambda: 0), ours)
    moto.create_bucket(Bucket=BUCKET)
    for client in (ours, moto):
        put = client.put_object(Bucket=BUCKET, Key="d01/a", Body=b"abc")["ETag"]
        copied = client.copy_object(
            Bucket=BUCKET, Key="d02/b", CopySource={"Bucket": BUCKET, "Key": "d01/a"}
        )["CopyObjectResult"]["ETag"]
        read = client.get_object(Bucket=BUCKET, Key="d02/b", Range="bytes=1-1")["ETag"]
        other = client.put_object(Bucket=BUCKET, Key="d01/c", Body=b"abd")["ETag"]
        assert put == copied == read != other
