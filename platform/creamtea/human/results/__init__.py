"""What raters gave, as numbers."""
