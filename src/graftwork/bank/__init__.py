"""Banks: folders of task modules on one frozen backbone, extended over time and answered together."""
