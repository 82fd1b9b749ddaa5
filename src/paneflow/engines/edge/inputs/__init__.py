"""How events get into a child: from sensors, files and MQTT, each event taken exactly once."""
