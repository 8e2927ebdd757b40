import torch
from accelerate import Accelerator
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import maat.agent

if __name__ == "__main__":
    job = maat.agent.start()
    torch.manual_seed(0)
    accelerator = Accelerator()
    x = torch.randn(2048, 16)
    data = TensorDataset(x, x[:, :4].argmax(1))
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(data, batch_size=64, shuffle=True)
    model, optimiser = accelerator.prepare(model, optimiser)
    model, optimiser, loader = job.adapt(model, optimiser, loader, max_batch_size=512)
    for epoch in job.epochs(3):
        for inputs, labels in loader:
            inputs, labels = inputs.to(job.device), labels.to(job.device)
            optimiser.zero_grad()
            loss = cross_entropy(model(inputs), labels)
            accelerator.backward(loss)
            optimiser.step()
        accelerator.print(f"epoch {epoch}: loss {loss.item():.3f}")
