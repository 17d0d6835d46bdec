"""The mathematics: pure functions on arrays. See README.md in this folder for the model and every update."""
