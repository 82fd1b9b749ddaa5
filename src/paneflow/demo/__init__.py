"""The demo: a live stream of smart plugs, answered while it runs, checked and drawn.

`make demo` runs it. `plugs.py` makes the readings and `feed.py` sends them; `question.py` is what
is asked, `live.py` the running job and `screen.py` what is seen of it; `checks.py` compares the
rows with other ways to them, `picture.py` draws them; `main.py` puts it together.
"""
