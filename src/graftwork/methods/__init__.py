"""The built-in methods of adapting a backbone to a task, and the baselines: one file each."""
