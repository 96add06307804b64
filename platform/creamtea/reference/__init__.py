"""The reference in docs/reference/, from the code itself: `python -m creamtea.reference.pages FOLDER`."""
