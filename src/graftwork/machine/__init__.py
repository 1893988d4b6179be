"""The machine: processor, memory, control groups, signals and the environment that a receipt records."""
