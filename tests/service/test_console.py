"""Tests of the console over HTTP: sign-in, forms, headers, hostile requests and files."""

from __future__ import annotations

import asyncio
import csv
import hashlib
import html
import io
import re
import socket
import ssl
import weakref
from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import pytest

from checks.assets import ROOT, assets
from mintage.errors import StoreError
from mintage.server.config.keys import Caller, new_key
from mintage.server.console.pages import health
from mintage.server.console.shared import MOST_READINGS, MOST_RECORDS, Reads
from mintage.server.http.app import create_app
from tests.helpers import web
from tests.helpers.clocks import StandingClock
from tests.servers.server import until
from tests.service.here import here, run
from tests.service.running import Running, certificate, key_toml, running
from tests.service.wire import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OPS, USER = new_key(), new_key()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("open")) as found:
        yield found


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with with_keys(tmp_path_factory.mktemp("keys")) as found:
        yield found


@contextmanager
def with_keys(home: Path, *options: str) -> Iterator[Running]:
    toml = key_toml("ops", OPS, {"*": ["admin"]}) + key_toml("user", USER, {"orders": ["next"]})
    with running(home, *options, toml=toml) as found:
        yield found


def browser(service: Running, **how: Any) -> httpx.Client:
    """Return a client with the cookies of a browser."""
    return httpx.Client(base_url=service.url, timeout=60, headers={"Accept": "text/html"}, **how)


def token_in(answer: httpx.Response) -> str:
    """Return the token of the forms of a page."""
    found = re.search(r'name="token" value="([0-9a-f]+)"', answer.text)
    assert found, answer.text
    return found[1]


def sign_in(client: httpx.Client, key: str, **more: str) -> httpx.Response:
    token = token_in(client.get("/console/sign-in"))
    return client.post("/console/sign-in", data={"key": key, "next": "/console/", "token": token, **more})


def session_in(client: httpx.Client) -> tuple[str, str]:
    """Return the name and the value of the cookie of a key's session."""
    ((name, value),) = [each for each in client.cookies.items() if each[0].startswith("mintage_console_")]
    return name, value


def code_of(answer: httpx.Response) -> str:
    """Return the error code on a page."""
    found = re.search(r"<dt>Code</dt><dd><code>([\w.]+)</code>", answer.text)
    assert found, answer.text
    return found[1]


# --- frame --------------------------------------------------------------------------------------------------------


def test_page_allows_nothing_from_elsewhere_and_nothing_inline(service: Running) -> None:
    with browser(service) as client:
        for path in ("/console/", "/console/nothing", "/console/static/console.css"):
            answer = client.get(path)
            policy = answer.headers["content-security-policy"]
            assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
        page = client.get("/console/").text
        assert not re.search(r"<style|<script>| style=| on\w+=", page)


def test_page_of_a_fault_has_the_headers_of_all_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with here() as at:
            monkeypatch.delattr(health, "workers")
            transport = httpx.ASGITransport(create_app(at.service), client=("127.0.0.1", 1))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                answer = await client.get("/console/")
        assert (answer.status_code, code_of(answer)) == (500, "service.failed")
        assert answer.headers["content-security-policy"].startswith("default-src 'none';")

    run(main)


def test_assets_are_those_that_the_list_names() -> None:
    for each in assets():
        assert hashlib.sha256((ROOT / each.target).read_bytes()).hexdigest() == each.sha256, each.target


def test_method_that_a_page_does_not_have_is_told_the_others(service: Running) -> None:
    for path, allowed in (("", {"GET"}), ("sign-in", {"GET", "POST"}), ("pools/a/1/revoke", {"GET", "POST"})):
        answer = web.put(f"{service.url}/console/{path}")
        assert answer.status_code == 405
        assert set(answer.headers["allow"].split(", ")) - {"HEAD", "OPTIONS"} == allowed
    assert "OPTIONS" not in answer.headers["allow"]
    assert web.post(f"{service.url}/console").status_code == 405
    assert web.request("OPTIONS", f"{service.url}/console").headers["allow"] == "GET, HEAD, OPTIONS"


def test_root_answers_other_clients_as_without_the_console(service: Running) -> None:
    with httpx.Client(base_url=service.url, timeout=60) as client:
        assert client.get("/").status_code == 200
        assert client.get("/", headers={"Accept": "text/html"}).headers["location"] == "/console/"


