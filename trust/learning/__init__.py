"""Learning: several requests of one caller that were decided alike become a draft of a skill for this caller.

words.py      tables of the words that the rule of likeness knows
reading.py    reads a request into words and slots
likeness.py   the rule of likeness: compares two requests without a model
observed.py   groups a caller's observations that were asked alike and decided alike
writing.py    writes the text of a draft, by the assistant's model or by rule
matching.py   finds the learned skill or the draft that covers a plain request
preview.py    tries a draft on a request with tools that only look
drafts.py     services of drafts: edit, approve, reject, withdraw, put before the owner again
services.py   other services: learn, "not like this", take decisions back

This package and its callers take locks in one order: caller (no key), its keys, reviews, grants, observations, drafts,
skills, notifications, tasks. Several rows of one kind are locked in the order of their ids, the lowest first.
"""
