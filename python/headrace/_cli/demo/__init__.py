"""``headrace demo``: proof of equality, speed against torch's DataLoader, a training run, a contact sheet."""