def test_console_off_leaves_nothing_at_its_paths(tmp_path: Path) -> None:
    with running(tmp_path, "--console", "off") as service, browser(service) as client:
        assert client.get("/").status_code == 200
        for path in ("/console", "/console/", "/console/static/console.css"):
            assert client.get(path).json()["code"] == "request.path"


# --- sign-in ------------------------------------------------------------------------------------------------------


def test_page_leads_to_the_sign_in_and_back(keyed: Running) -> None:
    with browser(keyed) as client:
        answer = client.get("/console/?workers.sort=-pid")
        assert client.head("/console/").status_code == answer.status_code == 303
        assert answer.headers["location"] == "/console/sign-in?next=%2Fconsole%2F%3Fworkers.sort%3D-pid"
        page = client.get(answer.headers["location"])
        goal = html.unescape(re.findall(r'name="next" value="([^"]*)"', page.text)[0])
        answer = sign_in(client, OPS, next=goal)
        assert (answer.status_code, answer.headers["location"]) == (303, "/console/?workers.sort=-pid")
        assert client.get(answer.headers["location"]).status_code == 200


@pytest.mark.parametrize(
    "goal", ["https://evil.example/", "//evil.example", "/v1/store", "/console/\r\nX: 1", "x" * 4096]
)
def test_sign_in_leads_to_no_other_place(keyed: Running, goal: str) -> None:
    with browser(keyed) as client:
        assert sign_in(client, OPS, next=goal).headers["location"] == "/console/"


def test_cookie_of_a_session_is_for_the_console_alone(keyed: Running) -> None:
    with browser(keyed) as client:
        cookie = sign_in(client, OPS).headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Path=/console"} <= set(cookie.split("; "))
        assert OPS not in cookie
        assert "Secure" not in cookie
        token = token_in(client.get("/console/sign-in"))
        form = {"key": OPS, "next": "/console/", "token": token}
        answer = client.post("/console/sign-in", data=form, headers={"X-Forwarded-Proto": "https, http"})
        assert "; Secure" in answer.headers["set-cookie"]


def test_services_behind_two_tunnels_have_cookies_of_their_own(keyed: Running) -> None:
    names = set()
    for host in ("127.0.0.1:8081", "127.0.0.1:8082", "[::1]:8083", "[::1]", "ids.example"):
        with browser(keyed) as client:
            client.headers["Host"] = host
            names.add(sign_in(client, OPS).headers["set-cookie"].partition("=")[0])
    assert names == {f"mintage_console_{port}" for port in (8081, 8082, 8083, keyed.http[1])}


def test_cookie_over_tls_is_secure(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, "console")
    with with_keys(tmp_path / "tls", "--tls-cert", cert, "--tls-key", key) as service:
        url = service.url.replace("http:", "https:")
        with httpx.Client(base_url=url, timeout=60, verify=ssl.create_default_context(cafile=cert)) as client:
            assert "; Secure" in sign_in(client, OPS).headers["set-cookie"]
            assert client.get("/console/").status_code == 200


def test_session_is_worth_nothing_after_the_sign_out(keyed: Running) -> None:
    with browser(keyed) as client, browser(keyed) as copy:
        sign_in(client, OPS)
        copy.cookies.update(client.cookies)
        page = client.get("/console/")
        assert page.status_code == copy.get("/console/").status_code == 200
        client.post("/console/sign-out", data={"token": token_in(page)})
        assert copy.get("/console/").status_code == 303


def test_wrong_and_malformed_keys_sign_nobody_in(keyed: Running) -> None:
    with browser(keyed) as client:
        for key in ("", "mint_nobody", "x" * 4000, "\u202e", OPS[:-1]):
            answer = sign_in(client, key)
            assert answer.status_code in {401, 429}
            assert OPS[:-1] not in answer.text
            assert client.get("/console/").status_code == 303


def test_right_key_signs_in_after_any_number_of_wrong_ones(keyed: Running) -> None:
    with browser(keyed) as client:
        form = {"key": "mint_nobody", "next": "/console/", "token": token_in(client.get("/console/sign-in"))}
        until(lambda: client.post("/console/sign-in", data=form).status_code == 429, "there are too many wrong keys")
        assert sign_in(client, OPS).status_code == 303


