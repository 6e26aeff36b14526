"""What was found wrong from outside, each as a test named after what the user saw."""
