"""Method selection: a prior from earlier boards, the posterior of scores on this task, and expected shortfalls."""