def test_request_of_a_slow_key_counts_once_and_so_does_its_sign_in(tmp_path: Path) -> None:
    slow = new_key()
    toml = key_toml("slow", slow, {"*": ["admin"]}, "rate = 1\nburst = 2")
    with running(tmp_path, toml=toml) as service, browser(service) as client:
        answer = client.get("/console/create/pool?name=nodes&layout=sno", headers={"Authorization": f"Bearer {slow}"})
        assert answer.status_code == 200
        assert {sign_in(client, slow).status_code for _ in range(10)} == {303, 429}


def test_sign_in_ends_the_session_before_it(keyed: Running) -> None:
    with browser(keyed) as client, browser(keyed) as copy:
        sign_in(client, OPS)
        copy.cookies.update(client.cookies)
        assert copy.get("/console/").status_code == 200
        assert sign_in(client, OPS).status_code == 303
        assert client.get("/console/").status_code == 200
        assert copy.get("/console/").status_code == 303


def test_nobody_signs_in_to_a_service_without_keys(service: Running) -> None:
    with browser(service) as client:
        token = token_in(client.get("/console/create/namespace?name=orders"))
        for headers in ({}, {"Via": "1.1 proxy"}):
            form = {"key": OPS, "next": "/console/", "token": token}
            answer = client.post("/console/sign-in", data=form, headers=headers)
            assert (answer.status_code, code_of(answer)) == (403, "request.rights")


def test_page_needs_the_right_of_the_verb(keyed: Running) -> None:
    with browser(keyed) as client:
        sign_in(client, USER)
        answer = client.get("/console/")
        assert (answer.status_code, code_of(answer)) == (403, "request.rights")
        assert "&#39;describe&#39;" in answer.text


def test_page_that_a_key_may_not_read_leads_to_the_others(keyed: Running) -> None:
    with browser(keyed) as client:
        assert "/console/choose" not in client.get("/console/nothing").text
        sign_in(client, USER)
        page = client.get("/console/")
        assert page.status_code == 403
        for path in ("/console/who", "/console/choose"):
            assert f'<a href="{path}">' in page.text
            assert client.get(path).status_code == 200


def test_error_leads_to_the_other_pages_without_keys_too(service: Running) -> None:
    page = web.get(f"{service.url}/console/pools/nosuch")
    assert (page.status_code, '<a href="/console/events">' in page.text) == (404, True)
    page = web.get(f"{service.url}/console/pools/nosuch", headers={"Via": "1.1 proxy"})
    assert (page.status_code, '<a href="/console/events">' in page.text) == (403, False)


def test_altered_cookie_is_no_session(keyed: Running) -> None:
    with browser(keyed) as client:
        sign_in(client, USER)
        (name, value) = session_in(client)
        body, _, signature = value.partition(".")
        for forged in (
            "",
            ".",
            "a.b",
            f"{body}.",
            f"{body}.{signature[::-1]}",
            f"{body[:-2]}AA.{signature}",
            "\xff.\xff",
        ):
            headers = [(b"Cookie", f"{name}={forged}".encode("latin-1"))]
            assert web.get(f"{keyed.url}/console/", headers=headers).status_code == 303


def test_token_of_a_form_is_no_signature_of_a_cookie(keyed: Running) -> None:
    with browser(keyed) as client:
        token = token_in(client.get("/console/sign-in"))
        ((_, value),) = client.cookies.items()
        sign_in(client, OPS)
        name, _ = session_in(client)
    session_id = urlsafe_b64decode(value.partition(".")[0] + "==").decode().split(" ")[0]
    for text in (f"token {session_id}", session_id, f"{session_id} 1 ops"):
        cookie = f"{name}={urlsafe_b64encode(text.encode()).decode().rstrip('=')}.{token}"
        assert web.get(f"{keyed.url}/console/", headers={"Cookie": cookie}).status_code == 303


def test_client_that_leaves_within_a_form_is_no_fault(tmp_path: Path) -> None:
    with with_keys(tmp_path) as service:
        to = urlsplit(service.url)
        with socket.create_connection((to.hostname, to.port)) as left:
            left.sendall(b"POST /console/sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nab")
        headers = {"Authorization": f"Bearer {OPS}"}
        codes: set[str] = set()
        while not codes:
            answer = web.get(f"{service.url}/console/events?format=json&table=refusals", headers=headers)
            codes = {each["code"] for each in answer.json()}
        assert codes == {"request.malformed"}


