"""Learning: what the owner decided alike again and again becomes a draft of a skill, for one caller.

words.py      the words that the rule of likeness knows
reading.py    the words and slots of a request
likeness.py   whether two requests ask for the same kind of thing, without a model
observed.py   a caller's observations, in groups that were asked alike and decided alike
writing.py    the text of a draft: by the assistant's model, else by rule
matching.py   whether a plain request is one that a learned skill or a draft was made for
preview.py    what the assistant would do with a draft, having only looked
drafts.py     the verbs of drafts: edit, approve, reject, withdraw, put before the owner again
services.py   the other verbs: learn, "not like this", take decisions back

Locks are taken in one order, here and by whoever calls: caller (no key), its keys, reviews, grants, observations,
drafts, skills, notifications, tasks; of several of a kind, that with the lowest id first.
"""
