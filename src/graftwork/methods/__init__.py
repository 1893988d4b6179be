"""Ways of adapting a backbone to a task, and the baselines that they must beat: one file each."""
