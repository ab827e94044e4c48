"""A data set whose workers are too slow for the loop."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 320

    def __getitem__(self, index):
        return self.augment(torch.full((3, 32, 32), float(index))), index % 4

    def augment(self, image):
        for _ in range(40):
            image = image.flip(1).sort(dim=2).values
        return image


def main():
    model = nn.Linear(3 * 32 * 32, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in DataLoader(Images(), batch_size=16, num_workers=1):
        loss = nn.functional.cross_entropy(model(x.flatten(1)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
