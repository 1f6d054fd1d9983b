"""Tests of ``deploy/``: as far as possible without a cluster, Docker or systemd, its files can be deployed.

Each file is read by its tool or checked by a schema; the settings in it are read by mintage; and files that refer to
each other agree.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from ruamel.yaml import YAML

from mintage import __version__
from mintage.server.config.keys import RIGHTS
from mintage.server.config.settings import Settings
from mintage.server.core.metrics import Metrics
from tests.helpers.optional import module_or_skip
from tests.servers.server import open_url, until
from tests.service.running import key_toml, running

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PROMETHEUS = DEPLOY / "prometheus"
EXAMPLE = DEPLOY / "mintage.example.toml"

#: What the service may still take after `grace_ms`: last words, and giving back.
SHUTDOWN_TIMEOUT_S = 5


def run(*command: str | Path, cwd: Path | None = None, given: str | None = None) -> str:
    """Return the output of a program, which must not complain."""
    done = subprocess.run(command, check=False, cwd=cwd, input=given, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def python(module: str, *options: str | Path) -> str:
    return run(sys.executable, "-m", module, *options)


def documents(path: Path) -> list[Any]:
    return list(YAML(typ="safe").load_all(path.read_text(encoding="utf-8")))


def document(path: Path) -> Any:
    (only,) = documents(path)
    return only


@pytest.fixture
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        reason = "promtool is not installed: run tests/servers/install.sh as root"
        (pytest.fail if any(map(os.environ.get, ("CI", "MINTAGE_REQUIRE_SERVERS"))) else pytest.skip)(reason)
    return found


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[str, str]], Any]:
    """Return the settings of a service with only these variables."""
    for name in os.environ:
        if name.startswith("MINTAGE_"):
            monkeypatch.delenv(name)

    def load(environment: Mapping[str, str]) -> Settings:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        return Settings.load([])

    return load


# --- the image ----------------------------------------------------------------------------------------------------

DOCKERFILE = DEPLOY / "docker" / "Dockerfile"


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile, each with its arguments."""
    text = re.sub(r"(?m)^#.*\n", "", DOCKERFILE.read_text(encoding="utf-8")).replace("\\\n", "")
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in text.splitlines() if line)]


def image() -> list[tuple[str, str]]:
    """Return the instructions of the last stage."""
    every = instructions()
    return every[max(at for at, (word, _) in enumerate(every) if word == "FROM") :]


def of_image(word: str) -> str:
    """Return the arguments of an instruction that occurs once in the last stage."""
    (rest,) = [rest for name, rest in image() if name == word]
    return rest


def image_environment() -> dict[str, str]:
    return dict(re.findall(r"(\w+)=(\S+)", of_image("ENV")))


def health_check() -> list[str]:
    words: list[str] = json.loads(of_image("HEALTHCHECK").partition("CMD ")[2])
    return words


def test_dockerfile_passes_its_linter() -> None:
    run(Path(sys.executable).with_name("hadolint"), DOCKERFILE)


def test_image_runs_as_a_numeric_user_other_than_root() -> None:
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", of_image("USER"))


def test_image_runs_programs_without_a_shell() -> None:
    assert json.loads(of_image("ENTRYPOINT")) == ["mintage"]
    assert json.loads(of_image("CMD")) == ["serve"]
    assert health_check()[0] == "python"
    assert of_image("STOPSIGNAL") == "SIGTERM"


def test_image_has_the_build_and_neither_sources_nor_secrets() -> None:
    assert [rest for word, rest in image() if word in {"COPY", "ADD"}] == ["--from=build /opt/mintage /opt/mintage"]
    named = [rest for word, rest in instructions() if word in {"ARG", "ENV"}]
    assert not re.search(r"(?i)password|secret|token|_key|MINTAGE_STORE|INSECURE", " ".join(named))


def test_image_exposes_the_served_ports(told: Callable[[Mapping[str, str]], Any]) -> None:
    settings = told(image_environment() | {"MINTAGE_CONFIG": str(EXAMPLE)})
    assert of_image("EXPOSE").split() == [str(port) for _, port in settings.addresses.values()]


