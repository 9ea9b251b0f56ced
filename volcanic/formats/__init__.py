"""Formats of dates and times in place of Django's defaults. Django looks up one module here for each language."""
