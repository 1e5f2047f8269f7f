"""A GitHub workflow: check the files, build and try the image, push it, and roll it out with a short-lived identity.

No key of a cloud is stored with GitHub: the job proves who it is by OpenID Connect, and the cloud gives it an hour. No text
of a user stands where GitHub would read `${{ }}` in it: names are made for DNS, and nothing else is needed.
"""

from __future__ import annotations

import math
import re

from chipwise.renderer.cluster.pod import namespace_of
from chipwise.renderer.cluster.services import scaled_kind
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch.timing import rollout_seconds
from chipwise.renderer.layout import grouped
from chipwise.renderer.yaml_text import Noted, Yaml, document

EXPRESSES = frozenset({"no run", "groups"})  # what it applies has clocks of its own
FITS = "build, test, push and roll out a job or service with GitHub; no stored keys on AWS, Google Cloud and Azure"
Object = dict[str, Yaml]
# Pinned by commit: a tag can be moved to other code, a commit cannot. (version, commit)
_ACTIONS = {
    "actions/checkout": ("v4.2.2", "11bd71901bbe5b1630ceea73d27597364c9af683"),
    "docker/setup-buildx-action": ("v3.10.0", "b5ca514318bd6ebac0fb2aedd5d36ec1b5c232a2"),
    "docker/login-action": ("v3.4.0", "74a5d142397b4f367a81961eba4e8cd7edddf772"),
    "docker/build-push-action": ("v6.15.0", "471d1dc4e07e5cdedd4c2171150001c434f0b7a4"),
    "aws-actions/configure-aws-credentials": ("v4.1.0", "ececac1a45f3b08a01d2dd070d28d111c5fe6722"),
    "aws-actions/amazon-ecr-login": ("v2.0.1", "062b18b96a7aff071d4dc91bc00c4c1a7945b076"),
    "google-github-actions/auth": ("v2.1.8", "71f986410dfbc7added4569d411d040a91dc6935"),
    "azure/login": ("v2.3.0", "a457da9ea143d694b1b9c7c869ebb04ebe844ef5"),
}
_RUNNERS = {"amd64": "ubuntu-24.04", "arm64": "ubuntu-24.04-arm"}
_IMPORTS = {"pytorch": "torch", "jax": "jax", "tensorflow": "tensorflow"}
_DOCKER_RUN = "docker run --rm --network none --read-only --tmpfs /tmp"
_CLOUDS = ("aws", "gcp", "azure")
LONGEST_MIN = 350  # GitHub ends a job on its own machines after 6 h
AROUND_MIN = 10  # of a job beside its rollout
IDENTITY_S = 3600  # that a role of AWS lasts unless more is asked for


def render(deployment: Deployment) -> list[File]:
    match deployment.form:
        case Form.PIPELINE:
            raise CannotRender(
                "A pipeline has an image and a way out for each stage, and one workflow here has one.",
                remedy="Render each with --stage: " + ", ".join(one.title for one in deployment.stages) + "; run them by argo.",
            )
        case Form.SESSIONS:
            raise CannotRender("Notebooks are not rolled out; a hub starts them for people.", remedy="Use --to jupyterhub.")
    rolls = _rolls_out(deployment)
    if not deployment.software.built and not rolls:
        raise CannotRender(
            f"There is nothing to build ({deployment.software.image} is finished), and {deployment.node.provider} has no"
            " cluster that GitHub can sign in to.",
            remedy="Use --to compose or skypilot, or plan with --cloud aws,gcp,azure.",
        )
    jobs: Object = {"check": _check(deployment)}
    if deployment.software.built:
        jobs["image"] = _image(deployment)
    if rolls:
        jobs["deploy"] = _deploy(deployment)
    paths = ["deploy/**", f".github/workflows/{deployment.name}.yaml"]
    triggers: Object = {"pull_request": {}, "push": {"branches": ["main"]}}
    by_hand: Object = {"workflow_dispatch": {}} if rolls and _by_hand(deployment) else {}
    if not deployment.software.built:
        triggers = {"pull_request": {"paths": paths}, "push": {"branches": ["main"], "paths": paths}}
    workflow: Object = {
        "name": deployment.name,
        "on": triggers | by_hand,
        "permissions": Noted({}, "None but what a job asks for."),
        "concurrency": {
            "group": Noted(f"{deployment.name}-${{{{ github.ref }}}}", "One at a time for each branch."),
            "cancel-in-progress": Noted(
                "${{ github.event_name == 'pull_request' }}", "A rollout that has begun is not cut off."
            ),
        },
    }
    if rolls:
        workflow["env"] = {"CLUSTER": "${{ vars.CLUSTER }}"}
    workflow["jobs"] = jobs
    title = f"{heading(deployment)}\n{_needs(deployment)}"
    # Tools that keep pins up to date read the version behind the commit, on the same line.
    text = re.sub(r"^( *)# (v[\d.]+)\n\1uses: (\S+)$", r"\1uses: \3 # \2", document(workflow, title=title), flags=re.MULTILINE)
    return [File(f".github/workflows/{deployment.name}.yaml", text)]


