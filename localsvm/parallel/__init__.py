"""Where cells run: worker processes of this machine."""
