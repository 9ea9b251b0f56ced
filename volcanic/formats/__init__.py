"""How dates and times are written, in place of Django's own way: as Django finds it, a module for each language."""
