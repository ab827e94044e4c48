"""A classifier whose token ids become one-hot vectors instead of rows of an embedding."""

import torch
from torch import nn

VOCABULARY = 2000


def encode(ids):
    return nn.functional.one_hot(ids, VOCABULARY).float()


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.project, self.out = nn.Linear(VOCABULARY, 64), nn.Linear(64, 3)

    def forward(self, ids):
        return self.out(self.project(encode(ids)).relu().mean(1))


model = Classifier()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(25):
    ids, labels = torch.randint(0, VOCABULARY, (32, 64)), torch.randint(0, 3, (32,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(ids), labels).backward()
    optimizer.step()
