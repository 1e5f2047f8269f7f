"""KEDA: how many copies of a service by its queue and its load, and a job for what waits in a queue of messages.

The rule of a service: one more copy while more than 5 requests wait; one less when less than 20% of what is wanted is used for
10 minutes; nothing in between. A service that is on demand (`idle_after`) has none while nobody asks: the endpoint picker of
`--to gateway` holds requests until there is one, and says how many it holds. Where an engine counts its requests, there are
also never fewer than keep each below the share of its planned load at which one more is due: a queue builds up only after
goals are missed. Copies are those that the autoscaler last wanted, and not pods that there are: those of a rollout would be
added to them, again and again. The plan's hours, where it has some, switch it on and off.
"""

from __future__ import annotations

from chipwise.renderer.cluster import groups, guards, jobs, monitors, on_demand
from chipwise.renderer.cluster.accelerators import resource_of
from chipwise.renderer.cluster.pod import Object, meta, namespace_of, template
from chipwise.renderer.cluster.services import QUEUED, QUEUES, WAITING, scaled_kind
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch.health import listens
from chipwise.renderer.launch.starting import on_one_machine
from chipwise.renderer.layout import grouped, independent, meets, pods
from chipwise.renderer.quoting import kubernetes
from chipwise.renderer.refusals import one_stage
from chipwise.renderer.yaml_text import Noted, Yaml, document

FITS = "services that scale on their queue, load and hours, and jobs that a queue of messages starts"
WRITES = ("scaling.yaml",)
MANIFESTS = True
EXPRESSES = frozenset({"streams", "hours", "groups", "pulls", "slices", "claims"})  # it scales what --to kubernetes wrote
API = "keda.sh/v1alpha1"
IDLE = 0.2  # of what runs: below it, one less
IDLE_S = 600  # for so long


def render(deployment: Deployment) -> list[File]:
    match deployment.form:
        case Form.PIPELINE:
            raise CannotRender(
                "KEDA scales one thing, not stages in order.", remedy=f"Use {one_stage(deployment)}; or --to argo."
            )
        case Form.SESSIONS:
            raise CannotRender("Notebooks are started by people, one each.", remedy="Use --to jupyterhub.")
        case Form.DEVICES:
            raise CannotRender(
                f"{deployment.node.chip} is an edge device: there is nothing to scale.",
                remedy="Use --to compose or dockerfile.",
            )
    resource_of(deployment.node)  # raises for what Kubernetes cannot hand out
    if deployment.form is Form.SERVICE:
        if grouped(deployment):
            groups.check(deployment)
        on_demand.check(deployment)
        return _service(deployment)
    if meets(deployment):
        raise CannotRender(
            "The pods of this job meet under one name, and KEDA gives each job another.",
            remedy="Use --to kueue, which queues it as a whole.",
        )
    if deployment.starts:
        raise CannotRender(
            "This job is started by the clock, not by a queue.", remedy="Use --to kubernetes or kueue: a CronJob."
        )
    if not deployment.software.is_custom:
        raise CannotRender(
            "A job of KEDA must take its work from the queue and acknowledge it. The usual program of its kind does neither: "
            "every job would do the same part, again and again.",
            remedy="Give program.command with a consumer of the queue, or take --to kubernetes or kueue.",
        )
    about = "A job for what waits. Apply it after namespace.yaml of --to kubernetes, in place of its workload.yaml."
    vouched = [trigger_authentication(deployment)] if _provider(deployment) else []
    objects = [*guards.claims(deployment), *vouched, scaled_job(deployment)]
    return [File("scaling.yaml", document(*objects, title=heading(deployment, about)))]


def _service(deployment: Deployment) -> list[File]:
    about = (
        "How many copies. Apply it after the files of --to kubernetes, but leave out of those:\n"
        "the HorizontalPodAutoscaler (KEDA makes its own)"
    )
    if deployment.starts and deployment.stops:
        about += f", and the clocks {deployment.name}-open and {deployment.name}-close (its hours are here)"
    about += "."
    if on_demand.wanted(deployment):
        about += f"\n{on_demand.ABOUT}"
    files = [File("scaling.yaml", document(scaled_object(deployment), title=heading(deployment, about)))]
    if listens(deployment):
        watched = [*monitors.engine(deployment), *([on_demand.monitor(deployment)] if on_demand.wanted(deployment) else [])]
        about_file = "What Prometheus reads of the pods, for the rule in scaling.yaml. It needs the Prometheus operator."
        files.append(File("monitoring.yaml", document(*watched, title=heading(deployment, about_file))))
    return files


