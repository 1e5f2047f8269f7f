"""Feeds: machines and prices from outside. One file each, whose name the user types; `catalog/feed.py` says what it defines."""
