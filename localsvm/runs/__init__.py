"""What a run does: training, prediction, validation, streaming, and what they share."""
