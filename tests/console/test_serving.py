"""The function that serves pages: its files, with headers for browsers, and no other files."""

from __future__ import annotations

import base64
import gzip
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest

from cirrusmq_lambda.pages import find, serve
from cirrusmq_local.testing import World


def get(folder: Path, path: str, **headers: str) -> dict[str, Any]:
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    event = {"rawPath": path, "headers": told, "requestContext": {"requestId": "r1"}}
    return serve(folder, event)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of pages, with what must not be served in it and beside it."""
    made = (tmp_path / "pages").resolve()
    (made / "console/deeper").mkdir(parents=True)
    (made / "index.html").write_text("home")
    (made / "app.py").write_text("code")
    (made / "console/index.html").write_text("console")
    (made / "console/app.js").write_text("export const one = 1;")
    (made / "console/.hidden.js").write_text("hidden")
    (tmp_path / "secret.txt").write_text("secret")
    (made / "console/link.txt").symlink_to(tmp_path / "secret.txt")
    (made / "outside").symlink_to(tmp_path, target_is_directory=True)
    return made


@pytest.mark.parametrize(
    ("path", "media", "body"),
    [
        ("/", "text/html; charset=utf-8", b"home"),
        ("/console/index.html", "text/html; charset=utf-8", b"console"),
        ("/console/app.js", "text/javascript; charset=utf-8", b"export const one = 1;"),
    ],
)
def test_a_file_is_served_with_its_type_and_a_policy(
    folder: Path, path: str, media: str, body: bytes
) -> None:
    answer = get(folder, path)
    headers = answer["headers"]
    assert (answer["statusCode"], headers["Content-Type"]) == (200, media)
    assert base64.b64decode(answer["body"]) == body
    assert headers["X-Content-Type-Options"] == "nosniff"
    policy = dict(
        each.strip().split(" ", 1) for each in headers["Content-Security-Policy"].split(";")
    )
    assert policy == {
        "default-src": "'none'", "script-src": "'self'", "style-src": "'self'",
        "connect-src": "'self'", "img-src": "'self' data:", "frame-ancestors": "'none'",
        "base-uri": "'none'", "form-action": "'none'",
    }  # fmt: skip


def test_a_folder_leads_to_its_page(folder: Path) -> None:
    answer = get(folder, "/console")
    assert (answer["statusCode"], answer["headers"]["Location"]) == (308, "console/index.html")
    assert get(folder, "/console/deeper")["statusCode"] == 404


def test_an_unchanged_file_is_not_sent_to_the_browser_again(folder: Path) -> None:
    first = get(folder, "/console/app.js")
    tag = first["headers"]["ETag"]
    assert first["headers"]["Cache-Control"] == "no-cache"
    again = get(folder, "/console/app.js", if_none_match=f'"other", {tag}')
    assert (again["statusCode"], again["headers"]["ETag"], again.get("body")) == (304, tag, None)
    (folder / "console/app.js").write_text("export const one = 2;")
    assert get(folder, "/console/app.js", if_none_match=tag)["statusCode"] == 200


def test_it_is_gzipped_only_if_accepted(folder: Path) -> None:
    packed = get(folder, "/console/app.js", accept_encoding="br, gzip")
    assert packed["headers"]["Content-Encoding"] == "gzip"
    assert gzip.decompress(base64.b64decode(packed["body"])) == b"export const one = 1;"
    plain = get(folder, "/console/app.js", accept_encoding="gzip;q=0")
    assert "Content-Encoding" not in plain["headers"]


def test_llms_txt_leads_to_the_manuals(folder: Path) -> None:
    (folder / "docs").mkdir()
    (folder / "docs/llms.txt").write_text("- [Queues](queues.md): sends")
    (folder / "docs/queues.md").write_text("# Queues")
    answer = get(folder, "/llms.txt")
    assert answer["statusCode"] == 308
    led_to = urljoin("https://host/stage/llms.txt", answer["headers"]["Location"])
    assert led_to == "https://host/stage/docs/llms.txt"
    page = get(folder, "/docs/queues.md")
    assert page["headers"]["Content-Type"] == "text/markdown; charset=utf-8"
    assert base64.b64decode(page["body"]) == b"# Queues"


@pytest.mark.parametrize(
    "path",
    [
        "app.py", "console/../app.py", "../secret.txt", "console/../../secret.txt", "..",
        "console/%2e%2e/app.js", "console/%2e%2e%2fapp.js", "console\\..\\index.html",
        "console//app.js", "/etc/passwd", "//etc/passwd", "console/\x00", "console/app.js\x00",
        "console/app.js/", "console/.hidden.js", "console/link.txt", "outside/secret.txt",
        "outside/pages/index.html", "console/deeper/", "console/none.js", "console/ app.js",
        "x" * 5_000, "x/" * 4_000 + "x", "console/" * 500, "~", ".", "console/.",
    ],
)  # fmt: skip
def test_no_other_file_is_found(folder: Path, path: str) -> None:
    assert find(folder, path) is None
    assert get(folder, f"/{path}")["statusCode"] == 404


def test_an_unbuilt_manual_says_how_to_build_it(folder: Path) -> None:
    assert "make site" in get(folder, "/docs/index.html")["body"]
    (folder / "docs").mkdir()
    assert "There is no such page." in get(folder, "/docs/none.html")["body"]


def test_pages_are_for_anybody_and_are_read_alone() -> None:
    world = World()
    for path in ("/", "/console/index.html", "/console/app.js", "/console/pages/queue.js"):
        assert world.call("GET", path, b"", {}).status == 200
    for path in ("/console", "/console/", "/docs/"):
        moved = world.call("GET", path, b"", {})
        assert (moved.status, urljoin(path, moved.headers["Location"])) == (
            308,
            f"/{path.strip('/')}/index.html",
        )
    assert world.call("GET", "/console/%2e%2e/app.py", b"", {}).status == 404
    refused = world.call("POST", "/console/app.js", b"", {})
    assert (refused.status, refused.code) == (404, "NotFound")
