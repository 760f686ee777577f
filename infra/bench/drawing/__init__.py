"""Tables and charts: the output of the parts."""
