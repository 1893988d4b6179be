"""`graft benchmark`: a comparison per task of a suite, in one table with what others published."""