def test_image_does_not_start_without_keys() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MINTAGE_")}
    done = subprocess.run(
        [sys.executable, "-m", "mintage", "serve"], check=False, env=environment | image_environment(), timeout=60,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 78
    assert "no keys are configured" in done.stderr


def test_health_check_detects_a_service_that_does_not_serve(tmp_path: Path) -> None:
    def check() -> int:
        program, option, code = health_check()
        assert (program, option) == ("python", "-c")
        code = code.replace("127.0.0.1:8080", f"{service.http[0]}:{service.http[1]}")
        return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, timeout=60).returncode

    with running(tmp_path / "service") as service:
        until(lambda: check() == 0, "the service is ready")
    assert check() != 0


def test_build_context_has_only_needed_files() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    admitted = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {
        "Cargo.toml",
        "Cargo.lock",
        "crates",
        "src",
        "pyproject.toml",
        project["readme"],
        *project["license-files"],
    }
    needed |= {
        path
        for word, rest in instructions()
        if word == "COPY" and not rest.startswith("--")
        for path in rest.split()[:-1]
        if path != "."
    }
    assert admitted == needed
    assert {"**/*.so", "**/__pycache__"} <= set(rules)


# --- compose ------------------------------------------------------------------------------------------------------

COMPOSE = DEPLOY / "compose.yaml"


def service_of_compose(name: str) -> Any:
    return document(COMPOSE)["services"][name]


def test_compose_file_is_valid() -> None:
    python("check_jsonschema", "--builtin-schema", "vendor.compose-spec", COMPOSE)


def test_compose_asks_for_passwords_and_contains_none() -> None:
    asked = set(re.findall(r"\$\{(\w+):\?\}", COMPOSE.read_text(encoding="utf-8")))
    example = (DEPLOY / "compose.env.example").read_text(encoding="utf-8")
    assert asked == set(re.findall(r"(?m)^(\w+)=$", example))
    redis = service_of_compose("redis")
    assert redis["command"][-2:] == ["--requirepass", redis["environment"]["REDISCLI_AUTH"]]


def test_compose_passes_only_known_settings(told: Callable[[Mapping[str, str]], Any]) -> None:
    mintage = service_of_compose("mintage")
    given = {name: re.sub(r"\$\{\w+:\?\}", "secret", value) for name, value in mintage["environment"].items()}
    (secret,) = mintage["secrets"]
    assert given["MINTAGE_CONFIG"] == f"/run/secrets/{secret}"
    settings = told(image_environment() | given | {"MINTAGE_CONFIG": str(EXAMPLE)})
    assert settings.has_keys
    assert settings.store_url == "mysql://mintage:secret@mariadb:3306/mintage?cache=redis://:secret@redis:6379/0"
    settings.open_store().close()
    assert seconds(mintage["stop_grace_period"]) > settings.grace_ms / 1000 + SHUTDOWN_TIMEOUT_S


def test_compose_publishes_only_local_ports_and_no_store() -> None:
    networks = document(COMPOSE)["networks"]
    for name in ("mariadb", "redis"):
        store = service_of_compose(name)
        assert "ports" not in store
        assert [networks[each]["internal"] for each in store["networks"]] == [True]
    assert [port.split(":")[0] for port in service_of_compose("mintage")["ports"]] == ["127.0.0.1"] * 2


def test_compose_keeps_the_data_of_the_stores() -> None:
    volumes = document(COMPOSE)["volumes"]
    for name in ("mariadb", "redis"):
        (volume,) = service_of_compose(name)["volumes"]
        assert volume.partition(":")[0] in volumes
    assert "--appendonly yes" in " ".join(service_of_compose("redis")["command"])


