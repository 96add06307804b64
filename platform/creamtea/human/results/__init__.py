"""Ratings as numbers, and outputs on which raters disagree."""
