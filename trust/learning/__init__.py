"""Learning: what the owner decided alike again and again becomes a draft of a skill, for one caller.

likeness.py   whether two requests ask for the same kind of thing, without a model
observed.py   a caller's observations, in groups that were asked alike and decided alike
writing.py    the text of a draft: by the assistant's model, else by rule
matching.py   whether a plain request is one that a learned skill or a draft was made for
preview.py    what the assistant would do with a draft, having only looked
services.py   the verbs: learn, edit, approve, reject, "not like this"
"""
