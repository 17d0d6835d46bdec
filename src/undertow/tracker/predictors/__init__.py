"""The predictors of the tracker, one file each."""
