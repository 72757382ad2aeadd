"""What predictions share: how much at once, text in parts, scores, pictures."""
