"""Matrix and dot-product instructions of the CPU in this machine: run, recorded, held against the model."""
