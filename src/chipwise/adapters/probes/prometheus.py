"""Any endpoint that publishes Prometheus text: the DCGM exporter, vLLM, TGI and SGLang, by their own names.

Names are those that `renderer/monitoring/measures.py` lists, and of DCGM those of its field identifiers. An exporter may lie:
what is no number, below zero or beyond what can be is a reason. Not more than `MOST_BYTES` are read, within `WITHIN_S`.
"""

from __future__ import annotations

import math
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from chipwise.errors import BadInput, NotAllowed, OutsideFailed, TryLater
from chipwise.observe.probe import MOST_SHARE, usable
from chipwise.observe.sample import SERVER, NoReading, Reading, Sample, SampledDevice
from chipwise.units import MIB

WITHIN_S = 3.0
MOST_BYTES = 8 << 20
MOST_DEVICES = 1024
_AUTHOR = "the exporter"
_BLANK = 9.2e18  # DCGM writes numbers from there on where it has none
_LINE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"\s*,?\s*')


@dataclass(frozen=True, slots=True)
class _Meaning:
    metric: str
    scale: float = 1.0
    highest: float = math.inf
    adds: bool = True  # series of one name are added up; else the greatest counts


def _share(metric: str, scale: float = 1.0) -> _Meaning:
    return _Meaning(metric, scale, MOST_SHARE, adds=False)


# https://docs.nvidia.com/datacenter/dcgm/latest/dcgm-api/dcgm-api-field-ids.html
_DCGM = {
    "DCGM_FI_DEV_GPU_UTIL": _share("busy", 0.01),
    "DCGM_FI_DEV_MEM_COPY_UTIL": _share("memory_busy", 0.01),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": _share("graphics_active"),
    "DCGM_FI_PROF_SM_ACTIVE": _share("sm_active"),
    "DCGM_FI_PROF_SM_OCCUPANCY": _share("sm_occupancy"),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": _share("tensor_active"),
    "DCGM_FI_PROF_DRAM_ACTIVE": _share("dram_active"),
    "DCGM_FI_PROF_PIPE_FP64_ACTIVE": _share("fp64_active"),
    "DCGM_FI_PROF_PIPE_FP32_ACTIVE": _share("fp32_active"),
    "DCGM_FI_PROF_PIPE_FP16_ACTIVE": _share("fp16_active"),
    "DCGM_FI_PROF_PCIE_RX_BYTES": _Meaning("pcie_received"),
    "DCGM_FI_PROF_PCIE_TX_BYTES": _Meaning("pcie_sent"),
    "DCGM_FI_PROF_NVLINK_RX_BYTES": _Meaning("nvlink_received"),
    "DCGM_FI_PROF_NVLINK_TX_BYTES": _Meaning("nvlink_sent"),
    "DCGM_FI_DEV_FB_USED": _Meaning("memory_used", MIB),
    "DCGM_FI_DEV_FB_TOTAL": _Meaning("memory_total", MIB),
    "DCGM_FI_DEV_POWER_USAGE": _Meaning("power"),
    "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": _Meaning("power_limit"),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": _Meaning("energy", 1e-3),
    "DCGM_FI_DEV_GPU_TEMP": _Meaning("temperature", adds=False),
    "DCGM_FI_DEV_MEMORY_TEMP": _Meaning("memory_temperature", adds=False),
    "DCGM_FI_DEV_SM_CLOCK": _Meaning("clock", adds=False),
    "DCGM_FI_DEV_MAX_SM_CLOCK": _Meaning("clock_max", adds=False),
    "DCGM_FI_DEV_PCIE_LINK_GEN": _Meaning("pcie_generation", adds=False),
    "DCGM_FI_DEV_PCIE_MAX_LINK_GEN": _Meaning("pcie_generation_max", adds=False),
    "DCGM_FI_DEV_PCIE_LINK_WIDTH": _Meaning("pcie_width", adds=False),
    "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH": _Meaning("pcie_width_max", adds=False),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": _Meaning("pcie_replays"),
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": _Meaning("ecc_corrected"),
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": _Meaning("ecc_uncorrected"),
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": _Meaning("remapped_rows"),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": _Meaning("remapped_rows"),
    "DCGM_FI_DEV_ROW_REMAP_PENDING": _Meaning("remap_pending", adds=False),
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": _Meaning("remap_failed", adds=False),
    "DCGM_FI_DEV_XID_ERRORS": _Meaning("xid", adds=False),
}
_SERVERS = {
    "vllm:num_requests_running": _Meaning("running"),
    "vllm:num_requests_waiting": _Meaning("waiting"),
    "vllm:kv_cache_usage_perc": _share("kv_used"),
    "vllm:gpu_cache_usage_perc": _share("kv_used"),  # before 0.11
    "vllm:prompt_tokens_total": _Meaning("prompt_tokens"),
    "vllm:generation_tokens_total": _Meaning("answer_tokens"),
    "vllm:request_success_total": _Meaning("requests"),
    "vllm:num_preemptions_total": _Meaning("preempted"),
    "vllm:prefix_cache_hits_total": _Meaning("prefix_hits"),
    "tgi_batch_current_size": _Meaning("running"),
    "tgi_queue_size": _Meaning("waiting"),
    "tgi_request_input_length_sum": _Meaning("prompt_tokens"),
    "tgi_request_generated_tokens_sum": _Meaning("answer_tokens"),
    "tgi_request_success": _Meaning("requests"),
    "sglang:num_running_reqs": _Meaning("running"),
    "sglang:num_queue_reqs": _Meaning("waiting"),
    "sglang:token_usage": _share("kv_used"),
    "sglang:prompt_tokens_total": _Meaning("prompt_tokens"),
    "sglang:generation_tokens_total": _Meaning("answer_tokens"),
    "sglang:num_requests_total": _Meaning("requests"),
}


