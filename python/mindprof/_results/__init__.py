"""The results of recordings: events, rows, their lists, and exports of them."""
