import torch
from lightning.pytorch import LightningModule, Trainer
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset


class Module(LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)
        )

    def training_step(self, batch, _):
        inputs, labels = batch
        return cross_entropy(self.layers(inputs), labels)

    def configure_optimizers(self):
        optimiser = torch.optim.SGD(self.parameters(), lr=0.1)
        return [optimiser], [torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 3)]


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(2048, 16)
    loader = DataLoader(TensorDataset(x, x[:, :4].argmax(1)), batch_size=64, shuffle=True)
    trainer = Trainer(max_epochs=3, enable_progress_bar=False)
    trainer.fit(Module(), loader)
    print(f"loss {cross_entropy(trainer.model.layers(x), x[:, :4].argmax(1)).item():.3f}")