def scaled_object(deployment: Deployment) -> Object:
    scaling = deployment.scaling
    assert scaling is not None
    hours = bool(deployment.starts and deployment.stops)
    least_copies: Yaml = Noted(0, "Outside its hours.") if hours else Noted(scaling.minimum, scaling.minimum_reason)
    if on_demand.wanted(deployment):
        least_copies = Noted(0, "While nobody asks. The first request waits for a start, in the queue of the endpoint picker.")
    api, kind = scaled_kind(deployment)
    spec: Object = {
        "scaleTargetRef": {"apiVersion": api, "kind": kind, "name": deployment.name},
        "minReplicaCount": least_copies,
        "maxReplicaCount": scaling.maximum,
        "pollingInterval": 15,
    }
    if on_demand.wanted(deployment):
        spec["cooldownPeriod"] = Noted(int(deployment.idle_s or 0), "As the workload says: so long after the last request.")
    elif hours:
        spec["cooldownPeriod"] = Noted(300, "After hours, what is being answered is answered.")
    spec["fallback"] = Noted(
        {"failureThreshold": 4, "replicas": scaling.usual, "behavior": "currentReplicasIfHigher"},
        "When Prometheus does not answer: what the plan's peak takes, and never fewer than there are.",
    )
    spec["advanced"] = _advanced(deployment, hours)
    spec["triggers"] = _triggers(deployment, hours)
    ownership = Noted(
        "true", "Takes over a HorizontalPodAutoscaler that is there. Leave it out of what you apply: two would fight."
    )
    metadata = meta(deployment) | {"annotations": {"scaledobject.keda.sh/transfer-hpa-ownership": ownership}}
    return {"apiVersion": API, "kind": "ScaledObject", "metadata": metadata, "spec": spec}


def _advanced(deployment: Deployment, hours: bool) -> Object:
    scaling = deployment.scaling
    assert scaling is not None
    rule = f"waiting > {QUEUED} ? copies * 2 : ({_idle(deployment)} ? copies / 2 : copies)"
    reason = (
        f"Copies wanted: more while over {QUEUED} requests wait, fewer while less than {IDLE:.0%} is used, else as they are.\n"
        "How fast is said under behavior; that it doubles or halves only keeps small steps from being taken for noise."
    )
    if _counted(deployment):
        rule = f"max(load / {scaling.busy}, {rule})"
        reason += f"\nNever fewer than keep each below {scaling.busy} requests: {scaling.busy_reason}."
    if on_demand.wanted(deployment):
        rule = f"waiting + held > {QUEUED} ? copies * 2 : ({_idle(deployment)} ? copies / 2 : copies)"
        rule = f"load + held < 1 ? 0 : max(1, (load + held) / {scaling.busy}, {rule})"
        reason += "\nNone while nothing is in work and nothing is held; one as soon as something is."
    open_rule = f"({rule})" if on_demand.wanted(deployment) else f"max(hours, {rule})"
    formula = f"hours < 1 ? 0 : {open_rule}" if hours else rule
    first = deployment.scaling.minimum if hours and deployment.scaling is not None else 1
    slowly = "One at a time, each minute;" if first <= 1 else "When its hours begin, all that it begins with at once;"
    up: list[Yaml] = [
        Noted({"type": "Pods", "value": max(first, 1), "periodSeconds": 60}, slowly),
        Noted({"type": "Percent", "value": 50, "periodSeconds": 60}, "or half as many again, if that is more."),
    ]
    window = Noted(IDLE_S, f"Only what was wanted throughout the last {IDLE_S // 60} minutes.")
    down: list[Yaml] = [{"type": "Pods", "value": 1, "periodSeconds": 120}]
    exact = Noted(
        "0",
        "Without it, a copy that a rollout adds for a while is within the usual tenth of what is wanted from ten on, and is\n"
        "kept. Kubernetes 1.35 and newer; older ones leave it out.",
    )
    return {
        "scalingModifiers": {"formula": Noted(formula, reason), "target": "1", "metricType": "AverageValue"},
        "horizontalPodAutoscalerConfig": {
            "name": deployment.name,
            "behavior": {
                "scaleUp": {"stabilizationWindowSeconds": 0, "policies": up},
                "scaleDown": {"stabilizationWindowSeconds": window, "tolerance": exact, "policies": down},
            },
        },
    }


