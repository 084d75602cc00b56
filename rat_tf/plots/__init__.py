"""Every picture that is drawn."""
