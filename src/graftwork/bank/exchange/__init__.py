"""Tasks to and from the folders of other libraries: LoRA of peft, bottlenecks of adapters."""
