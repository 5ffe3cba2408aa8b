"""Lints the chart, renders it as each kind of federation, and checks what comes out against the schemas of Kubernetes.

`make chart` installs what it needs: requirements.txt has Helm's own library. With KINDRED_PROGRAMS, the folder of the
programs, the coordinator reads each configuration that was rendered.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import tomllib

try:
    import helm_python as helm
    import kubernetes_validate
    import yaml
except ImportError as error:
    print(f"skipped: {error}; deploy/helm/requirements.txt says what is wanted")
    sys.exit(0)

CHART = pathlib.Path(__file__).parent
# The oldest that Chart.yaml admits, and the newest whose schemas are there.
KUBERNETES = ["1.27", "1.37"]
POSTGRES = {"store": {"kind": "postgres"}}
ALL = {
    **POSTGRES,
    "replicas": 3,
    "administrators": ["keeper"],
    "retainDays": 365,
    "certificates": {"revoked": True},
    "image": {"pullSecrets": [{"name": "registry"}]},
    "persistence": {"storageClass": "fast"},
    "service": {"annotations": {"a": "b"}},
    "networkPolicy": {
        "from": [{"ipBlock": {"cidr": "192.0.2.0/24"}}],
        "database": [{"ipBlock": {"cidr": "198.51.100.7/32"}}],
    },
    "podDisruptionBudget": {"enabled": True},
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "a", "operator": "Exists"}],
}
BARE = {"networkPolicy": {"enabled": False}}
# How many coordinators each has.
CASES = [("as it is", {}, 1), ("postgres", POSTGRES, 2), ("all", ALL, 3), ("bare", BARE, 1)]


def rendered(values):
    with helm.Chart.load(str(CHART)) as chart:
        texts = chart.render(values, name="coordinator", namespace="kindred")
    manifests = {path: text for path, text in texts.items() if not path.endswith("NOTES.txt")}
    documents = (one for text in manifests.values() for one in yaml.safe_load_all(text))
    return [one for one in documents if one]


def of_kind(documents, kind):
    return [one for one in documents if one["kind"] == kind]


def check_pods(documents, coordinators):
    """Each coordinator is alone in its Deployment, and has what others have not."""
    deployments = of_kind(documents, "Deployment")
    assert len(deployments) == len(of_kind(documents, "PersistentVolumeClaim")) == coordinators
    claims, own = set(), set()
    for one in deployments:
        assert one["spec"]["replicas"] == 1 and one["spec"]["strategy"]["type"] == "Recreate"
        labels = one["spec"]["template"]["metadata"]["labels"]
        wanted = one["spec"]["selector"]["matchLabels"]
        own.add(tuple(sorted(wanted.items())))
        assert wanted.items() <= labels.items()
        for other in of_kind(documents, "Service"):
            assert other["spec"]["selector"].items() <= labels.items()
        pod = one["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        claims.add(volumes["folder"]["persistentVolumeClaim"]["claimName"])
        for container in pod["initContainers"] + pod["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert context["allowPrivilegeEscalation"] is False
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes.keys()
    assert len(claims) == len(own) == coordinators


def check_configuration(documents, values):
    text = of_kind(documents, "ConfigMap")[0]["data"]["coordinator.toml"]
    found = tomllib.loads(text)
    assert ("store" in found) == ("store" in values)
    assert found["administrators"] == values.get("administrators", [])
    assert found.get("retain_days") == values.get("retainDays")
    programs = os.environ.get("KINDRED_PROGRAMS")
    if not programs:
        return "no coordinator has read its configuration"
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "coordinator.toml"
        file.write_text(text)
        command = [f"{programs}/kindred-coordinator", "doctor", "--json", "--config", str(file)]
        environment = {**os.environ, "KINDRED_DATABASE_PASSWORD": "secret"}
        said = subprocess.run(command, env=environment, capture_output=True, text=True)
    checks = {one["check"]: one for one in json.loads(said.stdout)["checks"]}
    assert checks["configuration"]["status"] == "passed", said.stdout
    return "the coordinator reads their configuration"


def main():
    for name, values, coordinators in CASES:
        report = helm.lint(str(CHART), values, strict=True, kube_version=f"v{KUBERNETES[0]}.0")
        found = [one["error"] for one in report["messages"] if one["severity"] > 1] + report["errors"]
        assert not found, found
        documents = rendered(values)
        for version in KUBERNETES:
            for one in documents:
                kubernetes_validate.validate(one, version, strict=True)
        check_pods(documents, coordinators)
        read = check_configuration(documents, values)
        print(f"{name}: {len(documents)} manifests are valid; {read}")
    try:
        rendered({"replicas": 2})
    except helm.HelmError as error:
        assert "wanted postgres" in str(error), error
    else:
        raise AssertionError("several coordinators share a file")


if __name__ == "__main__":
    main()
