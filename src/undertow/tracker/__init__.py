"""The tracker: several predictors of different kinds, one answer."""