def test_key_in_a_header_reads_without_a_session(keyed: Running) -> None:
    headers = {"Authorization": f"Bearer {OPS}"}
    answer = web.get(f"{keyed.url}/console/?format=json", headers=headers)
    assert [list(each) for each in answer.json()] == [["pid", "started"]]
    answer = web.get(f"{keyed.url}/console/?format=json")
    assert (answer.status_code, answer.json()["code"]) == (401, "request.key")


# --- other sites --------------------------------------------------------------------------------------------------


def test_form_without_the_token_of_its_session_is_refused(keyed: Running) -> None:
    with browser(keyed) as client, browser(keyed) as other:
        sign_in(client, OPS)
        for token in ("", "0" * 64, "\u202e", token_in(other.get("/console/sign-in"))):
            answer = client.post("/console/sign-out", data={"token": token})
            assert (answer.status_code, code_of(answer)) == (403, "request.rights")
            # To reload the answer would send the same form again.
            assert "open its page again" in answer.text
        assert client.get("/console/").status_code == 200


def test_form_of_a_page_of_another_site_is_refused(keyed: Running) -> None:
    with browser(keyed) as client:
        sign_in(client, OPS)
        data = {"token": token_in(client.get("/console/"))}
        for site in ("cross-site", "same-site"):
            assert client.post("/console/sign-out", data=data, headers={"Sec-Fetch-Site": site}).status_code == 403


@pytest.mark.parametrize("options", [(), ("--insecure",)], ids=["loopback", "insecure"])
def test_without_keys_pages_of_other_sites_get_nothing(tmp_path: Path, options: tuple[str, ...]) -> None:
    with running(tmp_path, *options) as service, browser(service) as client:
        assert client.get("/console/").status_code == 200
        for headers in (
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Host": "evil.example"},
            {"Forwarded": "for=192.0.2.7"},
            {"X-Forwarded-For": "192.0.2.7"},
            {"X-Forwarded-Proto": "https"},
            {"X-Real-IP": "192.0.2.7"},
            {"Via": "1.1 proxy"},
            {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
            {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
            {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
        ):
            answer = client.get("/console/", headers=headers)
            assert answer.status_code == 403, headers
            assert "Processes" not in answer.text


def test_without_keys_a_link_of_another_site_opens_a_page(service: Running) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert web.get(f"{service.url}/console/", headers=headers).status_code == 200


def test_sign_in_without_the_cookie_of_a_key_leaves_its_session(keyed: Running) -> None:
    # Over plain HTTP a link of another site leads here: without that cookie, and with no word of the browser of it.
    with browser(keyed) as client, browser(keyed) as linked:
        sign_in(client, OPS)
        linked.get("/console/", follow_redirects=True)
        client.cookies.update(linked.cookies)
        assert client.get("/console/").status_code == 200
        assert sign_in(client, OPS).status_code == 303


def test_link_from_another_site_finds_the_session(keyed: Running) -> None:
    with browser(keyed) as client:
        sign_in(client, OPS)
        # The browser keeps the cookie back from the first request.
        answer = web.get(f"{keyed.url}/console/", headers={"Sec-Fetch-Site": "cross-site"})
        assert (answer.status_code, 'http-equiv="refresh"' in answer.text) == (200, True)
        assert client.get("/console/", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200


# --- hostile parameters -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "workers.sort=nothing",
        "workers.sort=--pid",
        "workers.page=0",
        "workers.page=1e3",
        "workers.page=99999999999999999999999999",
        "workers.size=1001",
        "workers.page=%D9%A1",
        "workers.q=%00",
        "workers.q=%ff",
        "workers.q=" + "a" * 4097,
        "workers.q=a&workers.q=b",
        "format=xml",
        "table=nothing",
        "<script>=1",
        "&".join(f"a{at}=1" for at in range(40)),
    ],
)
def test_malformed_parameter_is_one_clear_error(service: Running, query: str) -> None:
    answer = web.get(f"{service.url}/console/?{query}")
    assert answer.status_code == 400
    assert "request.malformed" in answer.text
    assert "<script>=" not in answer.text


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/who?id=no+such+id&format=json", "parse.unknown"),
        ("/who?format=csv", "request.malformed"),
        ("/create/pool?format=json", "request.malformed"),
    ],
)
def test_file_that_a_page_does_not_have_is_an_error(service: Running, path: str, code: str) -> None:
    answer = web.get(f"{service.url}/console{path}")
    assert (answer.status_code, answer.json()["code"]) == (400, code)


