"""What a black box does: probes, properties, hypotheses, diagnosis, minimising, comparing, dissecting."""
