"""Core types: task, backbone, method, metric, meter and run. No concrete part is named here."""
