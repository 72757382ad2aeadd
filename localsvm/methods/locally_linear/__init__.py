"""Linear SVMs that hold in a part of the space: in clusters, around anchors or landmarks."""
