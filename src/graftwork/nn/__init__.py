"""Network parts in plain torch: attention, LSTMs, a character CNN, packed and low-rank linear layers."""
