"""A kube-apiserver on an etcd, with the namespace, the account and the Role that programs need."""

from __future__ import annotations

import json
import os
import ssl
import threading
from contextlib import contextmanager
from http.client import HTTPException, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.error import HTTPError
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

from ruamel.yaml import YAML

from tests.servers.etcd import Etcd
from tests.servers.server import ANSWER_S, HOST, START_S, Daemon, Group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

NAMESPACE: Final = "ids"
ADMIN: Final = "the-token-of-the-administrator"
MANIFESTS: Final = Path(__file__).parents[2] / "deploy" / "kubernetes" / "store"
Answer = tuple[int, dict[str, str], bytes]
"""Status, headers, body."""
LEASES: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"


class ApiServer(Daemon):
    """A ``kube-apiserver``. Those of one cluster share an etcd, and the key that they sign tokens with."""

    name = "kube-apiserver"
    programs = ("kube-apiserver", "etcd", "openssl")

    def __init__(self, directory: Path, etcd: Etcd, signs_like: ApiServer | None = None) -> None:
        super().__init__(directory)
        self._etcd = etcd
        self._signer = signs_like or self

    def create(self) -> None:
        (self.directory / "tokens.csv").write_text(f'{ADMIN},admin,1,"system:masters"\n', encoding="ascii")

    def command(self) -> list[str]:
        tls, signing = self.certified(), self._signer.certified()
        return [
            "kube-apiserver",
            f"--etcd-servers=http://{HOST}:{self._etcd.port}",
            f"--secure-port={self.port}",
            f"--bind-address={HOST}",
            "--endpoint-reconciler-type=none",
            f"--tls-cert-file={tls.certificate}",
            f"--tls-private-key-file={tls.key}",
            f"--client-ca-file={tls.authority}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={signing.certificate}",
            f"--service-account-signing-key-file={signing.key}",
            f"--token-auth-file={self.directory / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
        ]

    @property
    def url(self) -> str:
        return self.url_through(self.port)

    def url_through(self, port: int, namespace: str = NAMESPACE) -> str:
        """Return the URL of the store at a port that leads here, as that of a context of the tests' kubeconfig."""
        return f"kubernetes://port-{port}/{namespace}"

    def add_context(self, path: Path, token: Path, port: int | None = None) -> None:
        """Add a context for a port that leads here to a kubeconfig."""
        name = f"port-{port or self.port}"
        config = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        for kind, value in {
            "cluster": {
                "server": f"https://{HOST}:{port or self.port}",
                "certificate-authority": str(self.certified().authority),
            },
            "user": {"tokenFile": str(token)},
            "context": {"cluster": name, "user": name, "namespace": NAMESPACE},
        }.items():
            config.setdefault(f"{kind}s", []).append({"name": name, kind: value})
        # JSON is YAML. Processes may read the file at any time.
        path.with_suffix(".new").write_text(json.dumps(config), encoding="utf-8")
        path.with_suffix(".new").replace(path)

    def answers(self) -> bool:
        try:
            return self.request("GET", "/readyz", seconds=ANSWER_S)[0] == 200
        except (OSError, HTTPException):
            return False

    def request(
        self, method: str, path: str, body: Any = None, *, token: str = ADMIN, seconds: float = START_S
    ) -> tuple[int, bytes]:
        """Return the status and the body of an answer to a request of the administrator."""
        tls = ssl.create_default_context(cafile=self.certified().authority)
        connection = HTTPSConnection(HOST, self.port, timeout=seconds, context=tls)
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        try:
            connection.request(
                method,
                path,
                None if body is None else json.dumps(body),
                {"Authorization": f"Bearer {token}", "Content-Type": kind},
            )
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Return the object that the administrator asks for or writes."""
        status, answer = self.request(method, path, body)
        assert status < 300, answer
        found: dict[str, Any] = json.loads(answer)
        return found

    def reset(self) -> None:
        # No finalizer keeps an object from a deletion below the API.
        first = f"/registry/leases/{NAMESPACE}/"
        self._etcd.delete(first, first[:-1] + "0")


class Kubernetes(Group):
    """A cluster's API on an etcd. Clients are the account of ``deploy/kubernetes/store``."""

    name = "kubernetes"
    programs = ApiServer.programs
    members: tuple[Daemon, ...]

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.etcd = Etcd(directory / "etcd")
        self.api = ApiServer(directory / "api", self.etcd)
        self.members = (self.etcd, self.api)
        self.kubeconfig = directory / "kubeconfig"
        self.account = directory / "account"
        """The files of the account, as in a pod."""

    @property
    def url(self) -> str:
        return self.api.url

    @property
    def port(self) -> int:
        """Return the port of the API."""
        return self.api.port

    def start(self) -> None:
        is_new = self.api.is_new
        for member in self.members:
            member.start()
        if is_new:
            self._create()
        os.environ["KUBECONFIG"] = str(self.kubeconfig)

    def _create(self) -> None:
        self.api.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        for path, kind in (
            ("/api/v1", "serviceaccount"),
            ("/apis/rbac.authorization.k8s.io/v1", "role"),
            ("/apis/rbac.authorization.k8s.io/v1", "rolebinding"),
        ):
            manifest = YAML(typ="safe").load(MANIFESTS / f"{kind}.yaml")
            for subject in manifest.get("subjects", ()):
                subject["namespace"] = NAMESPACE  # as kubectl does
            self.api.call("POST", f"{path}/namespaces/{NAMESPACE}/{kind}s", manifest)
        self.account.mkdir()
        (self.account / "namespace").write_text(NAMESPACE, encoding="ascii")
        (self.account / "ca.crt").write_bytes(self.api.certified().authority.read_bytes())
        self.rotate()
        self.add_context(self.api)

    def new_token(self) -> str:
        """Return another token of the account."""
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/mintage-store/token"
        return str(self.api.call("POST", path, {"spec": {"expirationSeconds": 7200}})["status"]["token"])

    def rotate(self, token: str | None = None) -> None:
        """Replace the account's token, as the kubelet does."""
        new = self.account / "token.new"
        new.write_text(self.new_token() if token is None else token, encoding="ascii")
        new.replace(self.account / "token")

    def add_context(self, api: ApiServer, port: int | None = None) -> str:
        """Add a context for a port that leads to a server; return the URL of the store through it."""
        api.add_context(self.kubeconfig, self.account / "token", port)
        return api.url_through(port or api.port)

    def another(self) -> ApiServer:
        """Return another server on the same etcd, which the caller starts and kills."""
        return ApiServer(self.directory / "another", self.etcd, self.api)

    def lease(self, name: str) -> dict[str, Any]:
        """Return a Lease object."""
        return self.api.call("GET", f"{LEASES}/{name}")

    def names(self) -> Sequence[str]:
        """Return the names of all Lease objects."""
        return [each["metadata"]["name"] for each in self.api.call("GET", LEASES)["items"]]

    def reset(self) -> None:
        self.api.reset()