def _triggers(deployment: Deployment, hours: bool) -> list[Yaml]:
    scaling = deployment.scaling
    assert scaling is not None
    waiting = _waiting(deployment)
    triggers: list[Yaml] = [_prometheus("waiting", waiting[0], str(QUEUED), waiting[1])]
    if _counted(deployment):
        triggers.append(_prometheus("load", *_load(deployment)))
    else:
        used = _used(deployment)
        triggers.append(_prometheus("used", used[0], str(IDLE), used[1]))
    triggers.append(_prometheus("copies", *_copies(deployment)))
    if on_demand.wanted(deployment):
        triggers.append(_prometheus("held", *on_demand.queue_query(deployment)))
    if hours:
        window: Object = {
            "timezone": deployment.time_zone,
            "start": deployment.starts,
            "end": deployment.stops,
            "desiredReplicas": Noted(str(scaling.minimum), "In its hours, never fewer."),
        }
        triggers.append(
            Noted({"type": "cron", "name": "hours", "metadata": window}, "The hours of the workload; zero outside them.")
        )
    return triggers


def _prometheus(name: str, query: str, threshold: str, reason: str) -> Yaml:
    metadata: Object = {
        "serverAddress": Noted(monitors.PROMETHEUS, "Of the Prometheus operator; put yours.")
        if name == "waiting"
        else monitors.PROMETHEUS,
        "query": Noted(query, reason),
        "threshold": threshold,
        "ignoreNullValues": Noted("false", "No answer is a failure, not a zero.") if name == "waiting" else "false",
    }
    return {"type": "prometheus", "name": name, "metadata": metadata}


def _waiting(deployment: Deployment) -> tuple[str, str]:
    """Requests that wait, with the reason for the query."""
    label = f'namespace="{namespace_of(deployment)}"'
    name = WAITING.get(deployment.software.engine)
    if name is not None:
        return f"sum({name}{{{label}}}) or vector(0)", "As the engine counts them; nothing waits where nothing runs."
    return (
        f"sum(requests_waiting{{{label}}}) or vector(0)",
        "Publish what waits in your program under this name, or put its own name here: without it, nothing is added.",
    )


def _counted(deployment: Deployment) -> bool:
    """Whether the engine says how many requests it works on, and the plan how many it is to have."""
    scaling = deployment.scaling
    return deployment.software.engine in QUEUES and scaling is not None and scaling.busy is not None


def _idle(deployment: Deployment) -> str:
    scaling = deployment.scaling
    assert scaling is not None
    if _counted(deployment) and scaling.concurrency is not None:
        return f"load < {IDLE * scaling.concurrency:.3g} * copies"
    return f"used < {IDLE}"


def _load(deployment: Deployment) -> tuple[str, str, str]:
    """The query, the threshold and the reason of what is in work or waits on all copies."""
    scaling, engine = deployment.scaling, deployment.software.engine
    assert scaling is not None
    label = f'namespace="{namespace_of(deployment)}"'
    parts = " + ".join(f"(sum({name}{{{label}}}) or vector(0))" for name in (QUEUES[engine], WAITING[engine]))
    reason = "Requests in work and waiting, on all copies. A GPU looks busy with a single one, so its own figure says nothing."
    return parts, str(scaling.busy), reason


def _copies(deployment: Deployment) -> tuple[str, str, str]:
    scaling = deployment.scaling
    assert scaling is not None
    name, metric = deployment.name, "kube_horizontalpodautoscaler_status_desired_replicas"
    query = f'max({metric}{{namespace="{namespace_of(deployment)}",horizontalpodautoscaler="{name}"}})'
    reason = (
        "Copies that the autoscaler last wanted, from kube-state-metrics. Not pods that there are: a rollout has more of them\n"
        "for a while, and each would be wanted from then on."
    )
    return f"{query} or vector({scaling.minimum})", "1", reason


