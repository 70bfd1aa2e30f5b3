"""
Fine-tune a causal model of Hugging Face, fully or by LoRA, fully sharded with FSDP2.

    holdfast-run --nproc-per-node 4 --spares 1 hugging_face.py --data text.tokens
    holdfast-run --nproc-per-node 4 --spares 1 hugging_face.py --data text.tokens --lora 8

--model is a folder with config.json and safetensors files; without it a tiny Llama starts with random weights.
Accelerate and Trainer are not used: they make groups and count steps themselves.
"""

import json
import os
import zlib
from collections.abc import Sequence
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from safetensors import safe_open
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, LlamaConfig, PretrainedConfig

import holdfast_runtime as holdfast
from recipe import Report, data_mesh, dataset, mesh_of, parser, precision

TINY = LlamaConfig(
    vocab_size=257,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    tie_word_embeddings=False,
)


def main() -> None:
    flags = parser(__doc__)
    flags.add_argument("--model", type=Path, help="a folder as save_pretrained makes it. Default: a tiny Llama")
    flags.add_argument("--lora", type=int, default=0, metavar="RANK", help="of adapters. Default: 0, all is trained")
    flags.add_argument("--context", type=int, default=16, help="tokens of a sequence. Default: 16")
    args = flags.parse_args()
    holdfast.init_process_group()
    device = holdfast.device()
    mesh = mesh_of(args, device)

    model = on_meta(AutoConfig.from_pretrained(args.model) if args.model else TINY, lora=args.lora)
    layers = set(model.get_base_model()._no_split_modules if args.lora else model._no_split_modules)
    for module in [each for each in model.modules() if type(each).__name__ in layers] + [model]:
        fully_shard(module, mesh=data_mesh(mesh), mp_policy=precision(device))
    model.to_empty(device=device)
    load(model, args.model, mesh=mesh["shard"], seed=1)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=args.rate, weight_decay=0.0)

    data = dataset(args, args.context, mesh)
    run = holdfast.Run(model, optimizer, state={"data": data}, snapshot_every=args.snapshot_every, survive=args.survive)
    report = Report(run, args)
    for step in run.steps(args.steps):
        with step:
            inputs, targets = (part.to(device) for part in data.batch(step.number, run.data_rank).torch())
            logits = model(input_ids=inputs, use_cache=False).logits
            loss = cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
            loss.backward()
            clip_grad_norm_(trained, 1.0)
            step.update(loss)
            report.step(step)


def on_meta(config: PretrainedConfig, *, lora: int) -> nn.Module:
    """Model on the meta device. Trained parameters have 32 bits; on a GPU it computes in bfloat16."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        if lora:
            adapters = LoraConfig(r=lora, lora_alpha=2 * lora, target_modules="all-linear", task_type="CAUSAL_LM")
            model = get_peft_model(model, adapters)
    model.train()
    return model


@torch.no_grad()
def load(model: nn.Module, folder: Path | None, *, mesh: DeviceMesh, seed: int) -> None:
    """
    Read this rank's own rows from the files, without waiting for others. Missing tensors, such as adapters, are
    initialised by name and place.
    """
    files = files_of(folder) if folder else {}
    for name, module in [*model.named_modules()]:
        if hasattr(module, "original_inv_freq"):  # buffers that are in no file, and that meta has lost
            model.set_submodule(name, type(module)(module.config).to(module.inv_freq.device))
    for name, parameter in model.named_parameters():
        local, place = parameter.to_local() if isinstance(parameter, DTensor) else parameter, mesh.get_local_rank()
        stored = name.removeprefix("base_model.model.").replace(".base_layer.", ".")
        if stored in files:
            rows = -(-parameter.shape[0] // mesh.size())
            with safe_open(files[stored], "pt") as file:
                local.copy_(file.get_slice(stored)[place * rows : (place + 1) * rows])
        elif files and "lora_" not in name:
            raise SystemExit(f"{folder} has no {stored}; allowed: a folder whose safetensors have all of its model")
        elif parameter.ndim == 1:
            local.fill_(1.0)
        elif "lora_B" in name:
            local.zero_()
        else:
            own = torch.Generator(local.device).manual_seed(zlib.crc32(f"{seed} {name} {place}".encode()))
            local.normal_(std=0.02, generator=own)


def files_of(folder: Path) -> dict[str, Path]:
    """File of each tensor."""
    index = folder / "model.safetensors.index.json"
    if index.exists():
        return {name: folder / file for name, file in json.loads(index.read_text())["weight_map"].items()}
    with safe_open(folder / "model.safetensors", "pt") as file:
        return dict.fromkeys(file.keys(), folder / "model.safetensors")


class Tokens:
    """MODEL=folder python -m holdfast_runtime.data build --tokenizer hugging_face:Tokens ..."""

    def __init__(self) -> None:
        self._tokenizer = AutoTokenizer.from_pretrained(os.environ["MODEL"])
        self.vocabulary_size = len(self._tokenizer)
        self.end_token = self._tokenizer.eos_token_id

    def encode(self, text: str) -> Sequence[int]:
        return self._tokenizer.encode(text, add_special_tokens=False)


if __name__ == "__main__":
    main()
