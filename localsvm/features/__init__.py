"""What happens to a row before a method sees it: fitted transforms in a chain, which the model keeps."""
