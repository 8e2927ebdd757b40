import torch
from accelerate import Accelerator
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    torch.manual_seed(0)
    accelerator = Accelerator()
    x = torch.randn(2048, 16)
    data = TensorDataset(x, x[:, :4].argmax(1))
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(data, batch_size=64, shuffle=True)
    model, optimiser, loader = accelerator.prepare(model, optimiser, loader)
    for epoch in range(3):
        for inputs, labels in loader:
            optimiser.zero_grad()
            loss = cross_entropy(model(inputs), labels)
            accelerator.backward(loss)
            optimiser.step()
        accelerator.print(f"epoch {epoch}: loss {loss.item():.3f}")
