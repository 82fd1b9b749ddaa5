"""What PUs keep and send each other."""