def test_compose_gives_the_service_minimal_rights() -> None:
    mintage = service_of_compose("mintage")
    assert mintage["read_only"] is True
    assert mintage["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in mintage["security_opt"]


def seconds(text: str) -> float:
    assert text.endswith("s")
    return float(text[:-1])


# --- Kubernetes ---------------------------------------------------------------------------------------------------

KUBERNETES = DEPLOY / "kubernetes"
#: With the pause of `preStop`, and the newest that there are schemas of.
VERSIONS = ["1.30", "1.37"]
#: Of others' kinds, which the schemas of Kubernetes do not have.
FOREIGN = {"kustomization.yaml", "servicemonitor.yaml"}


def manifest(name: str) -> Any:
    return document(KUBERNETES / f"{name}.yaml")


def container() -> Any:
    (only,) = manifest("deployment")["spec"]["template"]["spec"]["containers"]
    return only


@pytest.mark.parametrize("version", VERSIONS)
def test_manifests_match_the_schemas_of_kubernetes(version: str) -> None:
    files = [path for path in sorted(KUBERNETES.rglob("*.yaml")) if path.name not in FOREIGN]
    pytest.importorskip("kubernetes_validate")
    said = python("kubernetes_validate", "--kubernetes-version", version, "--strict", *files)
    assert said.count("passed") == len(files) == 11


def test_kustomization_lists_every_plain_manifest_except_secrets() -> None:
    kustomization = manifest("kustomization")
    every = {path.name for path in KUBERNETES.glob("*.yaml")}
    assert set(kustomization["resources"]) == every - FOREIGN - {"secret.example.yaml"}
    (image,) = kustomization["images"]
    assert image == {"name": container()["image"], "newName": "mintage", "newTag": __version__}


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_builds_the_kustomization() -> None:
    built = list(YAML(typ="safe").load_all(run("kubectl", "kustomize", KUBERNETES)))
    assert {each["kind"] for each in built} >= {"Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"}
    assert {each["metadata"].get("namespace", "mintage") for each in built} == {"mintage"}


def test_example_of_the_store_needs_an_account_and_one_variable() -> None:
    folder = KUBERNETES / "store"
    assert {*document(folder / "kustomization.yaml")["resources"], "kustomization.yaml"} == {
        path.name for path in folder.glob("*.yaml")
    }
    pod = document(folder / "deployment.yaml")["spec"]["template"]["spec"]
    account = document(folder / "serviceaccount.yaml")["metadata"]["name"]
    binding, role = document(folder / "rolebinding.yaml"), document(folder / "role.yaml")
    assert pod["serviceAccountName"] == account == binding["subjects"][0]["name"]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert role["rules"] == [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "list", "create", "update"]}
    ]
    ((variable,),) = (each["env"] for each in pod["containers"])
    assert variable == {"name": "MINTAGE_STORE", "value": "kubernetes:"}


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_builds_the_example_of_the_store() -> None:
    built = list(YAML(typ="safe").load_all(run("kubectl", "kustomize", KUBERNETES / "store")))
    assert {each["kind"] for each in built} == {"ServiceAccount", "Role", "RoleBinding", "Deployment"}


def test_every_pod_selector_matches_the_deployment() -> None:
    spec = manifest("deployment")["spec"]
    labels = spec["template"]["metadata"]["labels"].items()
    selectors = [
        spec["selector"]["matchLabels"],
        manifest("service")["spec"]["selector"],
        manifest("poddisruptionbudget")["spec"]["selector"]["matchLabels"],
        manifest("networkpolicy")["spec"]["podSelector"]["matchLabels"],
        *(each["labelSelector"]["matchLabels"] for each in spec["template"]["spec"]["topologySpreadConstraints"]),
    ]
    assert all(selector and selector.items() <= labels for selector in selectors)
    of_monitor = manifest("servicemonitor")["spec"]["selector"]["matchLabels"]
    assert of_monitor.items() <= manifest("service")["metadata"]["labels"].items()


