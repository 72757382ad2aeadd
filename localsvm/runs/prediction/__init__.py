"""Parts of a prediction: how much it works on at once, text in parts, scores, pictures."""
