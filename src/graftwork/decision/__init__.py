"""Which method to use: a prior from earlier boards, the posterior of scores on this task, what being wrong may cost."""
