"""What a run learns of all rows before any cell is trained, and where they lie."""