def _rolls_out(deployment: Deployment) -> bool:
    return deployment.node.provider in _CLOUDS and deployment.form in (Form.SERVICE, Form.JOB)


def _by_hand(deployment: Deployment) -> bool:
    """A job without a schedule starts when somebody says so, not whenever something is merged."""
    return deployment.form is Form.JOB and not deployment.starts


def _needs(deployment: Deployment) -> str:
    """What must be set up once, by hand."""
    variables = {
        "aws": "AWS_ROLE (a role that trusts this repository), AWS_REGION",
        "gcp": "GCP_PROVIDER and GCP_SERVICE_ACCOUNT (workload identity), GCP_PROJECT, GCP_LOCATION",
        "azure": "AZURE_CLIENT_ID, AZURE_TENANT_ID, AZURE_SUBSCRIPTION_ID (federated), AZURE_GROUP",
    }
    registry = {
        "aws": "REPOSITORY (in ECR)",
        "gcp": "REPOSITORY (in Artifact Registry, HOST/PROJECT/NAME)",
        "azure": "REGISTRY (of Azure, by name)",
    }
    if not _rolls_out(deployment):
        return "Pushes to GitHub's own registry; the cluster pulls from there."
    lines = [f"Variables of the repository: CLUSTER, {variables[deployment.node.provider]}"]
    if deployment.software.built:
        lines.append(f"and where images go: {registry[deployment.node.provider]}.")
    lines.append("Files of `chipwise render --to kubernetes` are expected in deploy/.")
    return "\n".join([*lines, "Give the environment `production` reviewers: nothing is rolled out or started without them."])


def _uses(action: str, name: str, inputs: Object | None = None, **fields: Yaml) -> Object:
    version, commit = _ACTIONS[action]
    step: Object = {"name": name, **fields, "uses": Noted(f"{action}@{commit}", version)}
    return step | ({"with": inputs} if inputs else {})


def _checkout() -> Object:
    kept = Noted(False, "Later steps cannot push.")
    return _uses("actions/checkout", "Check out", {"persist-credentials": kept})


def _check(deployment: Deployment) -> Object:
    """What can be told without building or renting anything."""
    steps: list[Yaml] = [_checkout()]
    if _rolls_out(deployment):
        steps.append({"name": "Manifests can be read", "run": "yq eval-all true deploy/*.yaml > /dev/null"})
    if deployment.software.built:
        steps.append({"name": "Dockerfile keeps to the rules", "run": "docker build --check ."})
    else:
        steps.append({"name": "The image is there", "run": f"docker buildx imagetools inspect {deployment.software.image}"})
    return {"runs-on": "ubuntu-24.04", "timeout-minutes": 10, "permissions": {"contents": "read"}, "steps": steps}


def _image(deployment: Deployment) -> Object:
    provider = deployment.node.provider if _rolls_out(deployment) else ""
    rights: Object = {"contents": "read"}
    rights |= {"id-token": Noted("write", "To sign in to the cloud.")} if provider else {"packages": "write"}
    pushes = "github.event_name != 'pull_request'"
    build: Object = {
        "context": ".",
        "platforms": f"linux/{deployment.node.arch}",
        "cache-from": "type=gha",
        "cache-to": "type=gha,mode=max",
    }
    steps: list[Yaml] = [
        _checkout(),
        _uses("docker/setup-buildx-action", "Set up the builder"),
        _uses("docker/build-push-action", "Build", build | {"load": True, "tags": "candidate"}),
        {"name": "Try it", "run": Noted(_trial(deployment), "As the image's own user, without network and without a chip.")},
        *_tests(deployment),
        *_sign_in(deployment, pushes),
        *_registry(provider, pushes),
    ]
    push = build | {
        "push": True,
        "tags": "${{ steps.name.outputs.image }}:${{ github.sha }}",
        "provenance": Noted(True, "What it was built from is kept with it."),
    }
    steps += [
        {
            "name": "Name it",
            "id": "name",
            "if": pushes,
            "env": _registry_settings(provider),
            "run": f'echo "image=${{REGISTRY,,}}/{deployment.name}" >> "$GITHUB_OUTPUT"'
            if provider != "aws"
            else 'echo "image=$REGISTRY" >> "$GITHUB_OUTPUT"',
        },
        _uses("docker/build-push-action", "Push", push, id="push", **{"if": pushes}),
    ]
    return {
        "needs": "check",
        "runs-on": Noted(_RUNNERS[deployment.node.arch], "The same processor as the plan's machines."),
        "timeout-minutes": 60,
        "permissions": rights,
        "outputs": {
            "image": Noted(
                "${{ steps.name.outputs.image }}@${{ steps.push.outputs.digest }}", "By digest: what was tried is what runs."
            )
        },
        "steps": steps,
    }


