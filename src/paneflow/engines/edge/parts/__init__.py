"""What travels up a tree, a file for each kind: what a node holds of it, and when it goes on."""
