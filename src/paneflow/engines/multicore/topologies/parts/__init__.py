"""What processing units hold and send each other."""
