"""One evaluation framework: baselines, recordings, synthetic streams, accuracy, speed, the paper's figures."""