def test_every_named_port_is_a_port_of_the_container() -> None:
    ports = {port["name"]: port["containerPort"] for port in container()["ports"]}
    assert {port["targetPort"]: port["port"] for port in manifest("service")["spec"]["ports"]} == ports
    probes = [container()[probe]["httpGet"] for probe in ("livenessProbe", "readinessProbe")]
    assert [(probe["port"], probe["path"]) for probe in probes] == [("http", "/healthz"), ("http", "/readyz")]
    ingress = manifest("networkpolicy")["spec"]["ingress"]
    assert {port["port"] for rule in ingress for port in rule["ports"]} == set(ports)
    assert {each["port"] for each in manifest("servicemonitor")["spec"]["endpoints"]} == {"http"}


def test_kubernetes_passes_only_known_settings(told: Callable[[Mapping[str, str]], Any], tmp_path: Path) -> None:
    module_or_skip("psycopg")
    given = manifest("configmap")["data"]
    (mount,) = [each for each in container()["volumeMounts"] if each["name"] == "config"]
    ((name, text),) = manifest("secret.example")["stringData"].items()
    assert given["MINTAGE_CONFIG"] == f"{mount['mountPath']}/{name}"
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    settings = told(image_environment() | given | {"MINTAGE_CONFIG": str(file)})
    assert settings.has_keys
    settings.open_store().close()
    ports = [port["containerPort"] for port in container()["ports"]]
    assert [port for _, port in settings.addresses.values()] == ports
    pod = manifest("deployment")["spec"]["template"]["spec"]
    pause_s = container()["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] > pause_s + settings.grace_ms / 1000 + SHUTDOWN_TIMEOUT_S


def test_pods_meet_the_restricted_standard() -> None:
    assert manifest("namespace")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    pod, own = manifest("deployment")["spec"]["template"]["spec"], container()["securityContext"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}" == of_image("USER")
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert own["allowPrivilegeEscalation"] is False
    assert own["capabilities"] == {"drop": ["ALL"]}
    assert own["readOnlyRootFilesystem"] is True


def test_node_can_be_drained_while_others_serve() -> None:
    spec = manifest("deployment")["spec"]
    assert spec["replicas"] > manifest("poddisruptionbudget")["spec"]["maxUnavailable"]
    assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


# --- systemd ------------------------------------------------------------------------------------------------------

UNIT = DEPLOY / "systemd" / "mintage.service"


def of_unit(name: str) -> list[str]:
    return re.findall(rf"(?m)^{name}=(.*)$", UNIT.read_text(encoding="utf-8"))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit_and_rates_it_safe(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    # systemd-analyze checks that the program exists.
    unit.write_text(UNIT.read_text(encoding="utf-8").replace("/opt/mintage/bin/mintage", sys.executable))
    assert run("systemd-analyze", "verify", unit) == ""
    run("systemd-analyze", "security", "--offline=yes", "--threshold=20", unit)


def test_systemd_passes_only_known_settings(told: Callable[[Mapping[str, str]], Any]) -> None:
    given = dict(line.split("=", 1) for line in of_unit("Environment"))
    (credential,) = of_unit("LoadCredential")
    assert given["MINTAGE_CONFIG"] == f"%d/{credential.partition(':')[0]}"
    assert given["MINTAGE_HOME"] == f"%S/{of_unit('StateDirectory')[0]}"
    settings = told(given | {"MINTAGE_CONFIG": str(EXAMPLE)})
    assert seconds(of_unit("TimeoutStopSec")[0]) > settings.grace_ms / 1000 + SHUTDOWN_TIMEOUT_S


def test_systemd_does_not_restart_after_a_wrong_setting() -> None:
    from mintage.errors import CATALOGUE

    assert {CATALOGUE[code].exit for code in ("config.setting", "config.insecure", "config.store")} == {78}
    assert of_unit("RestartPreventExitStatus") == ["78"]


# --- monitoring ---------------------------------------------------------------------------------------------------

ALERTS = PROMETHEUS / "alerts.yaml"
DASHBOARD = DEPLOY / "grafana" / "mintage.json"
#: What Prometheus adds to every series, and what histograms have.
EVERYWHERE = {"job", "instance", "le"}


def alerts() -> list[Any]:
    (group,) = document(ALERTS)["groups"]
    rules: list[Any] = group["rules"]
    return rules


def panels() -> list[Any]:
    """Return the panels of the dashboard, without the headings of rows."""
    return [each for each in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"] if each["type"] != "row"]


def queries() -> list[tuple[str, str]]:
    """Return the queries of the dashboard, with their legends, and with values in place of variables."""
    pairs = [(target["expr"], target["legendFormat"]) for panel in panels() for target in panel["targets"]]
    return [(re.sub(r"\$\w+", "5m", expression), legend) for expression, legend in pairs]


def series() -> dict[str, set[str]]:
    """Return the metrics of ``GET /metrics``, with their labels."""
    suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"], "gauge": [""]}
    collectors: Any = Metrics().registry._collector_to_names
    return {each._name + suffix: set(each._labelnames) for each in collectors for suffix in suffixes[each._type]}


def assert_is_known(expression: str, further: Sequence[str] = ()) -> None:
    """Assert that a query uses existing metrics and labels."""
    known = series()
    read = set(re.findall(r"\bmintage_\w+", expression))
    assert read <= known.keys()
    assert read
    labels = {label for name in read for label in known[name]} | EVERYWHERE
    named = {
        label.strip()
        for listed in re.findall(r"\b(?:by|on|without|ignoring) \(([^)]*)\)", expression)
        for label in listed.split(",")
    }
    named |= set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", expression))
    assert (named | set(further)) - {""} <= labels, expression


def test_alerts_are_valid_and_each_of_them_fires(promtool: str) -> None:
    run(promtool, "check", "rules", "--lint-fatal", ALERTS)
    run(promtool, "test", "rules", "alerts_test.yaml", cwd=PROMETHEUS)
    tests = (PROMETHEUS / "alerts_test.yaml").read_text(encoding="utf-8")
    fired = set(re.findall(r'alertname="(\w+)"', tests))
    assert fired == {rule["alert"] for rule in alerts()}


def test_alerts_use_existing_metrics() -> None:
    for rule in alerts():
        words = " ".join(rule["annotations"].values())
        assert_is_known(rule["expr"], re.findall(r"\$labels\.(\w+)", words))


def test_alerts_use_existing_codes_and_verbs() -> None:
    from mintage.errors import CATALOGUE
    from mintage.store import Store

    known = {"code": set(CATALOGUE), "verb": {name for name in dir(Store) if not name.startswith("_")}}
    expressions = [rule["expr"] for rule in alerts()]
    matchers = [each for text in expressions for each in re.findall(r'(code|verb)=~?"([^"]*)"', text)]
    assert len(matchers) > 5
    for label, pattern in matchers:
        for one in pattern.replace("\\\\", "\\").split("|"):
            assert any(re.fullmatch(one, name) for name in known[label]), one


def test_dashboard_queries_are_valid(promtool: str, tmp_path: Path) -> None:
    rules = [{"record": f"dashboard:query{at}", "expr": expression} for at, (expression, _) in enumerate(queries())]
    file = tmp_path / "rules.json"  # which is YAML, too
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}), encoding="utf-8")
    assert f"SUCCESS: {len(rules)} rules found" in run(promtool, "check", "rules", file)


