"""The linear SVM, and what all methods made of linear models share."""
