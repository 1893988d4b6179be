"""Import and export of tasks for other libraries: LoRA of peft, bottlenecks of adapters."""
