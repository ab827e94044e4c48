"""The models that are trained with torch and with the runtime; the module is an argument."""

from __future__ import annotations

from typing import Any


def mlp(torch: Any) -> Any:
    """Returns two linear layers."""
    nn = torch.nn
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))


def cnn(torch: Any) -> Any:
    """Returns convolutions with normalisation and pooling, and a head."""
    nn = torch.nn
    body = [nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)]
    body += [nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
    return nn.Sequential(*body, nn.Flatten(), nn.Linear(32, 10))


def gpt(torch: Any, *, words: int, places: int, width: int) -> Any:
    """Returns a transformer of three blocks with four heads each."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[name-defined, misc]
        """Attention and a feed-forward part, each with a residual."""

        def __init__(self) -> None:
            super().__init__()
            self.before_attention, self.before_feed = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attend, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            """Returns the input with what both parts add."""
            batch, length, _ = x.shape
            parts = self.attend(self.before_attention(x)).view(batch, length, 3, 4, width // 4)
            query, key, value = parts.permute(2, 0, 3, 1, 4)
            attended = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            x = x + self.merge(attended.transpose(1, 2).reshape(batch, length, width))
            return x + self.narrow(nn.functional.gelu(self.widen(self.before_feed(x))))

    class Transformer(nn.Module):  # type: ignore[name-defined, misc]
        """Embeddings, blocks and a head."""

        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(words, width), nn.Embedding(places, width)
            self.blocks = nn.ModuleList(Block() for _ in range(3))
            self.head = nn.Linear(width, words)

        def forward(self, x: Any) -> Any:
            """Returns scores of the next token."""
            hidden = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
            for block in self.blocks:
                hidden = block(hidden)
            return self.head(hidden)

    return Transformer()


def next_token_loss(torch: Any, outputs: Any, targets: Any) -> Any:
    """Returns how far the scores of a transformer are from the tokens."""
    return torch.nn.functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())