@contextmanager
def between(kubernetes: Kubernetes, answer: Callable[[str, str], Answer | None]) -> Iterator[str]:
    """Yield the URL of the store through a proxy of HTTP that gives some answers itself."""
    tls = kubernetes.api.certified()
    trusting = ssl.create_default_context(cafile=tls.authority)
    opener = build_opener(ProxyHandler({}), HTTPSHandler(context=trusting))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            given = answer(self.command, self.path)
            if given is None:
                headers = {name: self.headers[name] for name in ("Authorization", "Content-Type") if self.headers[name]}
                url = f"https://{HOST}:{kubernetes.api.port}{self.path}"
                try:
                    with opener.open(Request(url, body or None, headers, method=self.command)) as got:
                        given = got.status, {"Date": got.headers["Date"]}, got.read()
                except HTTPError as error:
                    given = error.code, {"Date": error.headers["Date"]}, error.read()
            status, more, text = given
            self.send_response_only(status)
            for name, value in {"Content-Length": str(len(text)), **more}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PUT = handle_any  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tls.certificate, tls.key)
    with ThreadingHTTPServer((HOST, 0), Handler) as server:
        server.daemon_threads = True
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        try:
            yield kubernetes.add_context(kubernetes.api, server.server_address[1])
        finally:
            server.shutdown()
            thread.join()


def said(status: int, reason: str, **headers: str) -> Answer:
    """Return an answer of the API that is a refusal."""
    body = {"kind": "Status", "status": "Failure", "reason": reason, "message": f"it said {reason}", "code": status}
    return status, headers, json.dumps(body).encode()
