"""How methods learn: the loop of those that change the network, its optimiser, training on pairs and on frozen
features, the frozen pass that all build on, and where randomness comes from."""
