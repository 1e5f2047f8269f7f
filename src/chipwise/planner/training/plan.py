"""Plans of training and fine-tuning transformers over tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.errors import BadInput
from chipwise.perf.arrays import column
from chipwise.perf.part import Part
from chipwise.perf.rows import model_key
from chipwise.perf.setup import ALL_LINEAR, RECOMPUTE, TARGETS
from chipwise.perf.transformer import layer_of, pair_layer
from chipwise.planner import missing
from chipwise.planner.assemble import assemble
from chipwise.planner.case import Described, PlanningCase
from chipwise.planner.counts import chip_limits
from chipwise.planner.defaults import LORA_RANK, SEQUENCE_TOKENS, training_batch
from chipwise.planner.ground import asked_goals, ground_for, shapes_offered, stored
from chipwise.planner.limits import allowed
from chipwise.planner.pricing import Checkpoint, Work, price, tally
from chipwise.planner.rules import rules_of
from chipwise.planner.training import recipe
from chipwise.planner.training import search as learning
from chipwise.planner.training.missing import memory_of_learning, reason_of, unable
from chipwise.planner.training.splits import LearningJob
from chipwise.planner.values.plan import Counts, Grounds, Plan
from chipwise.planner.values.split import UNSPLIT
from chipwise.predictor.kinds.ask import Ask, known_model
from chipwise.predictor.named import check_context, stated_context
from chipwise.predictor.pairs import pairs_of
from chipwise.workload.goals import Precision
from chipwise.workload.kinds import Finetune, Learning
from chipwise.workload.model.shape import DecoderShape, EncoderDecoderShape, EncoderShape
from chipwise.workload.volume import checkpoint_bytes

if TYPE_CHECKING:
    from chipwise.predictor.known import Known


def plan_learning(known: Known, path: str, work: Learning, objective: str | None, top: int) -> Plan:
    extended, name, shape = known_model(Ask(known, path, "", {}), work)
    if not isinstance(shape, DecoderShape | EncoderShape | EncoderDecoderShape):
        raise BadInput(f"Training of {name} is not planned yet.", remedy=f"chipwise predict {path} --on CHIP")
    ground = ground_for(extended)
    pairs = pairs_of(extended.find_model(name), work.sequence_length, work.target_length)
    usual = min(SEQUENCE_TOKENS, stated_context(extended, name) or SEQUENCE_TOKENS)
    seq = int(work.sequence_length or usual) if pairs is None else int(pairs.tokens[0])
    check_context(extended, name, "sequence_length", column(seq) if pairs is None else pairs.longest)
    tokens = (work.tokens or (work.samples or 0.0) * seq) * work.epochs
    samples = work.batch_samples or (work.batch_tokens or 0.0) / seq
    batch = max(round(samples) if samples else training_batch(work, shape.parameters, seq), 1)
    layer = layer_of(shape) if pairs is None else pair_layer(pairs.shape, float(pairs.inputs[0]), float(pairs.targets[0]))
    rules = rules_of(extended, work.limits)
    ok = allowed(ground.fleet, rules, ground.market.prices)
    shapes = shapes_offered(ground.fleet, ok.priced)
    job = LearningJob(
        model=model_key(name),
        layer=layer,
        tokens=tokens,
        seq=seq,
        batch=batch,
        method=work.method.value if isinstance(work, Finetune) else "full",
        rank=int(work.rank or LORA_RANK) if isinstance(work, Finetune) else LORA_RANK,
        targets=TARGETS[work.targets] if isinstance(work, Finetune) else ALL_LINEAR,
        optimizer=work.optimizer.value,
        precisions=(_precision(work, [ground.fleet.part(at) for at in shapes]),),
        recompute=(RECOMPUTE[work.recompute.value],) if work.recompute is not None else (0, 1, 2),
        by_recipe=recipe.is_taken(work),
    )
    limits = chip_limits(work.limits)
    ways = learning.search(job, ground.fleet, extended.model, shapes.tolist(), limits)
    checkpoint = Checkpoint(checkpoint_bytes(work, shape), every_s=work.checkpoint_every)
    work_of = Work(
        shape=ways.shape, machines=ways.machines, seconds=ways.seconds, low=ways.low, high=ways.high, power_w=ways.power_w
    )
    priced = price(work_of, ok.priced, ground.market, checkpoint, work.data)

    def describe(at: int) -> Described:
        share = float(ways.memory[at]) / ground.fleet.shapes[ways.shape[at]].memory_bytes
        return Described(ways.precision.name_at(at), ways.split[at] or UNSPLIT, share, ways.provenance[at])

    considered, estimated = (tally(ground.fleet, ok.offers, work_of, one) for one in (ways.splits, ways.predicted))
    units, unit = (tokens / 1e6, "million tokens") if pairs is None else (tokens / seq / 1e6, "million pairs")
    case = PlanningCase(
        workload=work.name,
        kind=work.kind if isinstance(work, Finetune) else "train",
        per="job",
        units=units,
        unit=unit,
        goals=asked_goals(extended, work, rules, objective, False),
        stored=stored(ground.tiers, work, units),
        data=work.data,
    )
    counts = Counts(considered, considered - estimated, estimated)
    item = "sequences" if pairs is None else "pairs"
    notes = () if samples else (f"Batch of {batch:,} {item} assumed: {batch * seq:,} tokens a step.",)
    notes = notes if pairs is None else (*notes, *pairs.notes)
    searched = missing.Searched(ground.fleet, extended.model, shapes.tolist(), limits)
    lacks = missing.none_offered(ok, rules, ground.fleet, ground.market.prices) or (
        memory_of_learning(job, ways, searched) if len(ways.shape) else missing.no_way(searched, job.precisions)
    )
    grounds = Grounds(rules, lambda some: reason_of(job, replace(searched, shapes=some)))
    reasons = unable(job, ways, searched)
    plan = assemble(case, ground.fleet, priced, describe, ok, lacks, counts, top, reasons, grounds)
    if job.precisions != (work.precision.value,):
        notes = (*notes, "Training in fp16 with a scaled loss: none of the chips that are allowed has bf16 arithmetic.")
    return replace(plan, notes=(*plan.notes, *notes), untried_on_amd=recipe.untried_on_amd(work))


def _precision(work: Learning, parts: Sequence[Part]) -> str:
    """As stated; left open bf16, and fp16 where no chip that is allowed has bf16, as on V100 and T4."""
    able = [one for one in (Precision.BF16, Precision.FP16) if any(learning.has(part, one.value) for part in parts)]
    return (work.precision if "precision" in work.model_fields_set or not able else able[0]).value
