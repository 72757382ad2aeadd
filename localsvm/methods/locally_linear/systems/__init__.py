"""The problems of the methods that are no linear SVM over clusters."""
