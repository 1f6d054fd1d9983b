"""A visitor of the console without JavaScript: it signs in, follows links, and fills in forms."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING, Self

import httpx

if TYPE_CHECKING:
    from types import TracebackType


class Form:
    """A form of a page: where it goes, and its fields."""

    def __init__(self, method: str, action: str) -> None:
        self.method = method
        self.action = action
        self.fields: dict[str, str] = {}


class _Forms(HTMLParser):
    """The forms and the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.words: list[str] = []
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(Form(found.get("method", "get"), found.get("action", "")))
        elif tag == "input" and self.forms and "name" in found:
            self.forms[-1].fields[found["name"]] = found.get("value", "")
        elif tag == "select":
            self._select = found.get("name", "")
        elif tag == "option" and self._select and "selected" in found:
            self.forms[-1].fields[self._select] = found.get("value", "")

    def handle_data(self, data: str) -> None:
        self.words.append(data)


class Page:
    """An answer of the console."""

    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self.path = response.url.path
        self.html = response.text
        self.json = response.json if "json" in response.headers.get("content-type", "") else None
        parser = _Forms()
        parser.feed(response.text)
        self.forms = parser.forms
        self.text = " ".join(" ".join(parser.words).split())

    def form(self, field: str) -> Form:
        """Return the form with this field."""
        [found] = [each for each in self.forms if field in each.fields]
        return found


class Visitor:
    """A browser without JavaScript."""

    def __init__(self, url: str, key: str = "") -> None:
        self.http = httpx.Client(base_url=url, follow_redirects=True, timeout=60)
        if key:
            form = self.get("/sign-in").form("key")
            assert self.send(form, key=key).path == "/console/"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.http.close()

    def get(self, path: str, **query: str) -> Page:
        """Return the page at a path below ``/console``."""
        return Page(self.http.get(f"/console{path}", params=query or None))

    def send(self, form: Form, /, *, site: str = "same-origin", **fields: str) -> Page:
        """Send a form with some fields changed; ``site`` is how the browser says where its page is from."""
        values = {**form.fields, **fields}
        headers = {"Sec-Fetch-Site": site}
        if form.method == "get":
            return Page(self.http.get(form.action, params=values, headers=headers))
        return Page(self.http.post(form.action, data=values, headers=headers))