@dataclass(frozen=True, slots=True)
class Published:
    name: str
    labels: Mapping[str, str]
    value: float


def connect(url: str, fetch: Callable[[str], str] | None = None) -> Endpoint:
    """Raises where nothing answers there, or nothing that we know."""
    if not re.match(r"https?://[^/\s]+", url):
        raise BadInput(
            f"{url[:80]!r} is not the address of an endpoint.", remedy="Write it like http://localhost:8000/metrics."
        )
    endpoint = Endpoint(url, fetch or fetched)
    endpoint.check()
    return endpoint


class Endpoint:
    def __init__(self, url: str, fetch: Callable[[str], str]) -> None:
        self._url, self._fetch = url, fetch
        self._known: dict[str, tuple[str, ...]] = {}  # metrics of each source, to be reported as missing when it is silent
        self._devices: dict[str, SampledDevice] = {}
        self._server = f"{SERVER}:{address(url)}"

    def check(self) -> None:
        samples = self._samples(0.0, self._fetch(self._url))
        if not samples:
            raise OutsideFailed(
                f"{self._url[:80]} publishes no metric that chipwise knows.",
                remedy="It reads those of the DCGM exporter, vLLM, TGI and SGLang.",
            )

    def devices(self) -> Sequence[SampledDevice]:
        return tuple(self._devices.values())

    def read(self, at_s: float) -> Sequence[Sample]:
        try:
            return self._samples(at_s, self._fetch(self._url))
        except OutsideFailed as error:
            silent = NoReading(error.message[:200])
            return [Sample(at_s, source, dict.fromkeys(names, silent)) for source, names in self._known.items()]

    def close(self) -> None: ...

    def _samples(self, at_s: float, text: str) -> list[Sample]:
        by_source: dict[str, dict[str, Reading]] = {}
        rows = [row for row in published(text) if row.name in _DCGM or row.name in _SERVERS]
        hosts = {row.labels.get("Hostname", "") for row in rows if row.name in _DCGM}
        for row in rows:
            if (meaning := _SERVERS.get(row.name)) is not None:
                source = self._server
            elif (meaning := _DCGM.get(row.name)) is None or "GPU_I_ID" in row.labels:
                continue  # a slice of a GPU: its own numbers say nothing of the whole
            else:
                host = f"{row.labels.get('Hostname', '')}:" if len(hosts) > 1 else ""
                source = f"nvidia:{host}{row.labels.get('gpu', '0')}"[:200]
                if source not in self._devices and len(self._devices) < MOST_DEVICES:
                    labels = row.labels
                    name = labels.get("modelName") or "NVIDIA device"
                    driver = labels.get("DCGM_FI_DRIVER_VERSION", "")
                    self._devices[source] = SampledDevice(
                        source, name[:200], identity=labels.get("UUID", "")[:200], driver=driver[:200]
                    )
            if source in by_source or len(by_source) < MOST_DEVICES:
                _add(by_source.setdefault(source, {}), meaning, row.value)
        self._known |= {source: tuple(readings) for source, readings in by_source.items()}
        return [Sample(at_s, source, readings) for source, readings in by_source.items()]


def _add(readings: dict[str, Reading], meaning: _Meaning, value: float) -> None:
    blank = math.isfinite(value) and value >= _BLANK
    reading = NoReading(f"{_AUTHOR} has no value for it") if blank else usable(value * meaning.scale, _AUTHOR, meaning.highest)
    before = readings.get(meaning.metric)
    if before is None or isinstance(reading, NoReading):
        readings[meaning.metric] = reading
    elif not isinstance(before, NoReading):
        readings[meaning.metric] = before + reading if meaning.adds else max(before, reading)


def published(text: str) -> Iterable[Published]:
    """Lines of the text format; whatever is none of them is skipped."""
    for line in text.splitlines():
        if line.startswith("#") or not (match := _LINE.fullmatch(line)):
            continue
        name, labels, value = match.groups()
        try:
            number = float(value)
        except ValueError:
            continue
        yield Published(name, dict(_LABEL.findall(labels)) if labels else {}, number)


def address(url: str) -> str:
    """http://localhost:8000/metrics: localhost:8000."""
    return re.sub(r"^https?://(?:[^/@]*@)?|/.*$", "", url)[:100]


def fetched(url: str) -> str:
    """Of one request, within its bounds."""
    until = time.monotonic() + WITHIN_S
    request = urllib.request.Request(url, headers={"Accept": "text/plain"})
    try:
        with urllib.request.urlopen(request, timeout=WITHIN_S) as answer:
            content = b""
            while chunk := answer.read1(1 << 16):
                content += chunk
                if len(content) > MOST_BYTES:
                    raise OutsideFailed(
                        f"{address(url)} sends more than {MOST_BYTES >> 20} MiB.",
                        remedy="Point it to a smaller set of metrics.",
                    )
                if time.monotonic() > until:
                    raise TryLater(f"{address(url)} did not finish within {WITHIN_S:g} s.", remedy="Check what slows it down.")
            return content.decode(errors="replace")
    except urllib.error.HTTPError as error:
        kind = NotAllowed if error.code in (401, 403) else OutsideFailed
        raise kind(f"{address(url)} answers with status {error.code}.", remedy="Check the path, such as /metrics.") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise TryLater(f"{address(url)} does not answer: {reason}.", remedy="Check that it runs and is reachable.") from error
