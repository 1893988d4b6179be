"""Banks: many task modules on one frozen backbone, kept, added for ever and answered together."""