def test_fields_of_an_id_are_a_file_without_the_right_to_its_holder(keyed: Running) -> None:
    headers = {"Authorization": f"Bearer {USER}"}
    url = f"{keyed.url}/console/who?id=01ARZ3NDEKTSV4RRFFQ69G5FAV&format=json"
    assert web.get(url, headers=headers).status_code == 403
    assert web.get(f"{url}&table=fields1", headers=headers).json()[0]["field"] == "time"


def test_error_of_a_page_that_is_asked_for_by_name_is_a_page(service: Running) -> None:
    answer = web.get(f"{service.url}/console/events?format=html&since=x")
    assert (answer.status_code, code_of(answer)) == (400, "request.malformed")


@pytest.mark.parametrize(
    "path",
    [
        "<script>alert(1)</script>",
        "%22%27%20onload=x",
        "%E2%80%AE%00",
        "a%0d%0ab",
        "x" * 4096,
        "../v1/store",
        "{{7*7}}",
    ],
)
def test_hostile_path_is_text_on_its_page(service: Running, path: str) -> None:
    answer = web.get(f"{service.url}/console/static/{path}", headers={"X-Trace-Id": "<script>"})
    assert answer.status_code == 404
    assert ("request.path" in answer.text, "<script>" in answer.text) == (True, False)
    assert not set("\u202e\x00\r") & set(answer.text)


def test_table_is_sorted_and_searched_by_the_url(service: Running) -> None:
    answer = web.get(f"{service.url}/console/?workers.sort=-pid&workers.q=<b>%E2%80%AE")
    assert answer.status_code == 200
    assert 'aria-sort="descending"' in answer.text
    assert "<b>" not in answer.text
    rows = list(csv.reader(io.StringIO(web.get(f"{service.url}/console/?format=csv").text)))
    assert rows[0] == ["pid", "started"]


def test_browser_keeps_a_file_under_its_own_url_only(service: Running) -> None:
    page = web.get(f"{service.url}/console/").text
    for url in re.findall(r'"(/console/static/[^"]+)"', page):
        assert "immutable" in web.get(service.url + url).headers["Cache-Control"]
        # A balancer may send a browser that has the page of a newer version to an older one for its files.
        for other in (f"{url[:-12]}0123456789ab", url.partition("?")[0], f"{url}&x=1"):
            answer = web.get(service.url + other)
            assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store"), other


# --- events -------------------------------------------------------------------------------------------------------


def test_change_is_an_event_with_its_key_and_trace_id(keyed: Running) -> None:
    headers = {"Authorization": f"Bearer {OPS}"}
    body = {"layout": "sno/1"}
    web.put(f"{keyed.url}/v1/pools/changed", json=body, headers={**headers, "X-Trace-Id": "incident-7"})
    answer = web.get(f"{keyed.url}/console/events?format=json&trace=incident-7", headers=headers)
    (event,) = answer.json()
    assert (event["kind"], event["actor"], event["trace_id"]) == ("changed", "ops", "incident-7")
    assert "/v1/pools/changed" in event["text"]
    page = web.get(f"{keyed.url}/console/events?trace=incident-7", headers=headers).text
    assert '<a href="/console/events?trace=incident-7">' in page


def test_refusal_of_a_lease_is_an_event_with_the_trace_id(keyed: Running) -> None:
    headers = {"Authorization": f"Bearer {OPS}", "Lease-Token": "none", "X-Trace-Id": "lost-1"}
    web.delete(f"{keyed.url}/v1/leases/sno/7?used_until_ms=0", headers=headers)
    answer = web.get(f"{keyed.url}/console/events?format=json&kind=lease+lost", headers=headers)
    assert [each["trace_id"] for each in answer.json()] == ["lost-1"]


def test_refusals_are_counted_by_code(tmp_path: Path) -> None:
    with running(tmp_path) as service:
        for _ in range(3):
            web.get(f"{service.url}/v1/nothing")
        answer = web.get(f"{service.url}/console/events?format=json&table=refusals")
        assert [(each["code"], each["count"]) for each in answer.json()] == [("request.path", 3)]


