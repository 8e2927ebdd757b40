import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

if __name__ == "__main__":
    torch.manual_seed(0)
    words = torch.randint(0, 64, (256, 8))
    data = [{"input_ids": x, "labels": (x > 31).sum() % 2} for x in words]
    config = BertConfig(vocab_size=64, hidden_size=32, num_hidden_layers=1, num_attention_heads=2)
    model = BertForSequenceClassification(config)
    args = TrainingArguments(
        output_dir="out",
        num_train_epochs=3,
        per_device_train_batch_size=32,
        learning_rate=1e-3,
        logging_steps=4,
        report_to=[],
        use_cpu=not torch.cuda.is_available(),
    )
    trainer = Trainer(model, args, train_dataset=data)
    trainer.train()