def _trial(deployment: Deployment) -> str:
    module = _IMPORTS.get(deployment.software.framework)
    if module is None:
        return f"{_DOCKER_RUN} --entrypoint /bin/true candidate"
    return f"{_DOCKER_RUN} --entrypoint python3 candidate \\\n  -c 'import {module}; print({module}.__version__)'\n"


def _tests(deployment: Deployment) -> list[Yaml]:
    if deployment.software.command[:1] not in (("python",), ("python3",)):
        return []
    present = Noted("hashFiles('tests/**') != ''", "Yours, where there are any; pytest must be among the requirements.")
    return [{"name": "Test", "if": present, "run": f"{_DOCKER_RUN} --entrypoint python3 candidate -m pytest -q tests"}]


def _sign_in(deployment: Deployment, condition: str = "", seconds: int = 0) -> list[Yaml]:
    """`seconds`: that the identity must last, where it is more than the usual hour."""
    guard: Object = {"if": condition} if condition else {}
    match deployment.node.provider if _rolls_out(deployment) else "":
        case "aws":
            inputs: Object = {"role-to-assume": "${{ vars.AWS_ROLE }}", "aws-region": "${{ vars.AWS_REGION }}"}
            if seconds > IDENTITY_S:
                lasts = "Until the rollout is over. The role must allow it (MaxSessionDuration)."
                inputs["role-duration-seconds"] = Noted(seconds, lasts)
            return [_uses("aws-actions/configure-aws-credentials", "Sign in to AWS", inputs, **guard)]
        case "gcp":
            inputs = {
                "workload_identity_provider": "${{ vars.GCP_PROVIDER }}",
                "service_account": "${{ vars.GCP_SERVICE_ACCOUNT }}",
                "token_format": "access_token",
            }
            return [_uses("google-github-actions/auth", "Sign in to Google Cloud", inputs, id="google", **guard)]
        case "azure":
            inputs = {
                "client-id": "${{ vars.AZURE_CLIENT_ID }}",
                "tenant-id": "${{ vars.AZURE_TENANT_ID }}",
                "subscription-id": "${{ vars.AZURE_SUBSCRIPTION_ID }}",
            }
            return [_uses("azure/login", "Sign in to Azure", inputs, **guard)]
    return []


def _registry(provider: str, condition: str) -> list[Yaml]:
    guard: Object = {"if": condition}
    match provider:
        case "aws":
            return [_uses("aws-actions/amazon-ecr-login", "Sign in to the registry", None, **guard)]
        case "gcp":
            inputs: Object = {
                "registry": "${{ vars.GCP_LOCATION }}-docker.pkg.dev",
                "username": "oauth2accesstoken",
                "password": "${{ steps.google.outputs.access_token }}",
            }
            return [_uses("docker/login-action", "Sign in to the registry", inputs, **guard)]
        case "azure":
            run: Object = {"env": {"REGISTRY": "${{ vars.REGISTRY }}"}, "run": 'az acr login --name "$REGISTRY"'}
            return [{"name": "Sign in to the registry", **guard, **run}]
    inputs = {"registry": "ghcr.io", "username": "${{ github.actor }}", "password": "${{ secrets.GITHUB_TOKEN }}"}
    return [_uses("docker/login-action", "Sign in to the registry", inputs, **guard)]


def _registry_settings(provider: str) -> Object:
    match provider:
        case "aws" | "gcp":
            return {"REGISTRY": "${{ vars.REPOSITORY }}"}
        case "azure":
            return {"REGISTRY": "${{ vars.REGISTRY }}.azurecr.io"}
    return {"REGISTRY": "ghcr.io/${{ github.repository_owner }}"}


