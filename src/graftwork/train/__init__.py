"""Training: the loop of methods that change the network, its optimiser, training on pairs and on frozen features,
the frozen pass that all build on, and the seeds."""
