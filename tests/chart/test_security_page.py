"""docs/security.md says which rights the chart gives, to the operator and to people, neither more nor less."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.chart.helm import ROOT, Helm, Object, of_kind, one

PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
Right = tuple[str, str, str, str]
"""API group, resource, the name that it is restricted to or nothing, verb."""
OPERATOR = "partita-operator"


def table(name: str) -> list[list[str]]:
    """The cells of the rows behind a marker of the page."""
    part = PAGE.split(f"<!-- {name} -->\n")[1].split("<!-- end -->")[0]
    rows = [line.strip().strip("|").split("|") for line in part.strip().splitlines()]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def shown(group: str, resources: str, verbs: str) -> Iterator[Right]:
    """The rights of a row."""
    named = re.search(r" named `([^`]+)`$", resources)
    listed = resources[: named.start()] if named else resources
    for resource in re.findall(r"`([^`]+)`", listed):
        for verb in verbs.split(", "):
            yield group.strip("`") if group != "core" else "", resource, named[1] if named else "", verb


def given(role: Object) -> set[Right]:
    """The rights of a rendered role."""
    return {
        (group, resource, name, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    }


def rights(*places: str) -> set[Right]:
    """What the page says the operator may do in these places."""
    rows = [row for row in table("rights") if row[0] in places]
    return {right for _, group, resources, verbs, _ in rows for right in shown(group, resources, verbs)}


def test_the_page_names_three_places() -> None:
    assert {row[0] for row in table("rights")} == {"watched namespaces", "its own namespace", "the cluster"}


def test_the_rights_of_an_operator_of_all_namespaces(helm: Helm) -> None:
    made = helm.trial()
    everywhere = one(made, "ClusterRole", f"partita-system-{OPERATOR}")
    assert given(everywhere) == rights("watched namespaces", "the cluster")
    assert given(one(made, "Role", OPERATOR)) == rights("its own namespace")


def test_the_rights_of_an_operator_of_some_namespaces(helm: Helm) -> None:
    made = helm.trial("--set", "watchNamespaces={a,b}", "--set", "clusterUid=c")
    roles = of_kind(made, "Role", f"{OPERATOR}-objects")
    assert {role["metadata"]["namespace"] for role in roles} == {"a", "b", "partita-system"}
    for role in roles:
        assert given(role) == rights("watched namespaces")
    assert given(one(made, "Role", OPERATOR)) == rights("its own namespace")
    assert not of_kind(made, "ClusterRoleBinding")


def test_the_rights_of_people(helm: Helm) -> None:
    made = helm.trial()
    said: dict[str, set[Right]] = {}
    for word, resources, verbs in table("people"):
        said.setdefault(word, set()).update(shown("`partita.dev`", resources, verbs))
    assert set(said) == {"view", "edit", "admin"}
    for word, expected in said.items():
        role = one(made, "ClusterRole", f"partita-system-partita-{word}")
        assert given(role) == expected
        assert role["metadata"]["labels"][f"rbac.authorization.k8s.io/aggregate-to-{word}"] == "true"


def test_nobody_else_has_any_right(helm: Helm) -> None:
    """Workers, migrations and months have accounts that no binding names; helm's test has two rights while it runs."""
    made = helm.trial("--set", "workers.shop.app=shop_tasks:app")
    bindings = [*of_kind(made, "RoleBinding"), *of_kind(made, "ClusterRoleBinding")]
    assert {subject["name"] for each in bindings for subject in each["subjects"]} == {OPERATOR, "partita-test"}
    assert given(one(made, "Role", "partita-test")) == {
        ("partita.dev", "workflowengines", "partita", "get"),
        ("coordination.k8s.io", "leases", "partita-operator", "get"),
    }


def test_who_reaches_whom(helm: Helm) -> None:
    """The table of the policies, with a worker that may go anywhere and with one that may not."""
    chosen = ("networkPolicy.enabled=true", "networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.a=b")
    made = helm.trial(*(word for each in chosen for word in ("--set", each)))
    policies = {each["metadata"]["labels"]["app.kubernetes.io/component"]: each for each in of_kind(made, POLICY)}
    rows = {component: row for row in table("network") for component in re.findall(r"`(\w+)`", row[0])}
    assert rows.keys() == policies.keys()
    for component, (_, reached_by, may_reach) in rows.items():
        spec = policies[component]["spec"]
        ports = [port["port"] for rule in spec["ingress"] for port in rule["ports"]]
        assert (not ports) is (reached_by == "nobody"), component
        senders = [sender for rule in spec["ingress"] for sender in rule["from"]]
        assert ({"namespaceSelector": {"matchLabels": {"a": "b"}}} in senders) is (component in ("operator", "worker"))
        assert going(spec["egress"]) == expected(component, may_reach), component


POLICY = "NetworkPolicy"
PORTS = {"DNS": {53}, "the database's port": {5432}, "the API server's ports": {443, 6443}}


def going(rules: list[Object]) -> set[int] | None:
    """The ports that pods may go to; None is all of them."""
    return None if {} in rules else {port["port"] for rule in rules for port in rule["ports"]}


def expected(component: str, words: str) -> set[int] | None:
    """The ports that the page names; a worker without ``workerEgress`` goes anywhere."""
    if component == "worker":
        assert words.endswith("without it anything")
        return None
    return {port for name, ports in PORTS.items() if name in words for port in ports}


def test_workers_get_every_url_that_the_chart_knows(helm: Helm) -> None:
    """What the page says of the owner's URL."""
    urls = ("database.existingSecret.name=db", "database.migrations.existingSecret.name=owner", "workers.w.app=a:b")
    made = helm.template(*(word for each in urls for word in ("--set", each)))
    (worker,) = one(made, "Deployment", "partita-worker-w")["spec"]["template"]["spec"]["containers"]
    assert {"PARTITA_DATABASE_URL", "PARTITA_MIGRATIONS_URL"} <= {each["name"] for each in worker["env"]}
