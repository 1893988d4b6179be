"""The only training loop, its optimiser, the frozen pass it builds on, and where its randomness comes from."""
