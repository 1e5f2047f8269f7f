"""Trains a small network of convolutions on random pictures."""

import os

import torch
from torch import nn

SIDE, BATCH = 64, 32
device = "cuda" if torch.cuda.is_available() else "cpu"
network = nn.Sequential(
    nn.Conv2d(3, 32, 3, padding=1, bias=False),
    nn.ReLU(),
    nn.Conv2d(32, 64, 3, padding=1, bias=False),
    nn.ReLU(),
    nn.Conv2d(64, 64, 3, padding=1, bias=False),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(64, 10, bias=False),
).to(device)
optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
pictures = torch.utils.data.TensorDataset(torch.randn(512, 3, SIDE, SIDE), torch.randint(0, 10, (512,)))
left = int(os.environ.get("STEPS", 10**12))
while left > 0:
    for batch, labels in torch.utils.data.DataLoader(pictures, batch_size=BATCH, shuffle=True):
        left -= 1
        loss = nn.functional.cross_entropy(network(batch.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
