"""One file per format; ``registry.py`` lists them."""
