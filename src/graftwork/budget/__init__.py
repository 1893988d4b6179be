"""What a budget buys: forecasts of runs before they are paid for, and the search that stops in time."""