def test_queries_of_the_guides_are_valid(promtool: str, tmp_path: Path) -> None:
    guides = "".join((ROOT / "docs/how-to" / name).read_text(encoding="utf-8") for name in ("observe.md", "secure.md"))
    found = re.findall(r"^ *((?:topk|sum|min)\b.*mintage_.*)$", guides, re.MULTILINE)
    assert len(found) == 6
    rules = [{"record": f"guide:query{at}", "expr": expression} for at, expression in enumerate(found)]
    file = tmp_path / "rules.json"
    file.write_text(json.dumps({"groups": [{"name": "guides", "rules": rules}]}), encoding="utf-8")
    assert f"SUCCESS: {len(rules)} rules found" in run(promtool, "check", "rules", file)


def test_dashboard_shows_every_metric() -> None:
    for expression, legend in queries():
        assert_is_known(expression, re.findall(r"\{\{(\w+)\}\}", legend))
    shown = set(re.findall(r"\bmintage_\w+", " ".join(expression for expression, _ in queries())))
    assert {re.sub(r"_(bucket|count|sum)$", "", name) for name in series()} == {
        re.sub(r"_(bucket|count)$", "", name) for name in shown
    }


def test_dashboard_queries_are_limited_to_the_chosen_instances() -> None:
    for panel in panels():
        for target in panel["targets"]:
            metrics = re.findall(r"\bmintage_\w+(\{[^}]*\})?", target["expr"])
            assert all('job=~"$job", instance=~"$instance"' in selector for selector in metrics), target["expr"]


