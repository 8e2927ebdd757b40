import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import maat.agent

if __name__ == "__main__":
    torch.manual_seed(0)
    job = maat.agent.start()
    device = job.device
    x = torch.randn(2048, 16)
    data = TensorDataset(x, x[:, :4].argmax(1))
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    model = model.to(device)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(data, batch_size=64, shuffle=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 3)
    model, optimiser, loader = job.adapt(model, optimiser, loader, scheduler, max_batch_size=512)
    for epoch in job.epochs(3):
        for inputs, labels in loader:
            optimiser.zero_grad()
            loss = cross_entropy(model(inputs.to(device)), labels.to(device))
            loss.backward()
            optimiser.step()
        scheduler.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")
