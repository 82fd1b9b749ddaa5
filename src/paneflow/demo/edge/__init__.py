"""The demo of a tree: smart plugs over MQTT, seven nodes, one of which is killed.

`make demo-edge` runs it. `layout.py` says what is asked and which nodes there are, `broker.py`
starts an MQTT broker, `hubs.py` publishes the readings of houses; `processes.py` starts and kills
nodes, `screen.py` shows what they do, `checks.py` compares the rows with the table engine's, and
`main.py` puts it together.
"""