def test_dashboard_panels_are_described_and_do_not_overlap() -> None:
    every = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    assert len({panel["id"] for panel in every}) == len(every)
    taken: set[tuple[int, int]] = set()
    for panel in every:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
    assert all(panel["title"] and panel["description"] for panel in panels())


def test_prometheus_can_read_its_configuration(promtool: str, tmp_path: Path) -> None:
    key = tmp_path / "mintage.key"
    key.touch()
    shutil.copy(ALERTS, tmp_path)
    text = (PROMETHEUS / "prometheus.yaml").read_text(encoding="utf-8")
    file = tmp_path / "prometheus.yaml"
    file.write_text(text.replace("/etc/prometheus/mintage.key", str(key)), encoding="utf-8")
    assert f"SUCCESS: {len(alerts())} rules found" in run(promtool, "check", "config", file)


def test_prometheus_can_read_the_metrics_of_a_running_service(promtool: str, tmp_path: Path) -> None:
    toml = key_toml("app", "mint_app", {"*": ["admin"]}) + key_toml("prometheus", "mint_prometheus", {"*": ["metrics"]})
    with running(tmp_path / "service", toml=toml) as service:
        text = scrape(service.url, "mint_prometheus")
    assert text.count("# TYPE mintage_") == len({re.sub(r"_(bucket|count|sum)$", "", name) for name in series()})
    done = subprocess.run([promtool, "check", "metrics"], check=False, input=text, capture_output=True, text=True)
    # People plan in days.
    unusual = [line for line in (done.stdout + done.stderr).splitlines() if "_days_left use base unit" not in line]
    assert unusual == []


def scrape(url: str, key: str) -> str:
    from urllib.request import Request

    request = Request(f"{url}/metrics", headers={"Authorization": f"Bearer {key}"})
    with open_url(request, timeout=30) as answer:
        text: str = answer.read().decode()
    return text


# --- the how-tos --------------------------------------------------------------------------------------------------


def how_to(name: str) -> str:
    return (ROOT / "docs" / "how-to" / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["serve", "secure"])
def test_configuration_files_of_the_how_tos_are_valid(
    page: str, told: Callable[[Mapping[str, str]], Any], tmp_path: Path
) -> None:
    blocks = re.findall(r"(?s)```toml\n(.*?)```", how_to(page))
    assert blocks
    for at, block in enumerate(blocks):
        file = tmp_path / f"{at}.toml"
        file.write_text(block, encoding="utf-8")
        assert told({"MINTAGE_CONFIG": str(file)}).has_keys


def test_bounds_have_the_defaults_of_the_how_to() -> None:
    rows = re.findall(r"(?m)^\| [^|`]+ \| `(\w+)` \| ([\d,]+)", how_to("secure"))
    assert len(rows) == 9
    assert {name: int(text.replace(",", "")) for name, text in rows} == {
        name: getattr(Settings, name) for name, _ in rows
    }


def test_how_to_lists_every_right() -> None:
    table = how_to("secure").partition("| right |")[2].partition("\n\n")[0]
    assert re.findall(r"(?m)^\| `(\w+)` \|", table) == list(RIGHTS)
