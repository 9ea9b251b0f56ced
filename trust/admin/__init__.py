"""The admin of trust: the owner's screens of callers, skills, reviews, drafts, identities and the audit.

Django's admin finds the screens by importing this package.
"""

from trust.admin import audit, callers, drafts, identities, reviews, skills

__all__ = ["audit", "callers", "drafts", "identities", "reviews", "skills"]
