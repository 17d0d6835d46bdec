"""Beyond one device: slices spread over a mesh, fleets on engines that users already run."""
