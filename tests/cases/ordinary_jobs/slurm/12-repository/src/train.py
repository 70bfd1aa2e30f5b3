"""A few steps with the model of this repository."""

import argparse
import json
from pathlib import Path

import torch

from model import make

parser = argparse.ArgumentParser()
parser.add_argument("--config", type=Path, required=True)
config = json.loads(parser.parse_args().config.read_text())
torch.manual_seed(0)
model = make(config["width"])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(config["steps"]):
    loss = (model(torch.ones(4, config["width"])) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} of {config['steps']}: loss is finite: {bool(loss.isfinite())}")
