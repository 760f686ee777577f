"""Parts that count: units and money by Amazon's published rules, the same on every machine."""