def _deploy(deployment: Deployment) -> Object:
    name, space = deployment.name, namespace_of(deployment)
    built = deployment.software.built
    minutes = _minutes(deployment)
    signed = _sign_in(deployment, seconds=60 * minutes)
    steps: list[Yaml] = [_checkout(), *signed, {"name": "Find the cluster", **_cluster(deployment.node.provider)}]
    if built:
        steps.append(
            {
                "name": "Put the image in",
                "env": {"IMAGE": "${{ needs.image.outputs.image }}"},
                "run": f'sed --in-place "s|image: {deployment.software.image}$|image: $IMAGE|" deploy/workload.yaml\n'
                'grep --fixed-strings --quiet "$IMAGE" deploy/workload.yaml\n',
            }
        )
    place = Noted(
        "kubectl apply --server-side --filename deploy/namespace.yaml",
        "First: nothing in it can be compared before the namespace is there.",
    )
    apply = "kubectl apply --server-side --filename deploy/workload.yaml"
    compare = "kubectl diff --server-side --filename deploy/workload.yaml || [ $? -eq 1 ]"
    steps += [{"name": "Make its place", "run": place}, {"name": "Show what changes", "run": compare}]
    if deployment.form is Form.SERVICE:
        wait = _wait(deployment)
        run: Yaml = f"{apply}\n{wait}\n"
        if minutes >= LONGEST_MIN:
            run = Noted(run, "GitHub ends a job after 6 h. All replicas may take longer: the rollout goes on without it.")
        steps += [{"name": "Roll out", "id": "rollout", "run": run}, *_way_back(deployment)]
    elif deployment.starts:
        steps.append({"name": "Set the schedule", "run": apply})
    else:
        delete = f"kubectl --namespace {space} delete job/{name} --ignore-not-found --wait"
        steps.append({"name": "Start the job", "run": Noted(f"{delete}\n{apply}\n", "A Job cannot be changed, only replaced.")})
    job: Object = {"needs": "image" if built else "check", "if": "github.event_name == 'push'", "runs-on": "ubuntu-24.04"}
    if _by_hand(deployment):
        job["if"] = Noted("github.event_name == 'workflow_dispatch'", "It costs money: a person starts it, not every merge.")
    job |= {
        "environment": "production",
        "timeout-minutes": minutes,
        "permissions": {"contents": "read", "id-token": "write"},
        "steps": steps,
    }
    return job


def _minutes(deployment: Deployment) -> int:
    """Of the job that rolls it out: that is as long as machines and weights take, replica by replica."""
    if deployment.form is not Form.SERVICE:
        return 45
    return min(math.ceil(rollout_seconds(deployment) / 60) + AROUND_MIN, LONGEST_MIN)


def _way_back(deployment: Deployment) -> list[Yaml]:
    """Where the cluster says that a rollout failed; one that is only slow goes on."""
    name, space, kind = deployment.name, namespace_of(deployment), scaled_kind(deployment)[1]
    failed = "failure() && steps.rollout.outcome == 'failure'"
    if kind != "Deployment":
        words = f"echo '{name} is not up. Revert the commit to go back: a {kind} keeps no way back that is sure.'"
        return [{"name": "Say how to go back", "if": failed, "run": words}]
    reason = '{.status.conditions[?(@.type=="Progressing")].reason}'
    run = (
        f"reason=$(kubectl --namespace {space} get deployment/{name} --output jsonpath='{reason}')\n"
        f'if [ "$reason" = ProgressDeadlineExceeded ]; then kubectl --namespace {space} rollout undo deployment/{name}; fi\n'
    )
    return [
        {"name": "Go back", "if": Noted(failed, "What ran before runs on. A rollout that is only slow goes on."), "run": run}
    ]


def _wait(deployment: Deployment) -> str:
    name, space = deployment.name, namespace_of(deployment)
    limit = 60 * (_minutes(deployment) - AROUND_MIN)
    if not grouped(deployment):
        kind = scaled_kind(deployment)[1].lower()
        return f"kubectl --namespace {space} rollout status {kind}/{name} --timeout={limit}s"
    seen = "{.status.observedGeneration}/{.status.updatedReplicas}/{.status.readyReplicas}"
    wanted = "{.metadata.generation}/{.spec.replicas}/{.spec.replicas}"
    return (
        f"until kubectl --namespace {space} get leaderworkerset/{name} --output jsonpath='{seen}={wanted}' \\\n"
        f"  | awk -F= '$1 == $2 {{ same = 1 }} END {{ exit !same }}'; do\n"
        f'  if [ "$SECONDS" -gt {limit} ]; then exit 1; fi\n'
        "  sleep 15\ndone"
    )


def _cluster(provider: str) -> Object:
    match provider:
        case "aws":
            return {"run": 'aws eks update-kubeconfig --name "$CLUSTER"'}
        case "gcp":
            return {
                "env": {"PROJECT": "${{ vars.GCP_PROJECT }}", "LOCATION": "${{ vars.GCP_LOCATION }}"},
                "run": "sudo apt-get update && sudo apt-get install --yes google-cloud-cli-gke-gcloud-auth-plugin\n"
                'gcloud container clusters get-credentials "$CLUSTER" --project "$PROJECT" --location "$LOCATION"\n',
            }
    return {
        "env": {"GROUP": "${{ vars.AZURE_GROUP }}"},
        "run": 'sudo az aks install-cli\naz aks get-credentials --resource-group "$GROUP" --name "$CLUSTER"\n'
        "kubelogin convert-kubeconfig --login azurecli\n",
    }
