"""The nouns: what a task, a backbone, a method, a metric, a meter and a run are. No part is named here."""
