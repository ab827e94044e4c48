"""Trains a tiny GPT-2 by Hugging Face's Trainer, with a callback that steps torch's profiler."""
# As a user writes it, without types.
# mypy: ignore-errors

import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments


class ProfilerCallback(TrainerCallback):
    """Tells a profiler of each step."""

    def __init__(self, prof):
        self.prof = prof

    def on_step_end(self, args, state, control, **kwargs):
        self.prof.step()


class Texts(torch.utils.data.Dataset):
    """A few random texts."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        ids = torch.randint(0, 64, (16,), generator=generator)
        return {"input_ids": ids, "labels": ids}


def main(folder):
    config = GPT2Config(vocab_size=64, n_positions=16, n_embd=16, n_layer=1, n_head=2)
    arguments = TrainingArguments(
        output_dir=f"{folder}/checkpoints",
        max_steps=6,
        per_device_train_batch_size=2,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
    )
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=torch.profiler.tensorboard_trace_handler(folder),
        record_shapes=True,
        profile_memory=True,
    ) as prof:
        trainer = Trainer(
            model=GPT2LMHeadModel(config),
            args=arguments,
            train_dataset=Texts(),
            callbacks=[ProfilerCallback(prof)],
        )
        trainer.train()
    print("profiler:", type(prof).__module__.partition(".")[0])


main(sys.argv[1])
