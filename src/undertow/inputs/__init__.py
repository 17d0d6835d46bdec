"""Everything before the device: slices checked, scaled and sent."""
