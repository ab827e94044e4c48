"""Trains a small language model with PyTorch: a program to try `mindprof run` on.

Nothing in it knows of the profiler. Its dataset has a common flaw, which the profile shows: each
access tokenizes a whole document and then keeps one short window of it.
"""

# mypy: ignore-errors
from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CONTEXT = 64
WORDS = ["the", "a", "cat", "dog", "bird", "sat", "ran", "on", "over", "mat", "hill", "and", "saw"]
VOCABULARY = {character: number for number, character in enumerate(" abcdefghijklmnopqrstuvwxyz")}


class Documents(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Documents of made-up text, a window of each per access."""

    def __init__(self, count: int, words: int) -> None:
        picks = torch.randint(len(WORDS), (count, words))
        self.texts = [" ".join([WORDS[pick] for pick in row]) for row in picks.tolist()]

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        window = tokenize(self.texts[index])[: CONTEXT + 1]
        return torch.tensor(window[:-1]), torch.tensor(window[1:])


def tokenize(text: str) -> list[int]:
    """Returns a number for each character."""
    return [VOCABULARY[character] for character in text]


class Block(nn.Module):
    """A transformer block: causal attention, then a feed-forward network."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Runs both parts, each with a residual connection."""
        x = x + self.attend(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        """Lets every position look at those before it."""
        batch, length, width = x.shape
        heads = self.project(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        return mixed.transpose(1, 2).reshape(batch, length, width)

    def feed_forward(self, x: torch.Tensor) -> torch.Tensor:
        """Transforms every position by itself."""
        return self.down(nn.functional.gelu(self.up(x)))


class Model(nn.Module):
    """A character-level language model."""

    def __init__(self, width: int = 128, blocks: int = 2) -> None:
        super().__init__()
        self.characters = nn.Embedding(len(VOCABULARY), width)
        self.positions = nn.Embedding(CONTEXT, width)
        self.blocks = nn.ModuleList(Block(width, heads=4) for _ in range(blocks))
        self.head = nn.Linear(width, len(VOCABULARY))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Returns a score for each possible next character."""
        x = self.characters(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def train(model: nn.Module, batches: DataLoader[tuple[torch.Tensor, torch.Tensor]]) -> float:
    """Trains for one epoch and returns the last loss."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for inputs, targets in batches:
        loss = nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    documents = Documents(count=640, words=16000)
    print(f"loss {train(Model(), DataLoader(documents, batch_size=32, shuffle=True)):.3f}")
