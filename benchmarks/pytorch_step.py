"""The PyTorch side of `benchmarks.pytorch`: the same steps as a PyTorch user would write them.

It needs nothing but torch and imports nothing of this project; its interpreter is not ours. It
says which torch it is, builds the steps of the variants that are its arguments, and then answers
every line "<variant> <method>" with the seconds of one step, after another that is not counted.
"""

from __future__ import annotations

import os
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    print(error, flush=True)
    sys.exit()
from torch import nn

BATCH, SIZE, PARAMETERS = 50, 32, 1_467_610
XI, NOISE, AFFINE = 1e-6, 1.0, 0.6


class Norm(nn.BatchNorm2d):
    """Batch statistics always; they enter the running ones only if `update`."""

    def forward(self, x, update):
        running = (self.running_mean, self.running_var) if update else (None, None)
        return F.batch_norm(x, *running, self.weight, self.bias, True, self.momentum, self.eps)


class Block(nn.Module):
    def __init__(self, channels, filters, stride, first):
        super().__init__()
        self.first = first
        self.norm1, self.norm2 = Norm(channels), Norm(filters)
        self.conv1 = nn.Conv2d(channels, filters, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(filters, filters, 3, 1, 1, bias=False)
        changes = channels != filters
        self.shortcut = nn.Conv2d(channels, filters, 1, stride, bias=False) if changes else None

    def forward(self, inputs, update):
        x = F.leaky_relu(self.norm1(inputs, update), 0.1, inplace=True)
        shortcut = x if self.first else inputs
        if self.shortcut is not None:
            shortcut = self.shortcut(shortcut)
        x = F.leaky_relu(self.norm2(self.conv1(x), update), 0.1, inplace=True)
        return self.conv2(x) + shortcut


class WideResNet(nn.Module):
    """WRN-28-2 as in rat_tf.networks.wide_resnet."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        widths = [16, *[32] * 4, *[64] * 4, *[128] * 4]
        self.blocks = nn.ModuleList(
            Block(channels, filters, 2 if i in (4, 8) else 1, first=i == 0)
            for i, (channels, filters) in enumerate(zip(widths, widths[1:]))
        )
        self.norm, self.linear = Norm(128), nn.Linear(128, 10)
        for conv in (m for m in self.modules() if isinstance(m, nn.Conv2d)):
            nn.init.kaiming_normal_(conv.weight, mode="fan_out")
        nn.init.xavier_normal_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x, update=True):
        x = self.conv(x)
        for block in self.blocks:
            x = block(x, update)
        x = F.leaky_relu(self.norm(x, update), 0.1, inplace=True)
        return self.linear(x.mean((2, 3)))


def shifted(images):
    """±2 pixels, reflecting, one draw for the batch."""
    y, x = torch.randint(0, 5, (2,)).tolist()
    return F.pad(images, (2, 2, 2, 2), "reflect")[..., y : y + SIZE, x : x + SIZE]


def moved(images, noise, affine):
    grid = F.affine_grid(torch.eye(2, 3) + affine, images.shape, align_corners=True)
    return F.grid_sample(images + noise, grid, padding_mode="zeros", align_corners=True)


def unit(noise, affine):
    """Each in its own norm: L2, and the largest singular value of 2×3 in closed form."""
    a, c = (affine**2).sum(2).unbind(1)
    b = affine.prod(1).sum(1)
    largest = ((a + c) / 2 + (((a - c) / 2) ** 2 + b**2).sqrt()).sqrt().clamp_min(1e-30)
    length = noise.flatten(1).norm(dim=1).clamp_min(1e-30)
    return noise / length.view(-1, 1, 1, 1), affine / largest.view(-1, 1, 1)


def kl_divergence(log_p, logits):
    return F.kl_div(F.log_softmax(logits, 1), log_p, reduction="sum", log_target=True)


class Step:
    """Training steps on one batch, in a memory format and perhaps compiled."""

    def __init__(self, variant: str):
        last = variant != "contiguous"
        self.format = torch.channels_last if last else torch.contiguous_format
        self.net = WideResNet().to(memory_format=self.format)
        count = sum(p.numel() for p in self.net.parameters())
        assert count == PARAMETERS, f"{count} parameters"
        self.forward = torch.compile(self.net) if variant == "compiled" else self.net
        self.adam = torch.optim.Adam(self.net.parameters(), 0.003, eps=1e-8, fused=True)
        self.pixels = torch.randint(0, 256, (2 * BATCH, SIZE, SIZE, 3), dtype=torch.uint8)
        self.labels = torch.randint(0, 10, (2 * BATCH,))

    def images(self):
        images = self.pixels.permute(0, 3, 1, 2)
        return images.to(torch.float32, memory_format=self.format).div_(127.5).sub_(1)

    def supervised(self):
        return F.cross_entropy(self.forward(shifted(self.images())), self.labels)

    def rat(self):
        images = self.images()
        labeled, unlabeled = self.forward(shifted(images)).split(BATCH)
        images, log_p = images[BATCH:], F.log_softmax(unlabeled, 1)
        target = log_p.detach()
        transformed = moved(images, *self.search(images, target))
        kl = kl_divergence(target, self.forward(shifted(transformed), update=False)) / BATCH
        entropy = -(log_p.exp() * log_p).sum(1).mean()
        loss = F.cross_entropy(labeled, self.labels[:BATCH])
        return loss + 0.3 * kl + 0.06 * entropy

    def search(self, images, target):
        """Algorithm 1: one gradient with respect to the offsets, and to nothing else."""
        self.net.requires_grad_(False)
        offsets = unit(torch.randn_like(images), torch.randn(len(images), 2, 3))
        for offset in offsets:
            offset.requires_grad_()
        probe = moved(images, *(XI * offset for offset in offsets))
        kl = kl_divergence(target, self.forward(shifted(probe), update=False))
        noise, affine = unit(*torch.autograd.grad(kl, offsets))
        self.net.requires_grad_(True)
        return NOISE * noise, AFFINE * affine

    def run(self, method: str) -> float:
        """Seconds of one step."""
        began = time.perf_counter()
        loss = getattr(self, method)()
        self.adam.zero_grad(set_to_none=True)
        loss.backward()
        self.adam.step()
        value = loss.item()
        seconds = time.perf_counter() - began
        assert value - value == 0, f"{method}: the loss is {value}"
        return seconds


def main(variants) -> None:
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.manual_seed(0)
    print(f"torch {torch.__version__}", flush=True)
    steps = {variant: Step(variant) for variant in variants}
    for line in sys.stdin:
        variant, method = line.split()
        steps[variant].run(method)
        print(steps[variant].run(method), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
