"""Builds what `measure_networks.py` measures: networks with random weights on the present device, as functions to call."""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable
from typing import Any

import diffusion_networks
import measure_models as base
import measure_variants as variants
import operator_profile
from network_cases import BERT, CNN, LLAMAS, TOKENS, WHISPER, Setting

Work = Callable[[], object]
WARM_S = 0.3  # until clocks are up


class Kit:
    """Builds the work of a setting on the present device."""

    def __init__(self, machine: base.Machine) -> None:
        self.machine, self.torch = machine, machine.torch
        self.bench: variants.VariantBench | None = None
        self.running: Work | None = None

    def dtype(self, setting: Setting) -> Any:
        names = {"bf16": "bfloat16", "fp16": "float16"}
        return getattr(self.torch, names.get(setting.precision, "float32"))

    def build(self, setting: Setting, make: Callable[[], Any]) -> Any:
        torch = self.torch
        torch.set_default_dtype(torch.float32 if setting.training else self.dtype(setting))
        try:
            with torch.device(self.machine.device):
                net = make()
        finally:
            torch.set_default_dtype(torch.float32)
        net = net.train(setting.training).requires_grad_(setting.training)
        return net.to(memory_format=torch.channels_last) if setting.layout == "nhwc" else net

    def trained(self, setting: Setting, net: Any, loss_of: Callable[[], Any]) -> Work:
        torch = self.torch
        free = [parameter for parameter in net.parameters() if parameter.requires_grad]
        plain = setting.model in CNN and setting.model != "convnext_tiny"
        adam = torch.optim.AdamW
        optimiser = torch.optim.SGD(free, lr=1e-3, momentum=0.9) if plain else adam(free, lr=1e-5, fused=self.machine.cuda)
        half = setting.precision in ("bf16", "fp16")

        def work() -> object:
            optimiser.zero_grad(set_to_none=True)
            with torch.autocast(self.machine.device, dtype=self.dtype(setting) if half else torch.bfloat16, enabled=half):
                loss = loss_of()
            loss.backward()
            optimiser.step()
            return loss.detach()

        return work

    def inference(self, run: Work) -> Work:
        def work() -> object:
            with self.torch.no_grad():  # inference_mode would hide what is below conv2d and linear from the profile
                return run()

        return work

    def work(self, setting: Setting) -> Work:
        self.running = None
        self.torch._dynamo.reset()
        make = {"encoder": self.encoder, "speech": self.speech, "transformers": self.language, "attention": self.attention}
        make |= {"vision": self.vision, "vision-train": self.vision, "diffusion": self.diffusion}
        work = make.get(setting.domain, self.llama)(setting)
        self.running = work  # a graph does not keep what it reads
        return base.captured(self.machine, work) if setting.mode == "graph" else work

    def vision(self, setting: Setting) -> Work:
        torch, models = self.torch, importlib.import_module("torchvision.models")
        net = self.build(setting, lambda: getattr(models, setting.model)())
        run = torch.compile(net) if setting.mode == "compile" else net
        dtype = torch.float32 if setting.training else self.dtype(setting)
        pictures = self.machine.normal(setting.batch, 3, setting.length, setting.length, dtype=dtype)
        if setting.layout == "nhwc":
            pictures = pictures.contiguous(memory_format=torch.channels_last)
        if not setting.training:
            return self.inference(lambda: run(pictures))
        targets = self.machine.integers(1000, setting.batch)
        return self.trained(setting, net, lambda: torch.nn.functional.cross_entropy(run(pictures), targets))

    def encoder(self, setting: Setting) -> Work:
        torch, library = self.torch, importlib.import_module("transformers")
        layers, hidden, heads = BERT["bert-large" if "large" in setting.model else "bert-base"]
        sizes = {"num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads}
        config = library.BertConfig(**sizes, intermediate_size=4 * hidden)
        head = setting.training
        kind = library.BertForSequenceClassification if head else library.BertModel
        net = self.build(setting, lambda: kind(config))
        run = torch.compile(net) if setting.mode == "compile" else net
        tokens = self.machine.integers(30000, setting.batch, setting.length)
        if head:
            labels = self.machine.integers(2, setting.batch)
            return self.trained(setting, net, lambda: run(input_ids=tokens, labels=labels).loss)
        pooled = torch.nn.functional.normalize
        return self.inference(lambda: pooled(run(input_ids=tokens).last_hidden_state.mean(1), dim=-1))

    def speech(self, setting: Setting) -> Work:
        library = importlib.import_module("transformers")
        layers, hidden, heads, mels, vocab = WHISPER[setting.model.removesuffix("-encoder")]
        sizes = {"d_model": hidden, "num_mel_bins": mels, "vocab_size": vocab}
        for side in ("encoder", "decoder"):
            sizes |= {f"{side}_layers": layers, f"{side}_attention_heads": heads, f"{side}_ffn_dim": 4 * hidden}
        config = library.WhisperConfig(**sizes)
        net = self.build(setting, lambda: library.WhisperForConditionalGeneration(config))
        sound = self.machine.normal(setting.batch, mels, 2 * setting.length, dtype=self.dtype(setting))
        start = self.machine.integers(vocab, setting.batch, 1)

        def transcribe() -> object:
            heard, past, tokens = net.model.encoder(sound), None, start
            for _ in range(0 if setting.model.endswith("-encoder") else TOKENS):
                out = net(encoder_outputs=heard, decoder_input_ids=tokens, past_key_values=past, use_cache=True)
                past, tokens = out.past_key_values, out.logits[:, -1:].argmax(-1)
            return tokens

        return self.inference(transcribe)

    def language(self, setting: Setting) -> Work:
        """A plain script with transformers: no compilation, dynamic cache, all logits in training."""
        torch, library = self.torch, importlib.import_module("transformers")
        model = LLAMAS[setting.model]
        sizes = {"hidden_size": model.hidden, "intermediate_size": model.ffn, "num_hidden_layers": model.layers}
        sizes |= {"num_attention_heads": model.heads, "num_key_value_heads": model.kv_heads, "vocab_size": model.vocab}
        config = library.LlamaConfig(**sizes, tie_word_embeddings=model.tied, max_position_embeddings=8192)
        net = self.build(setting, lambda: library.LlamaForCausalLM(config))
        tokens = self.machine.integers(model.vocab, setting.batch, setting.length)
        if setting.task == "lora":
            peft = importlib.import_module("peft")
            net = peft.get_peft_model(net.to(torch.bfloat16), peft.LoraConfig(r=16, target_modules="all-linear"))
        if setting.training:
            return self.trained(setting, net, lambda: net(input_ids=tokens, labels=tokens).loss)
        if setting.task == "llm-prefill":
            return self.inference(lambda: net(input_ids=tokens, use_cache=True, logits_to_keep=1).logits)
        with torch.no_grad():
            past = net(input_ids=tokens, use_cache=True, logits_to_keep=1).past_key_values
        return self.inference(lambda: net(input_ids=tokens[:, :1], past_key_values=past, use_cache=True).logits.argmax(-1))

    def diffusion(self, setting: Setting) -> Work:
        torch, dtype, normal = self.torch, self.dtype(setting), self.machine.normal
        wrap: diffusion_networks.Wrap = (
            (lambda block: torch.compile(block, dynamic=False)) if setting.mode == "blocks" else lambda block: block
        )
        parts = diffusion_networks.Parts(torch, self.machine.device, dtype, wrap, setting.layout == "nhwc")
        side, batch = setting.length // diffusion_networks.SHRINK, setting.batch
        shape = diffusion_networks.TRANSFORMERS.get(setting.model)
        if shape:
            denoise = parts.transformer(shape)
            picture = normal(batch, (side // 2) ** 2, shape.hidden, dtype=dtype)
            condition = normal(batch, shape.hidden, dtype=dtype)
            text = normal(batch, shape.text, shape.hidden, dtype=dtype) if shape.text else None
            return self.inference(lambda: denoise(picture, condition, text))
        latents = normal(batch, 4, side, side, dtype=dtype).contiguous(memory_format=parts.format)
        if setting.model == "stable-diffusion-vae":
            decode = parts.vae()
            return self.inference(lambda: decode(latents))
        unet = diffusion_networks.UNETS[setting.model.removesuffix("-unet")]
        step, rows = parts.unet(unet), batch if setting.steps == 1 else 2 * batch
        when, words = normal(rows, 4 * unet.widths[0], dtype=dtype), normal(rows, 77, unet.text_width, dtype=dtype)
        if setting.steps == 1:
            return self.inference(lambda: step(latents, when, words))
        picture_of = parts.vae()

        def draw() -> object:
            x = latents
            for _ in range(setting.steps):
                plain, guided = step(torch.cat((x, x)), when, words).chunk(2)
                x = x - 0.05 * (plain + 7.5 * (guided - plain))
            return picture_of(x)

        return self.inference(draw)

    def attention(self, setting: Setting) -> Work:
        """One token of 8 heads of keys with four queries each; the library repeats nothing (enable_gqa)."""
        torch, kernels = self.torch, importlib.import_module("torch.nn.attention")
        names = {"flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION", "efficient": "EFFICIENT_ATTENTION"}
        backend = getattr(kernels.SDPBackend, names[setting.model.removeprefix("sdpa-")])
        q = self.machine.normal(1, 32, 1, 128, dtype=torch.bfloat16)
        k, v = (self.machine.normal(1, 8, setting.length, 128, dtype=torch.bfloat16) for _ in range(2))
        wide = "efficient" in setting.model
        if wide:  # this kernel takes no shared heads
            k, v = (tensor.repeat_interleave(4, dim=1) for tensor in (k, v))

        def attend() -> object:
            with kernels.sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=not wide)

        return self.inference(attend)

    def llama(self, setting: Setting) -> Work:
        """The models of `measure_models.py` and `measure_variants.py`, their blocks compiled or not."""
        model = LLAMAS[setting.model]
        kind = "lora" if setting.task == "lora" else "moe" if isinstance(model, variants.Moe) else "shape"
        task = "pretrain" if setting.training else setting.task
        case = variants.Variant(model, task, setting.batch, setting.length, "none" if setting.training else "", kind)
        self.bench = self.bench or variants.VariantBench(self.machine, argparse.Namespace())
        self.bench.take(case)
        llama: Any = self.bench.load(model, setting.training)
        if setting.mode != "blocks":
            llama.compiled = llama.block
        elif "compiled" in vars(llama):
            del llama.compiled
        return self.bench._work(llama, case)[0]

    def parameters(self, setting: Setting) -> None:
        """What of the arithmetic is a setting of the whole process."""
        torch, exact = self.torch, setting.precision == "fp32"
        torch.set_float32_matmul_precision("highest" if exact else "high")
        torch.backends.cudnn.allow_tf32 = not exact

    def measure(self, setting: Setting, seconds: float) -> dict[str, Any]:
        machine, torch = self.machine, self.torch
        if self.bench and setting.model not in LLAMAS:
            self.bench.unload()
        self.parameters(setting)
        work = self.work(setting)
        for _ in range(2):  # what is compiled or chosen at the first call
            work()
        machine.wait()
        began = time.perf_counter()
        while time.perf_counter() - began < WARM_S:
            work()
            machine.wait()
        if machine.cuda:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        single = setting.batch == 1 and setting.task not in ("llm-decode", "attention-decode")
        times = machine.times(work, seconds, chained=not single)
        peak = torch.cuda.max_memory_allocated() / base.GB if machine.cuda else None
        tf32 = setting.precision == "tf32"
        result: dict[str, Any] = {"times": times, "peak_gb": peak}
        if setting.long:
            return result
        try:
            by_operator, by_kernel = operator_profile.by_operator, operator_profile.by_kernel
            result["operators"] = by_operator(torch, work, tf32) if setting.mode == "eager" else by_kernel(torch, work)
        except Exception as error:  # the times are worth having without it
            result["unprofiled"] = f"{type(error).__name__}: {error}"[:200]
        return result
