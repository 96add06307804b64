"""deploy/kubernetes: valid objects, one image, no secret where it is not needed."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

ROOT = Path(__file__).parents[2]
KUBERNETES = ROOT / "deploy" / "kubernetes"
VERSION = "1.33"  # the oldest that is supported
SCHEMA = json.loads(Path(__file__).with_name("raycluster.schema.json").read_text(encoding="utf-8"))
Object = dict[str, Any]


@cache
def objects(place: str) -> list[Object]:
    """Of the base, read as it is; of an overlay, as kubectl puts it together."""
    if place == "base":
        files = sorted((KUBERNETES / "base").glob("*.yaml"))
        texts = [path.read_text(encoding="utf-8") for path in files if path.stem != "kustomization"]
    else:
        if shutil.which("kubectl") is None:
            pytest.skip("kubectl is not installed")
        command = ["kubectl", "kustomize", str(KUBERNETES / place)]
        texts = [subprocess.run(command, check=True, capture_output=True, text=True).stdout]
    return [found for text in texts for found in yaml.load_all(text, yaml.CSafeLoader)]


def pod_specs(found: Object) -> Iterator[tuple[str, Object]]:
    """The pods that an object makes: a name for messages, and their spec."""
    name = f"{found['kind']} {found['metadata']['name']}"
    if found["kind"] == "RayCluster":
        groups = [found["spec"]["headGroupSpec"], *found["spec"]["workerGroupSpecs"]]
        for group in groups:
            yield f"{name}/{group.get('groupName', 'head')}", group["template"]["spec"]
    elif found["kind"] == "Deployment":
        yield name, found["spec"]["template"]["spec"]


PLACES = ["base", "overlays/gpu", "overlays/s3", "overlays/small"]
pytestmark = pytest.mark.parametrize("place", PLACES)


def test_every_object_is_valid(place: str) -> None:
    kinds = []
    for found in objects(place):
        kinds.append(found["kind"])
        if found["kind"] == "RayCluster":
            jsonschema.validate(found["spec"], SCHEMA)
        else:
            kubernetes_validate.validate(found, VERSION, strict=True)
        for name, spec in pod_specs(found):
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec}
            kubernetes_validate.validate(pod, VERSION, strict=True)
            assert spec["containers"], name
    assert {"RayCluster", "Deployment", "Service", "ConfigMap"} <= set(kinds)


def test_every_pod_runs_as_the_images_user_with_one_image(place: str) -> None:
    user = int((ROOT / "Dockerfile").read_text(encoding="utf-8").split("--uid ")[1].split()[0])
    pods = [pod for found in objects(place) for pod in pod_specs(found)]
    images = set()
    for name, spec in pods:
        security = spec["securityContext"]
        assert (security["runAsUser"], security["fsGroup"], security["runAsNonRoot"]) == (user, user, True), (
            name
        )
        assert spec["automountServiceAccountToken"] is False, name
        for container in [*spec["containers"], *spec.get("initContainers", [])]:
            images.add(container["image"])
            assert container["securityContext"]["allowPrivilegeEscalation"] is False, name
            assert container["securityContext"]["readOnlyRootFilesystem"] is True, name
            assert {"cpu", "memory"} <= set(container["resources"]["limits"]), name
            mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
            assert {"/tmp", "/home/creamtea"} <= mounted, name
    assert len(pods) == 5
    assert len(images) == 1


def test_ray_has_a_token_the_locked_version_and_no_way_to_the_database(place: str) -> None:
    [cluster] = [found for found in objects(place) if found["kind"] == "RayCluster"]
    pins = (ROOT / "requirements" / "app.lock").read_text(encoding="utf-8").split()
    assert f"ray=={cluster['spec']['rayVersion']}" in pins
    assert cluster["spec"]["authOptions"] == {"mode": "token"}
    for name, spec in pod_specs(cluster):
        text = json.dumps(spec)
        assert "database-url" not in text, name
        assert '"secretName": "creamtea"' not in text, name


def test_gpus_are_asked_for_by_the_gpu_group_alone(place: str) -> None:
    [cluster] = [found for found in objects(place) if found["kind"] == "RayCluster"]
    groups = {group["groupName"]: group for group in cluster["spec"]["workerGroupSpecs"]}
    limits = {
        name: group["template"]["spec"]["containers"][0]["resources"]["limits"]
        for name, group in groups.items()
    }
    assert limits["gpu"]["nvidia.com/gpu"] == "1"
    assert "nvidia.com/gpu" not in limits["cpu"]
    assert (groups["gpu"]["replicas"] > 0) is (place in ("overlays/gpu", "overlays/s3"))


def test_every_pod_has_a_policy_that_names_the_namespaces_it_lets_in(place: str) -> None:
    """KubeRay labels its pods with the cluster's name; a policy that selects no pod forbids nothing."""
    found = objects(place)
    [cluster] = [one["metadata"]["name"] for one in found if one["kind"] == "RayCluster"]
    deployed = [one["spec"]["template"]["metadata"]["labels"] for one in found if one["kind"] == "Deployment"]
    policies = [one["spec"] for one in found if one["kind"] == "NetworkPolicy"]
    selected = [policy["podSelector"]["matchLabels"] for policy in policies]
    assert {"ray.io/cluster": cluster} in selected
    for labels in deployed:
        assert any(chosen.items() <= labels.items() for chosen in selected), labels
    peers = [peer for policy in policies for rule in policy["ingress"] for peer in rule["from"]]
    for peer in peers:
        if "namespaceSelector" in peer:
            assert "kubernetes.io/metadata.name" in peer["namespaceSelector"]["matchLabels"]
        else:
            assert peer["podSelector"]["matchLabels"]


def test_the_database_is_brought_up_to_date_with_the_controllers_image(place: str) -> None:
    """Not by a job, which cannot be applied again with another image."""
    [controller] = [
        spec for found in objects(place) for name, spec in pod_specs(found) if "controller" in name
    ]
    migrate, *_ = controller["initContainers"]
    assert migrate["command"] == ["creamtea", "db", "upgrade"]
    shown = controller["containers"][0]["livenessProbe"]["exec"]["command"]
    assert shown == ["creamtea", "controller", "--check"]