def test_key_without_the_metrics_sees_nothing_of_other_keys(tmp_path: Path) -> None:
    keys = {name: new_key() for name in ("reader", "watcher", "ops")}
    rights = {"reader": ["describe"], "watcher": ["describe", "metrics"], "ops": ["admin"]}
    toml = "".join(key_toml(name, key, {"*": rights[name]}) for name, key in keys.items())
    with running(tmp_path, toml=toml) as service, browser(service) as client:

        def read(name: str, query: str) -> list[dict[str, Any]]:
            headers = {"Authorization": f"Bearer {keys[name]}"}
            found: list[dict[str, Any]] = web.get(
                f"{service.url}/console/events?format=json&{query}", headers=headers
            ).json()
            return found

        sign_in(client, keys["ops"])
        web.put(f"{service.url}/v1/sequences/orders", headers={"Authorization": f"Bearer {keys['ops']}"})
        assert {each["actor"] for each in read("watcher", "kind=changed")} == {"ops"}
        assert {each["kind"] for each in read("watcher", "actor=ops")} == {"changed", "signed in"}
        assert read("reader", "actor=ops") == read("reader", "kind=signed+in") == []
        (changed,) = read("reader", "kind=changed")
        assert (changed["actor"], changed["text"]) == (None, "method: PUT, path: /v1/sequences/orders")
        answer = web.get(
            f"{service.url}/console/events?format=json&table=refusals",
            headers={"Authorization": f"Bearer {keys['reader']}"},
        )
        assert answer.json()["code"] == "request.malformed"


@pytest.mark.parametrize("query", ["since=yesterday", "until=9999-99-99", "kind=a&kind=b"])
def test_malformed_filter_of_events_is_refused(service: Running, query: str) -> None:
    assert web.get(f"{service.url}/console/events?{query}").status_code == 400


def test_events_are_filtered_by_time(service: Running) -> None:
    for query, is_empty in (("since=2020-01-01T00:00", False), ("since=2999-01-01T00:00Z", True)):
        answer = web.get(f"{service.url}/console/events?format=json&{query}")
        assert (answer.json() == []) == is_empty


def test_all_viewers_learn_when_the_buffers_are_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with here() as at:
            monkeypatch.setattr(at.service.probe, "failure", StoreError("away", code="store.unavailable"))
            transport = httpx.ASGITransport(create_app(at.service), client=("127.0.0.1", 1))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                assert (await client.post("/v1/sequences/orders:next")).status_code == 200
                at.service.gather()
                for _ in range(3):
                    assert "empty first:\n<code>orders</code>" in (await client.get("/console/")).text

    run(main)


# --- reads --------------------------------------------------------------------------------------------------------


class Counting:
    """A verb of a store that counts its calls, and may be away."""

    __name__ = "counting"

    def __init__(self) -> None:
        self.calls = 0
        self.failure: Exception | None = None

    def __call__(self) -> int:
        self.calls += 1
        if self.failure is not None:
            raise self.failure
        return self.calls


def test_viewers_share_one_read_in_five_seconds() -> None:
    async def main() -> None:
        async with here() as at:
            clock, verb = StandingClock(), Counting()
            reads = Reads(at.service, clock)
            for now_s, calls in ((0, 1), (4.9, 1), (5, 2)):
                clock.now_s = now_s
                found = await asyncio.gather(*(reads.read(verb) for _ in range(50)))
                assert (set(found), verb.calls) == ({(calls, None)}, calls)

    run(main)


def test_lost_store_leaves_what_was_read_with_its_age() -> None:
    async def main() -> None:
        async with here() as at:
            clock, verb = StandingClock(), Counting()
            reads = Reads(at.service, clock)
            assert await reads.read(verb) == (1, None)
            verb.failure = StoreError("away", code="store.unavailable")
            clock.now_s = 60
            assert await reads.read(verb) == (1, 60)
            clock.now_s = 601
            with pytest.raises(StoreError, match="away"):
                await reads.read(verb)
            verb.failure = None
            clock.now_s = 606
            assert (await reads.read(verb))[1] is None

    run(main)


