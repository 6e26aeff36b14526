"""Walk of one job through the product: `python -m benchmarks.walk` lists the files that it passes."""
