"""Estimators for scikit-learn: a classifier, a regressor and a tagger of texts."""
