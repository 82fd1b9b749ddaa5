"""What arrives at a stream: checked, given key codes, and put in order."""
