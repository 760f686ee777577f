"""What the parts print and write: tables and charts."""
