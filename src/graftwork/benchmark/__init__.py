"""`graft benchmark`: a comparison per task of a suite, in one table with published scores."""