def _used(deployment: Deployment) -> tuple[str, str]:
    """Part of what runs that works. Where it is not known, all of it: then nothing is taken away."""
    node = deployment.node
    label = f'namespace="{namespace_of(deployment)}"'
    if node.accelerated and node.kind == "gpu" and node.vendor == "NVIDIA":
        labelled = f'exported_namespace="{namespace_of(deployment)}"'
        reason = (
            "From the DCGM exporter; `namespace`, not `exported_namespace`, where its own labels are kept. Unknown is busy."
        )
        return f"avg(DCGM_FI_DEV_GPU_UTIL{{{labelled}}}) / 100 or vector(1)", reason
    if node.accelerated and node.kind == "neuron":
        return f"avg(neuroncore_utilization_ratio{{{label}}}) or vector(1)", "From the Neuron monitor. Unknown is busy."
    requests = f'kube_pod_container_resource_requests{{{label},resource="cpu"}}'
    return (
        f'sum(rate(container_cpu_usage_seconds_total{{{label},container="main"}}[5m])) / sum({requests}) or vector(1)',
        "Of the processors that were asked for. Unknown is busy.",
    )


def _provider(deployment: Deployment) -> str:
    """Who vouches for KEDA when it asks how long the queue is."""
    return {"aws": "aws", "gcp": "gcp", "azure": "azure-workload"}.get(deployment.node.provider, "")


def trigger_authentication(deployment: Deployment) -> Object:
    reason = "KEDA's own identity, with the right to read the length of this queue; no key is kept in the cluster."
    return {
        "apiVersion": API,
        "kind": "TriggerAuthentication",
        "metadata": meta(deployment),
        "spec": {"podIdentity": {"provider": Noted(_provider(deployment), reason)}},
    }


def scaled_job(deployment: Deployment) -> Object:
    per_worker = QUEUED if independent(deployment) else 1
    workers = pods(deployment) if independent(deployment) else 1
    trigger = _queue(deployment, per_worker)
    if _provider(deployment):
        trigger["authenticationRef"] = {"name": deployment.name}
    reason = "Each message is a run."
    if per_worker > 1:
        reason = (
            f"One more worker for every {per_worker} parts that wait; each works until nothing waits,"
            " and its machine goes with it."
        )
    job = jobs.spec(deployment, alone=True)
    job |= {"completions": 1, "parallelism": 1}
    del job["completionMode"]  # no numbers: what a job works on comes from the queue
    del job["ttlSecondsAfterFinished"]  # KEDA keeps the history
    takes = "It takes messages from the queue and acknowledges what is done; with nothing left, it ends."
    words: Yaml = [kubernetes(word) for word in on_one_machine(deployment)]
    job["template"] = template(deployment, Noted(words, takes), {"restartPolicy": "Never"})
    return {
        "apiVersion": API,
        "kind": "ScaledJob",
        "metadata": meta(deployment),
        "spec": {
            "pollingInterval": 30,
            "maxReplicaCount": Noted(workers, "The most that the plan has at once."),
            "successfulJobsHistoryLimit": 5,
            "failedJobsHistoryLimit": 10,
            "scalingStrategy": {"strategy": Noted("accurate", "Messages that are being worked on no longer count as waiting.")},
            "rollout": {"strategy": Noted("gradual", "A change of this file ends no running job.")},
            "triggers": [Noted(trigger, reason)],
            "jobTargetRef": job,
        },
    }


def _queue(deployment: Deployment, per_worker: int) -> Object:
    """The provider's own queue, called like the workload."""
    name, node = deployment.name, deployment.node
    events = (
        Noted(name, "Gets a message for each object that arrives at the workload's trigger.") if deployment.trigger else name
    )
    match node.provider:
        case "aws":
            metadata: Object = {
                "queueURL": events,
                "queueLength": str(per_worker),
                "awsRegion": node.region,
                "scaleOnInFlight": "false",
            }
            return {"type": "aws-sqs-queue", "metadata": metadata}
        case "gcp":
            metadata = {"subscriptionName": events, "mode": "SubscriptionSize", "value": str(per_worker)}
            return {"type": "gcp-pubsub", "metadata": metadata}
        case "azure":
            bus = Noted(name, "Of the Service Bus; put yours.")
            return {
                "type": "azure-servicebus",
                "metadata": {"namespace": bus, "queueName": events, "messageCount": str(per_worker)},
            }
    address = Noted(f"redis.{namespace_of(deployment)}.svc:6379", "A list of Redis; KEDA has other kinds of queues as well.")
    return {"type": "redis", "metadata": {"address": address, "listName": name, "listLength": str(per_worker)}}
