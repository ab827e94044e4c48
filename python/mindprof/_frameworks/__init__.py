"""What runs operators: one protocol, a file for each host, and the choice among them."""