def test_read_of_the_console_may_last_longer_than_a_request() -> None:
    def read_slowly() -> str:
        assert is_late.wait(PATIENCE_S)
        return "read"

    async def main() -> None:
        async with here("--max-wait-ms", "1") as at:
            reading = asyncio.ensure_future(Reads(at.service).read(read_slowly))
            for _ in range(2):  # the second one begins after the read
                with pytest.raises(StoreError, match="max_wait_ms"):
                    await at.service.ask(Caller.anybody(), "describe", "", is_late.wait, PATIENCE_S)
            is_late.set()
            assert await reading == ("read", None)

    is_late = Event()
    run(main)


def test_answer_that_was_forgotten_under_way_reaches_all_who_wait() -> None:
    def read_slowly() -> str:
        assert may_end.wait(PATIENCE_S)
        return "read"

    async def main() -> None:
        async with here() as at:
            reads, verb = Reads(at.service), Counting()
            first = asyncio.ensure_future(reads.read(read_slowly))
            await asyncio.sleep(0)
            for each in range(MOST_READINGS):
                await reads.read(echo, each)
            second = asyncio.ensure_future(reads.read(read_slowly))
            await reads.read(verb)
            may_end.set()
            assert set(await asyncio.gather(first, second)) == {("read", None)}

    may_end = Event()
    run(main)


def test_answers_that_are_kept_have_a_bounded_number_of_records() -> None:
    calls: list[int] = []

    def read_many(which: int) -> tuple[str, list[int]]:
        calls.append(which)
        return "pool", [0] * (MOST_RECORDS // 3)

    async def main() -> None:
        async with here() as at:
            reads = Reads(at.service)
            for which in (1, 2, 3, 1, 2, 3):
                await reads.read(read_many, which)
            assert calls == [1, 2, 3, 1, 2, 3]
            await reads.read(read_many, 3)
            await reads.read(read_many, 2)
            assert calls == [1, 2, 3, 1, 2, 3]

    run(main)


def test_forgotten_answers_leave_nothing_in_memory() -> None:
    class Argument:
        """An object that a weak reference can name."""

    async def main() -> None:
        async with here() as at:
            reads, argument = Reads(at.service), Argument()
            kept = weakref.ref(argument)
            await reads.read(len_of_repr, argument)
            del argument
            for each in range(MOST_READINGS):
                await reads.read(echo, each)
            assert kept() is None

    run(main)


@pytest.mark.parametrize("page", ["pools/{}", "pools/{}?node=5", "pools/{}/5", "namespaces/{}"])
def test_names_that_no_store_has_are_not_read(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with (
            here() as at,
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{at.ports['http']}", timeout=PATIENCE_S) as client,
        ):
            answer = await client.get(f"/console/{page.format('a' * 129)}")
            assert (answer.status_code, code_of(answer)) == (400, "config.name")

    monkeypatch.setattr(Reads, "read", None)
    run(main)


def len_of_repr(value: object) -> int:
    return len(repr(value))


def echo(value: int) -> int:
    return value


@pytest.mark.parametrize("word", ["anything", "retire"])
def test_address_of_a_page_after_an_action_reads_no_more(service: Running, word: str) -> None:
    def reads() -> int:
        text = web.get(f"{service.url}/metrics").text
        found = re.search(r'mintage_store_seconds_count\{verb="list_pools"\} (\d+)', text)
        return int(found[1]) if found else 0

    before = reads()
    for _ in range(20):
        assert web.get(f"{service.url}/console/pools?done={word}").status_code == 200
    assert reads() - before < 20


# --- several workers, and restarts ------------------------------------------------------------------------------


def test_workers_share_sessions_and_a_restart_ends_them(tmp_path: Path) -> None:
    with with_keys(tmp_path, "--workers", "2") as service:
        with browser(service) as client:
            sign_in(client, OPS)
            cookies = dict(client.cookies)
        pids: set[str] = set()
        while len(pids) < 2:  # each connection may reach another worker
            with browser(service, cookies=cookies) as client:
                page = client.get("/console/")
                assert page.status_code == 200
                pids |= set(re.findall(r"process (\d+)</span>", page.text))
        with browser(service, cookies=cookies) as client:
            client.post("/console/sign-out", data={"token": token_in(page)})
        for _ in range(10):
            with browser(service, cookies=cookies) as client:
                assert client.get("/console/").status_code == 303
        with browser(service) as client:
            sign_in(client, OPS)
            cookies = dict(client.cookies)
        service.serving.stop()
        service.serving.wait()
        service.serving.start()
        with browser(service, cookies=cookies) as client:
            assert client.get("/console/").status_code == 303
