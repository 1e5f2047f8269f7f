"""What engines, exporters and the cluster publish, by its own names, and the queries over it.

Names of engines were read in the sources of the pinned releases: vLLM 0.11.0, 0.16.0 and 0.32.0 (vllm/v1/metrics/loggers.py),
SGLang 0.5.21 (srt/observability/metrics_collector.py); of TGI 3.3 in its documentation; of TEI in router/src/lib.rs
and core/src/queue.rs (its counters appear with the first request). Names of chips: DCGM exporter
(etc/default-counters.csv), the Prometheus front end of the Neuron monitor, AMD's device metrics exporter. Names that begin with
kube_ are those of kube-state-metrics.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from chipwise.renderer.cluster.accelerators import resource_of
from chipwise.renderer.cluster.pod import namespace_of
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.launch import streams
from chipwise.renderer.layout import grouped
from chipwise.renderer.quoting import dns_name

_METRIC_SIGNS = re.compile(r"[^a-zA-Z0-9_]")  # kube-state-metrics writes the names of resources without them
WINDOW = "5m"  # over which rates are taken


@dataclass(frozen=True, slots=True)
class EngineMetrics:
    """Names of one engine; an empty one is not published. Times are histograms in seconds, by the kind of goal."""

    running: str
    waiting: str
    times: dict[str, str]
    tokens: str  # counter of those that it wrote
    cache: str = ""  # part of the KV cache in use
    source: str = ""


@cache
def _engines() -> dict[str, EngineMetrics]:
    return {
        "vllm": EngineMetrics(
            running="vllm:num_requests_running",
            waiting="vllm:num_requests_waiting",
            times={
                "ttft": "vllm:time_to_first_token_seconds",
                "tpot": "vllm:request_time_per_output_token_seconds",
                "latency": "vllm:e2e_request_latency_seconds",
            },
            tokens="vllm:generation_tokens_total",
            cache="vllm:kv_cache_usage_perc",
            source="vllm/v1/metrics/loggers.py of vLLM",
        ),
        "sglang": EngineMetrics(
            running="sglang:num_running_reqs",
            waiting="sglang:num_queue_reqs",
            times={
                "ttft": "sglang:time_to_first_token_seconds",
                "tpot": "sglang:inter_token_latency_seconds",
                "latency": "sglang:e2e_request_latency_seconds",
            },
            tokens="sglang:generation_tokens_total",
            cache="sglang:token_usage",
            source="srt/observability/metrics_collector.py of SGLang, which publishes them with --enable-metrics only",
        ),
        "tgi": EngineMetrics(
            running="tgi_batch_current_size",
            waiting="tgi_queue_size",
            times={"tpot": "tgi_request_mean_time_per_token_duration", "latency": "tgi_request_duration"},
            tokens="tgi_request_generated_tokens_sum",
            source="the page on metrics of TGI, which publishes no time to the first token",
        ),
        "tei": EngineMetrics(
            running="",
            waiting="te_queue_size",
            times={"latency": "te_request_duration"},
            tokens="",
            source="router/src/lib.rs of TEI",
        ),
    }


def engine_of(deployment: Deployment) -> EngineMetrics | None:
    """None: a program whose metrics we do not know."""
    return _engines().get(deployment.software.engine) if deployment.software.port is not None else None


def namespace_label(deployment: Deployment) -> str:
    return f'namespace="{namespace_of(deployment)}"'


def percentile(goal: str) -> tuple[str, float]:
    """`ttft p95` as its kind and its part of one."""
    kind, rank = goal.split()
    return kind, float(rank.removeprefix("p")) / 100.0


def time_query(deployment: Deployment, goal: str, pods: str = "") -> str | None:
    """A percentile over all replicas, or over those that a further label chooses; None: the engine does not publish it."""
    engine, (kind, part) = engine_of(deployment), percentile(goal)
    if engine is None or kind not in engine.times:
        return None
    buckets = f"{engine.times[kind]}_bucket{{{namespace_label(deployment)}{pods}}}"
    return f"histogram_quantile({part:g}, sum by (le) (rate({buckets}[{WINDOW}])))"


def seen_query(deployment: Deployment, goal: str, pods: str = "") -> str | None:
    """Requests that `time_query` judges by."""
    engine, (kind, _) = engine_of(deployment), percentile(goal)
    if engine is None or kind not in engine.times:
        return None
    return f"sum(increase({engine.times[kind]}_count{{{namespace_label(deployment)}{pods}}}[{WINDOW}]))"


def unread(deployment: Deployment, engine: EngineMetrics) -> str:
    """True while nothing reads the engine. Where its metrics come with the first request only, by the reading itself."""
    inside = namespace_label(deployment)
    return f"absent({engine.running}{{{inside}}})" if engine.running else f"absent(up{{{inside}}} == 1)"


def total(deployment: Deployment, name: str) -> str:
    return f"sum({name}{{{namespace_label(deployment)}}})"


@dataclass(frozen=True, slots=True)
class ChipQueries:
    """Queries about the chips that the pods of a deployment hold."""

    busy: str  # mean part of the time in which they work, of one
    faults: str  # a series for each chip with a fault that is the machine's
    fault_words: str
    memory: str = ""  # bytes in use
    watts: str = ""


# Faults of a program (bad access, its own stop), not of the chip: NVIDIA's catalog of XID errors.
_OF_PROGRAMS = (13, 31, 43, 45)


def chips_of(deployment: Deployment) -> ChipQueries | None:
    """None: nothing that we know publishes them."""
    node = deployment.node
    if not node.accelerated:
        return None
    holder = f'exported_namespace="{namespace_of(deployment)}"'
    if node.kind == "gpu" and node.vendor == "NVIDIA":
        unlike = "".join(f" != {number}" for number in _OF_PROGRAMS)
        sliced = bool(node.profile)  # a slice has no DCGM_FI_DEV_GPU_UTIL
        return ChipQueries(
            busy=f"avg(DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{holder}}})"
            if sliced
            else f"avg(DCGM_FI_DEV_GPU_UTIL{{{holder}}}) / 100",
            faults=f"max_over_time(DCGM_FI_DEV_XID_ERRORS{{{holder}}}[15m]) != 0{unlike}",
            fault_words="XID {{ $value }} on GPU {{ $labels.gpu }} of {{ $labels.Hostname }}",
            memory=f"sum(DCGM_FI_DEV_FB_USED{{{holder}}}) * 1048576",
            watts=f"sum(DCGM_FI_DEV_POWER_USAGE{{{holder}}})",
        )
    if node.kind == "gpu" and node.vendor == "AMD":
        return ChipQueries(
            busy=f"avg(gpu_gfx_activity{{{holder}}}) / 100",
            faults=f"max_over_time(gpu_ecc_uncorrect_total{{{holder}}}[15m]) > 0",
            fault_words="{{ $value }} uncorrected memory errors on GPU {{ $labels.gpu_id }} of {{ $labels.hostname }}",
            memory=f"sum(gpu_used_vram{{{holder}}}) * 1048576",
            watts=f"sum(gpu_power_usage{{{holder}}})",
        )
    if node.kind == "neuron":
        on_its_nodes = f"and on (node) kube_pod_info{{{namespace_label(deployment)}}}"
        events = 'hardware_ecc_events_total{event_type=~"(mem|sram)_ecc_uncorrected"}'
        return ChipQueries(
            busy=f"avg(neuroncore_utilization_ratio {on_its_nodes})",
            faults=f"(increase({events}[30m]) > 0) {on_its_nodes}",
            fault_words="uncorrected memory errors on device {{ $labels.neuron_device_index }} of {{ $labels.node }}",
            memory=f'sum(neuron_runtime_memory_used_bytes{{memory_location="neuron_device"}} {on_its_nodes})',
        )
    return None


def own_query(deployment: Deployment, joined: str, metric: str) -> str:
    """As `chipwise watch JOB --serve` publishes it, where no exporter of the vendor is: by the names of its jobs, which
    Prometheus has under `exported_job` since it has a `job` of its own."""
    return f'{joined}(chipwise_device_{metric}{{exported_job=~"{dns_name(deployment.name, 50)}-.*"}})'


def machines_query(deployment: Deployment) -> str:
    """Machines with a pod of it that has not ended, and that holds chips where there are any."""
    inside = namespace_label(deployment)
    living = f'(kube_pod_status_phase{{{inside},phase=~"Pending|Running"}} == 1)'
    pods = f'kube_pod_info{{{inside},node!=""}} and on (namespace, pod) {living}'
    if (resource := resource_of(deployment.node)) is not None:  # a gateway beside it stands on machines of its own
        name = _METRIC_SIGNS.sub("_", resource)
        requests_chips = f'kube_pod_container_resource_requests{{{inside},resource="{name}"}} > 0'
        pods = f"{pods} and on (namespace, pod) ({requests_chips})"
    return f"count(count by (node) ({pods}))"


def machine_usd(deployment: Deployment) -> float:
    return deployment.predicted.usd_per_hour / max(deployment.machines, 1)


def replicas(deployment: Deployment) -> tuple[str, str]:
    """Queries of those that answer and of those that are wanted. The leaders of groups are a StatefulSet of the set's name.
    Else by ReplicaSets, which a Deployment, a Rollout of Argo and the Deployment of KServe all keep, by their names."""
    inside, name = namespace_label(deployment), deployment.name
    if grouped(deployment) or streams.live(deployment):
        chosen = f'{{{inside},statefulset="{name}"}}'
        return f"kube_statefulset_status_replicas_ready{chosen}", f"kube_statefulset_replicas{chosen}"
    chosen = f'{{{inside},replicaset=~"{name}(-predictor)?-[a-z0-9]+"}}'
    ready, wanted = f"kube_replicaset_status_ready_replicas{chosen}", f"kube_replicaset_spec_replicas{chosen}"
    return f"sum by (namespace) ({ready})", f"sum by (namespace) ({wanted})"
