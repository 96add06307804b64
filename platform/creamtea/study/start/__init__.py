"""A first study from two text files (`creamtea init`)."""
