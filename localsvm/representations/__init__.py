"""What methods make of rows before they solve: clusters, local coordinates, landmarks."""
