"""Budgets: forecasts of a run's cost before it starts, and a method search that stops within the budget."""
